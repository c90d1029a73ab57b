"""Types of the compiled walk."""

from collections.abc import Iterator
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

UNKNOWN: int

class Structure(Iterator[NDArray[np.int64]]):
    """A walk through data that begins with a JSON list of objects."""

    end: int | None
    def __new__(cls, data: bytes | mmap, key: bytes) -> Structure: ...
    def __iter__(self) -> Structure: ...
    def __next__(self) -> NDArray[np.int64]: ...
