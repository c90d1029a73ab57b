"""`JsonRow`: one JSON object of a file, whose fields are read with errors that name file and location."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.workload.datasets.lengths import MAX_TOKENS
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file

REMEDY = "correct it, or remove its session"
MAX_S = 1e9  # 30 years


@dataclass(frozen=True, slots=True)
class JsonRow:
    """One object.

    Attributes:
        path: The file.
        location: Where it stands in the file, such as "line 3, requests[2]".
        fields: The object.
    """

    path: Path
    location: str
    fields: dict[str, Any]

    def error(self, problem: str, remedy: str = REMEDY) -> BadInput:
        """Return an error of this object that names its location."""
        return BadInput(DATASET_PATH, f"{self.path}, {self.location}: {problem}", remedy)

    def wrong(self, name: str, value: Any, wanted: str) -> BadInput:
        """Return an error of a field that is missing, or whose value is not what is wanted, such as "a date"."""
        return self.error(f"{name!r} is " + ("missing" if value is None else f"{str(value)[:40]!r}, not {wanted}"))

    def of_kind(self, kind: type, name: str, value: Any) -> Any:
        """Return a value that has to be of a kind.

        Raises:
            BadInput: It is not, or is missing.
        """
        if not isinstance(value, kind) or isinstance(value, bool):
            kinds = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}
            raise self.wrong(name, value, kinds[kind])
        return value

    def text(self, name: str) -> str:
        """Return a text that is not empty.

        Raises:
            BadInput: The field has none.
        """
        if not (text := self.of_kind(str, name, self.fields.get(name))):
            raise self.error(f"{name!r} is empty")
        return str(text)

    def integer(self, name: str, *others: str, default: int | None = None) -> int:
        """Return a number of tokens, or of anything else; the field may have other names.

        Raises:
            BadInput: It is missing without a default, no whole number, negative, or too large.
        """
        value = next((self.fields[each] for each in (name, *others) if self.fields.get(each) is not None), default)
        number = int(self.of_kind(int, name, value))
        if not 0 <= number <= MAX_TOKENS:
            raise self.error(f"{name!r} is {number}, not from 0 to {MAX_TOKENS}")
        return number

    def seconds(self, name: str) -> float | None:
        """Return a time in seconds; None if the field is missing or null.

        Raises:
            BadInput: It is no number, negative, or too large.
        """
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, value, "a number of seconds")
        if not math.isfinite(value) or not 0 <= value <= MAX_S:
            raise self.error(f"{name!r} is {value:g} s, not from 0 to {MAX_S:g}")
        return float(value)

    def rows(self, name: str, *, optional: bool = False) -> "list[JsonRow]":
        """Return the objects of a list; of an optional one that is missing, none.

        Raises:
            BadInput: It is no list of objects.
        """
        value = self.fields.get(name)
        objects = self.of_kind(list, name, [] if value is None and optional else value)
        return [
            JsonRow(self.path, f"{self.location}, {name}[{number}]", self.of_kind(dict, f"{name}[{number}]", each))
            for number, each in enumerate(objects)
        ]


def read_rows(path: Path, remedy: str) -> Iterator[JsonRow]:
    """Yield the objects of a file: JSON lines, one JSON object, or a list of objects.

    Raises:
        BadInput: The file cannot be read, or has something else.
    """
    data = map_file(path, remedy)
    try:
        orjson.loads(data.readline())
    except orjson.JSONDecodeError:
        yield from _objects(path, "the file", data[:], remedy)
        return
    data.seek(0)
    for number, line in enumerate(iter(data.readline, b""), 1):
        if content := line.strip():
            yield from _objects(path, f"line {number}", content, remedy)


def _objects(path: Path, location: str, data: bytes, remedy: str) -> Iterator[JsonRow]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(DATASET_PATH, f"{path}, {location}: not JSON ({error})", remedy) from error
    for number, each in enumerate(value if isinstance(value, list) else [value], 1):
        own = f"{location}, object {number}" if isinstance(value, list) else location
        if not isinstance(each, dict):
            raise BadInput(DATASET_PATH, f"{path}, {own}: not a JSON object", remedy)
        yield JsonRow(path, own, each)
