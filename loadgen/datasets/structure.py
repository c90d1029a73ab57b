"""Structure: where the objects of a JSON list lie, found without parsing them.

Brackets outside strings give each byte's depth: 1 inside the list, 2 inside one of its objects, 3 inside an object's
own lists and objects, and so on. Strings are found by their quotes, of which escaped ones do not count.
"""

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 20  # bytes looked at in one go: what is made of them stays in the processor's cache
QUOTE, BACKSLASH = ord('"'), ord("\\")
OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = b"{}[]"

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Structure:
    """Byte positions in a JSON list of objects, ascending.

    Attributes:
        starts: Of the opening brace of every object of the list that is whole.
        ends: One past the closing brace of each.
        children: Of every bracket that opens a list or object right inside one of the objects.
        grandchildren: Of every brace that opens an object right inside one of the children.
        end: One past the bracket that closes the list, None for a file that is cut off.
    """

    starts: Positions
    ends: Positions
    children: Positions
    grandchildren: Positions
    end: int | None

    @classmethod
    def of(cls, data: mmap) -> "Structure":
        """Look through data that begins with a list, after any white space; 673 MB take about a second."""
        starts, ends, children, grandchildren, closings = (
            np.concatenate(found) for found in zip(*_by_chunk(data), strict=True)
        )
        objects = min(len(starts), len(ends))
        return cls(
            starts=starts[:objects],
            ends=ends[:objects] + 1,
            children=children,
            grandchildren=grandchildren,
            end=int(closings[0]) + 1 if len(closings) else None,
        )


def objects(data: mmap) -> Generator[tuple[int, int], None, int | None]:
    """Walk through data that begins with a list, a chunk at a time, as far as is asked for.

    Yields:
        The position of the opening brace of a whole object of the list, and one past its closing brace.

    Returns:
        One past the bracket that closes the list, None for a file that is cut off.
    """
    opened: deque[int] = deque()
    for starts, ends, _, _, closings in _by_chunk(data):
        opened.extend(starts.tolist())
        for end in ends.tolist():
            yield opened.popleft(), end + 1
        if len(closings):
            return int(closings[0]) + 1
    return None


def _by_chunk(data: mmap) -> Iterator[tuple[Positions, ...]]:
    """Yield the positions of starts, ends, children, grandchildren and list ends in one chunk after the other."""
    depth, inside = 0, 0
    for begin, chunk in _chunks(data):
        quotes = _unescaped(np.flatnonzero(chunk == QUOTE), chunk)
        brackets = np.flatnonzero(
            (chunk == OPEN_OBJECT) | (chunk == CLOSE_OBJECT) | (chunk == OPEN_LIST) | (chunk == CLOSE_LIST)
        )
        brackets = brackets[(np.searchsorted(quotes, brackets) + inside) % 2 == 0]
        inside = (inside + len(quotes)) % 2
        kinds = chunk[brackets]
        opens = (kinds == OPEN_OBJECT) | (kinds == OPEN_LIST)
        depths = depth + np.cumsum(np.where(opens, 1, -1))
        depth = int(depths[-1]) if len(depths) else depth
        brackets += begin
        yield (
            brackets[opens & (depths == 2) & (kinds == OPEN_OBJECT)],
            brackets[~opens & (depths == 1) & (kinds == CLOSE_OBJECT)],
            brackets[opens & (depths == 3)],
            brackets[opens & (depths == 4) & (kinds == OPEN_OBJECT)],
            brackets[~opens & (depths == 0)],
        )


def _chunks(data: mmap) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the data in chunks with the position of each; none ends in a backslash, so that no escape is cut in two."""
    begin = 0
    while begin < len(data):
        end = min(begin + CHUNK, len(data))
        while end < len(data) and data[end - 1] == BACKSLASH:
            end += 1
        yield begin, np.frombuffer(data[begin:end], dtype=np.uint8)
        begin = end


def _unescaped(quotes: Positions, chunk: NDArray[np.uint8]) -> Positions:
    """Keep the quotes that an even number of backslashes stands before."""
    escaped = np.zeros(len(quotes), dtype=bool)
    at, which = quotes - 1, np.arange(len(quotes))
    while len(which):
        going_on = (at >= 0) & (chunk[at] == BACKSLASH)
        at, which = at[going_on] - 1, which[going_on]
        escaped[which] ^= True
    kept: Positions = quotes[~escaped]
    return kept
