"""`RowFile`: rows of a JSON lines or CSV file of any size, each read when it is needed."""

import mmap
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from loadgen.errors import BadInput
from loadgen.workload.datasets.prompt_rows import FIELDS, Row
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file, provenance

REMEDY = f"give rows of {', '.join(FIELDS)}; prompt or messages is required"
CHUNK = 1 << 24  # bytes scanned at a time
NEWLINE, QUOTE = b'\n"'
MARK = b"\xef\xbb\xbf"  # byte order mark
CELL = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",\r\n]*+))(,|\r?\n?\Z)')

Kind = Literal["jsonl", "csv"]


class RowFile:
    """The rows of a file in its order: JSON objects, one a line, or the records of a CSV file (RFC 4180) with a header.

    The file is memory-mapped and scanned for line ends; a row is parsed when it is read. Empty lines are ignored.

    Attributes:
        path: The file.
        size: Its size in bytes.
        columns: The names in the header of a CSV file.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        *,
        strict: bool = True,
        convert: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        remedy: str = REMEDY,
    ) -> None:
        """Map and scan the file.

        Args:
            strict: Whether to refuse unknown fields; else they are ignored.
            convert: Makes the fields of a Row from those of the file; raises ValueError.

        Raises:
            BadInput: The file cannot be read, or has no rows.
        """
        self.path, self._kind, self._strict, self._convert, self._remedy = path, kind, strict, convert, remedy
        self._data = map_file(path, remedy)
        self._starts, self._ends = _lines(self._data, quoted=kind == "csv")
        self.columns: list[str] = []
        if kind == "csv":
            self.columns = self._cells("its header", 0)
            self._refuse_unknown("its header", self.columns)
            twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
            if twice is not None:
                raise self._bad("its header", f"contains {twice!r} twice")
            self._starts, self._ends = self._starts[1:], self._ends[1:]
        if not len(self):
            raise BadInput(DATASET_PATH, f"{path} has no rows", remedy)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Row:
        """Read one row.

        Raises:
            BadInput: The row is invalid.
        """
        location = f"row {number + 1}"
        found = self._object(location, number) if self._kind == "jsonl" else self._record(location, number)
        self._refuse_unknown(location, found)
        try:
            return Row.of(self._convert(found), f"{self._kind}/{number + 1}")
        except ValueError as error:
            raise self._bad(location, str(error)) from error

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file and the number of its rows, as JSON. Reads the whole file."""
        return provenance(self.path) | {"rows": len(self)}

    def _object(self, location: str, number: int) -> dict[str, Any]:
        try:
            found = orjson.loads(self._bytes(number))
        except ValueError as error:
            self._text(location, number)  # UTF-8?
            raise self._bad(location, f"is not JSON ({error})") from error
        if not isinstance(found, dict):
            raise self._bad(location, "is not a JSON object")
        return found

    def _record(self, location: str, number: int) -> dict[str, Any]:
        cells = self._cells(location, number)
        if len(cells) != len(self.columns):
            raise self._bad(location, f"has {len(cells)} columns, and the header has {len(self.columns)}")
        found: dict[str, Any] = {name: cell for name, cell in zip(self.columns, cells, strict=True) if cell}
        try:
            for name in found.keys() & {"input_tokens", "output_tokens"}:
                found[name] = int(found[name])
            for name in found.keys() & {"messages", "extra_body"}:
                found[name] = orjson.loads(found[name])
        except ValueError as error:
            raise self._bad(location, f"has a number, messages or extra_body that cannot be read ({error})") from error
        return found

    def _cells(self, location: str, number: int) -> list[str]:
        text = self._text(location, number)
        if "\0" in text:
            raise self._bad(location, "contains NUL bytes")
        cells, at = [], 0
        while match := CELL.match(text, at):
            quoted, plain, end = match.groups()
            cells.append(plain if quoted is None else quoted.replace('""', '"'))
            at = match.end()
            if end != ",":
                return cells
        raise self._bad(location, "is not CSV: a quote is misplaced, or not closed")

    def _text(self, location: str, number: int) -> str:
        try:
            return self._bytes(number).decode()
        except UnicodeDecodeError as error:
            raise self._bad(location, "is not UTF-8") from error

    def _bytes(self, number: int) -> bytes:
        return self._data[self._starts[number] : self._ends[number]]

    def _refuse_unknown(self, location: str, names: "dict[str, Any] | list[str]") -> None:
        if self._strict and (unknown := [name for name in names if name not in FIELDS]):
            raise self._bad(location, f"has an unknown field {unknown[0]!r}")

    def _bad(self, location: str, problem: str) -> BadInput:
        return BadInput(DATASET_PATH, f"{self.path}: {location} {problem}", self._remedy)


def _lines(data: mmap.mmap, *, quoted: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and end offsets of non-empty lines. With `quoted`, line ends between quotes are ignored."""
    begin = len(MARK) if data[: len(MARK)] == MARK else 0
    ends = np.concatenate([*_line_ends(data, quoted), [len(data)]])
    starts = np.concatenate([[begin], ends[:-1] + 1])
    alone = np.flatnonzero(ends - starts == 1)
    empty = ends <= starts
    empty[alone] = [data[at : at + 1] == b"\r" for at in starts[alone].tolist()]
    return starts[~empty], ends[~empty]


def _line_ends(data: mmap.mmap, quoted: bool) -> Iterator[NDArray[np.int64]]:
    inside = 0
    for begin in range(0, len(data), CHUNK):
        chunk = np.frombuffer(data[begin : begin + CHUNK], dtype=np.uint8)
        ends = np.flatnonzero(chunk == NEWLINE)
        if quoted:
            quotes = np.flatnonzero(chunk == QUOTE)
            ends = ends[(np.searchsorted(quotes, ends) + inside) % 2 == 0]
            inside = (inside + len(quotes)) % 2
        yield ends + begin
