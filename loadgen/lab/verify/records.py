"""Records: the lines of a records file, as the documentation of their keys defines them.

This package shares no code with the rest of loadgen: it reads JSON with the standard library and
computes with decimals, slowly, so that a mistake of one is not a mistake of both.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from loadgen.lab.verify.shape import END, HEAD, RESULT, misfit, misfit_of_record

Line = Mapping[str, Any]
RECORDS_VERSION, RESULT_VERSION = 2, 1
WRITE_RECORDS = "name a file as --records wrote it"
WRITE_RESULT = "name a result as --save-result wrote it"


class NotVerifiable(Exception):
    """A file that is no whole file of records, or no result.

    Attributes:
        problem: What is wrong; it names the file.
        remedy: What to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True)
class Record:
    """One request. Times are ns from the start of the run's clock.

    Attributes:
        line: Its line.
    """

    line: Line

    @property
    def index(self) -> int:
        """The number of the request."""
        return int(self.line["index"])

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.line["outcome"])

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.outcome == "ok"

    @property
    def cut_off(self) -> bool:
        """Whether the end of the run or its user ended it."""
        return self.outcome in ("cancelled", "disconnected")

    @property
    def failed(self) -> bool:
        """Whether it ended, and not well."""
        return not self.ok and not self.cut_off

    @property
    def due(self) -> Decimal:
        """When it was due."""
        return Decimal(self.line["due"])

    def at(self, name: str) -> Decimal | None:
        """Return the time of an event; None: it did not happen."""
        offset = self.line.get(name)
        return None if offset is None else self.due + offset

    @property
    def times(self) -> Sequence[Decimal]:
        """The times of its events with tokens."""
        return [self.due + offset for offset in self.line["token_times"]]

    @property
    def tokens_per_event(self) -> Sequence[int]:
        """The tokens of each of these events."""
        counts = self.line.get("tokens_per_event")
        return counts if counts is not None else [1] * len(self.line["token_times"])

    @property
    def output_tokens(self) -> int:
        """Its output tokens: as the server counts them, else those of its events."""
        counted = self.line.get("completion_tokens")
        return int(counted) if counted is not None else sum(self.tokens_per_event)

    @property
    def span_ns(self) -> Decimal:
        """From its first to its last event with tokens."""
        return self.times[-1] - self.times[0]

    @property
    def tpot_ms(self) -> Decimal:
        """Its time per output token, as if its first event had one; of two tokens or more."""
        return self.span_ns / (self.output_tokens - 1) / 10**6

    @property
    def is_plain(self) -> bool:
        """Whether its events have exactly the tokens that it counts, so that which token came when
        is in its record.
        """
        return self.output_tokens == sum(self.tokens_per_event) and not self.line.get("whole")


@dataclass(frozen=True)
class Run:
    """A file of records.

    Attributes:
        head: Its first line.
        records: Of the requests, by index.
        end: What its last line has.
    """

    head: Line
    records: Sequence[Record]
    end: Line

    @property
    def ok(self) -> Sequence[Record]:
        """The requests that ended well."""
        return [record for record in self.records if record.ok]

    @property
    def never_sent(self) -> int:
        """How many requests the end of the run kept from being sent: each entry has the number of
        the first that a worker did not send, and how many those are.
        """
        return sum(count for _, count in self.end.get("never_sent") or ())

    @property
    def settings(self) -> Line:
        """The settings of the run."""
        settings: Line = self.head["heading"]["settings"]
        return settings


def read(path: Path) -> Run:
    """Read a file of records.

    Raises:
        NotVerifiable: It is not one, is of another version, or the run was cut short.
    """
    lines = _text(path).removesuffix("\n").split("\n")  # strings may have other ends of lines
    cut = NotVerifiable(
        f"{path} has no last line: the run was cut short, and counts that only it has are lost",
        f"read what is left of it with `loadgen report {path}`",
    )
    head = _json(path, lines[0], 1)
    if not isinstance(head, dict) or "loadgen_records" not in head:
        raise NotVerifiable(f"{path}: line 1 is not that of a file of records", WRITE_RECORDS)
    _check_version(path, "loadgen_records", head["loadgen_records"], RECORDS_VERSION)
    _check(path, 1, misfit(head, HEAD))
    records = []
    for number, text in enumerate(lines[1:-1], 2):
        line = _json(path, text, number)
        _check(path, number, misfit_of_record(line))
        records.append(Record(line))
    try:
        last = json.loads(lines[-1], parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise cut from error
    if not isinstance(last, dict) or "end" not in last:
        raise cut
    _check(path, len(lines), misfit(last, END))
    return Run(head, sorted(records, key=lambda record: record.index), last["end"])


def read_result(path: Path) -> dict[str, Any]:
    """Read a saved result; of several in lines of JSON the last.

    Raises:
        NotVerifiable: It is not one, or is of another version.
    """
    text = _text(path)
    try:
        result: Any = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        lines = text.removesuffix("\n").split("\n")
        result = _json(path, lines[-1], len(lines))
    own = result.get("loadgen") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(own, dict):
        raise NotVerifiable(f"{path} is no result of loadgen", WRITE_RESULT)
    _check_version(path, "loadgen.schema", own.get("schema"), RESULT_VERSION)
    wrong = misfit(result, RESULT)
    if wrong is not None:
        raise NotVerifiable(f"{path}: {wrong}", WRITE_RESULT)
    return result


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise NotVerifiable(f"{path}: {error.strerror}", "name a file that can be read") from error
    except UnicodeDecodeError as error:
        remedy = f"write a journal out in lines of JSON with `loadgen report {path}`"
        raise NotVerifiable(f"{path} is not JSON", remedy) from error


def _json(path: Path, text: str, number: int) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        remedy = "name a file as loadgen wrote it"
        raise NotVerifiable(f"{path}: line {number} is not JSON", remedy) from error


def _check(path: Path, number: int, wrong: str | None) -> None:
    if wrong is not None:
        raise NotVerifiable(f"{path}: line {number}: {wrong}", WRITE_RECORDS)


def _check_version(path: Path, key: str, version: object, known: int) -> None:
    if version != known or isinstance(version, bool):
        has = f"no {key}" if version is None else f"{key} {version!r}"
        problem = f"{path} has {has}, and this verify knows {known}"
        raise NotVerifiable(problem, "verify it with the version of loadgen that wrote it")
