"""Memory-mapped files of data sets, and the check of their paths."""

import mmap
import os
from pathlib import Path
from typing import Any

import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.files import cache

DATASET_PATH = setting.dataset_path


def checked_path(field: str, text: str) -> Path:
    """Check the path of a file in a setting, and expand its user folder. The file need not exist.

    Raises:
        BadInput: The path is invalid, or names a pipe, device or socket: files are read more than
            once.
    """
    if "\0" in text:
        raise BadInput(field, f"the path {text!r} contains a NUL byte", "give the path of a file")
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise BadInput(field, f"{text}: unknown home folder", "write the full path") from error
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise BadInput(
            field, f"{path} is not a regular file", "copy its content into a file, and give that"
        )
    return path


def dataset_path(settings: RunSettings, remedy: str) -> Path:
    """Return the checked path of --dataset-path.

    Raises:
        BadInput: It is not given; `remedy` says what to give.
    """
    if settings.dataset_path is None:
        raise BadInput(
            DATASET_PATH, f"is missing: the data set {settings.dataset_name} needs a file", remedy
        )
    return checked_path(DATASET_PATH, settings.dataset_path)


def map_file(path: Path, remedy: str) -> mmap.mmap:
    """Map a file into memory for reading.

    Raises:
        BadInput: The file cannot be read, or is empty; `remedy` says what to give instead.
    """
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise BadInput(DATASET_PATH, f"{path} is empty", remedy)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except PermissionError as error:
        raise BadInput(
            DATASET_PATH, f"{path} cannot be read ({error.strerror})", "make it readable"
        ) from error
    except OSError as error:
        raise BadInput(DATASET_PATH, f"{path} cannot be read ({error.strerror})", remedy) from error


def parse_object(path: Path, location: str, data: bytes | str, remedy: str) -> dict[str, Any]:
    """Parse the JSON object at a location in a file, such as "line 3".

    Raises:
        BadInput: It is not JSON, or no object; `remedy` says what to do.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(DATASET_PATH, f"{path}, {location}: not JSON ({error})", remedy) from error
    if not isinstance(value, dict):
        raise BadInput(DATASET_PATH, f"{path}, {location}: not a JSON object", remedy)
    return value


def provenance(path: Path) -> dict[str, Any]:
    """Return name, size and hash of a file for the provenance of a data set, as JSON. Reads the
    whole file.

    Raises:
        OSError: The file can no longer be read.
    """
    return {
        "file": str(path),
        "file_bytes": path.stat().st_size,
        "file_sha256": cache.file_sha256(path),
    }
