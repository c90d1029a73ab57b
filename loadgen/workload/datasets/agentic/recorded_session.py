"""`RecordedSession`: what an agent asked in one session, which of its calls waited for which,
and for how long.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.workload.datasets.lengths import MAX_TOKENS
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file
from loadgen.workload.prompt import UNPLANNED

ROW_REMEDY = "correct it, or remove its session"
MAX_S = 1e9  # 30 years


@dataclass(slots=True)
class RecordedCall:
    """One call of a model. Its prompt has messages, or blocks of text that it shares with other
    calls.

    Attributes:
        location: Where it stands in its file.
        after: The numbers, from 0, of the calls that had to end before it, ascending; empty for the
            first.
        delay_s: Seconds from the end of the last of these until it was sent: a tool ran, or
            somebody thought.
        input_tokens: Tokens of the prompt; UNPLANNED if only its messages are known.
        output_tokens: Tokens of the answer; None if unknown.
        blocks: The names of the blocks with which the prompt begins; equal names are equal texts.
        sizes: The tokens of each block.
        messages: The messages of the prompt.
        fields: Further fields of the body of the request.
    """

    location: str
    after: tuple[int, ...] = ()
    delay_s: float = 0.0
    input_tokens: int = UNPLANNED
    output_tokens: int | None = None
    blocks: Sequence[int] = ()
    sizes: Sequence[int] = ()
    messages: tuple[dict[str, Any], ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RecordedSession:
    """The calls of one session.

    Attributes:
        name: Its name in the file.
        calls: At least one, each after those that it waited for; only the first waited for none.
        is_global: Whether blocks of the same name in other sessions are the same.
    """

    name: str
    calls: list[RecordedCall]
    is_global: bool = False

    def without_first(self, count: int) -> "RecordedSession":
        """Return the session without its first calls; what waited for these alone waits for the
        first of the others.
        """
        kept = []
        for number, call in enumerate(self.calls[count:]):
            after = tuple(before - count for before in call.after if before >= count)
            kept.append(
                replace(call, after=after)
                if after
                else replace(call, after=(0,) * (number > 0), delay_s=0.0)
            )
        return replace(self, calls=kept)


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

    def error(self, problem: str, remedy: str = ROW_REMEDY) -> BadInput:
        """Return an error of this object that names its location."""
        return BadInput(DATASET_PATH, f"{self.path}, {self.location}: {problem}", remedy)

    def wrong(self, name: str, value: Any, expected: str) -> BadInput:
        """Return an error of a field that is missing, or whose value is not what is wanted, such
        as "a date".
        """
        return self.error(
            f"{name!r} is "
            + ("missing" if value is None else f"{str(value)[:40]!r}, not {expected}")
        )

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
        value = next(
            (self.fields[field] for field in (name, *others) if self.fields.get(field) is not None),
            default,
        )
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
            JsonRow(
                self.path,
                f"{self.location}, {name}[{number}]",
                self.of_kind(dict, f"{name}[{number}]", item),
            )
            for number, item in enumerate(objects)
        ]


def read_rows(path: Path, remedy: str) -> Iterator[JsonRow]:
    """Yield the objects of a file: JSON lines, one JSON object, or a list of objects.

    Args:
        path: The file.
        remedy: What to give in place of a file that cannot be used.

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


def direct_predecessors(times: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return which calls each call waited for, as far as times show it.

    A call waited for those that had ended when it began, but for those that others of these had
    waited for in turn. (Fishburn, Interval Orders and Interval Graphs, 1985: the cover relation of
    the order by time.)

    Args:
        times: Begin and end of each call, ascending by begin.

    Returns:
        For each call the numbers of others, ascending; empty if it began before any had ended.
    """
    by_end = sorted(range(len(times)), key=lambda number: (times[number][1], number))
    predecessors, direct, ended = list[list[int]](), list[int](), 0
    for number, (begin, _) in enumerate(times):
        while ended < len(by_end) and by_end[ended] < number and times[by_end[ended]][1] <= begin:
            direct.append(by_end[ended])
            ended += 1
        # The one that began last waited for all that had ended by then.
        last = max(direct, default=-1)
        direct = [call for call in direct if call == last or times[call][1] > times[last][0]]
        predecessors.append(sorted(direct))
    return predecessors


def _objects(path: Path, location: str, data: bytes, remedy: str) -> Iterator[JsonRow]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(DATASET_PATH, f"{path}, {location}: not JSON ({error})", remedy) from error
    for number, item in enumerate(value if isinstance(value, list) else [value], 1):
        place = f"{location}, object {number}" if isinstance(value, list) else location
        if not isinstance(item, dict):
            raise BadInput(DATASET_PATH, f"{path}, {place}: not a JSON object", remedy)
        yield JsonRow(path, place, item)
