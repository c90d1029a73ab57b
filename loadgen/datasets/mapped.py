"""Mapped: the file of a data set in memory, of which only what is looked at is read, and what it was."""

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.datasets import hashes
from loadgen.errors import BadInput

if TYPE_CHECKING:
    from loadgen.settings import RunSettings

FIELD = "--dataset-path"


def path_of(settings: "RunSettings", remedy: str) -> Path:
    """The file that a run's settings name.

    Raises:
        BadInput: They name none; `remedy` says what to give.
    """
    if settings.dataset_path is None:
        raise BadInput(FIELD, f"is not given, and {settings.dataset_name} has no texts of its own", remedy)
    return Path(settings.dataset_path).expanduser()


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
    return {"file": str(path), "file_bytes": size, "file_sha256": hashes.sha256(path)}
