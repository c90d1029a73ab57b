"""Mapped: the file of a data set in memory, of which only what is looked at is read."""

import mmap
import os
from pathlib import Path

from loadgen.errors import BadInput

FIELD = "--dataset-path"


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
