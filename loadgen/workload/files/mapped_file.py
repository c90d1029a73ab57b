"""Mapped: the file of a data set in memory, of which only what is looked at is read; and what is no such file."""

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput
from loadgen.workload.files import file_hash

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings

FIELD = "--dataset-path"


def named(field: str, given: str) -> Path:
    """Where the setting `field` says that a file is; whether there is one, whoever opens it finds out.

    Raises:
        BadInput: No file can be there; or it is a pipe, a device or a socket: files are read more than once, and a pipe
            that nobody writes never ends.
    """
    if "\0" in given:
        raise BadInput(field, f"{given!r} holds a NUL byte, as no path does", "name a file")
    try:
        path = Path(given).expanduser()
    except RuntimeError as error:
        raise BadInput(field, f"{given}: there is no such home folder", "write the whole path") from error
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise BadInput(field, f"{path} is no regular file", "copy what it gives into one, and name that")
    return path


def path_of(settings: "RunSettings", remedy: str) -> Path:
    """The file that a run's settings name.

    Raises:
        BadInput: They name none; `remedy` says what to give.
    """
    if settings.dataset_path is None:
        raise BadInput(FIELD, f"is not given, and {settings.dataset_name} has no texts of its own", remedy)
    return named(FIELD, settings.dataset_path)


def mapped(path: Path, remedy: str) -> mmap.mmap:
    """Map a file for reading.

    Raises:
        BadInput: It cannot be read, or is empty; `remedy` says what to give instead.
    """
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise BadInput(FIELD, f"{path} is empty", remedy)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except PermissionError as error:
        raise BadInput(FIELD, f"{path} cannot be read ({error.strerror})", "make it readable") from error
    except OSError as error:
        raise BadInput(FIELD, f"{path} cannot be read ({error.strerror})", remedy) from error


def provenance(path: Path, size: int) -> dict[str, Any]:
    """Return name, bytes and hash of a file, as JSON for a data set's own provenance; reads the whole file.

    Raises:
        OSError: It cannot be read any more.
    """
    return {"file": str(path), "file_bytes": size, "file_sha256": file_hash.sha256(path)}
