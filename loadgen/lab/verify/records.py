"""Records: the lines of a records file, as the documentation of their keys defines them.

This package shares no code with the rest of loadgen: it reads JSON with the standard library and
computes with decimals, slowly, so that a mistake of one is not a mistake of both.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]
BY_TEXT = ("content", "reasoning", "other")


class NotVerifiable(Exception):
    """A file that is no whole file of records, or no result."""


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
    def settings(self) -> Line:
        """The settings of the run."""
        settings: Line = self.head["heading"]["settings"]
        return settings


def read(path: Path) -> Run:
    """Read a file of records.

    Raises:
        NotVerifiable: It is not one, or the run was cut short.
    """
    lines = list(_lines(path))
    if not lines or "loadgen_records" not in lines[0]:
        raise NotVerifiable(f"{path} has no records in lines of JSON; write them with --records")
    if len(lines) < 2 or "end" not in lines[-1]:
        raise NotVerifiable(f"{path} has no last line: the run was cut short; verify a whole one")
    head, *middle, last = lines
    records = sorted((Record(line) for line in middle), key=lambda record: record.index)
    return Run(head, records, last["end"])


def read_result(path: Path) -> Line:
    """Read a saved result.

    Raises:
        NotVerifiable: It is not one.
    """
    (*_, result) = [*_lines(path)] or [{}]
    if not isinstance(result, dict) or "loadgen" not in result:
        raise NotVerifiable(f"{path} is no result of loadgen; save one with --save-result")
    return result


def _lines(path: Path) -> Iterator[Any]:
    try:
        text = path.read_text()
        yield json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError:
        try:
            for line in text.splitlines():
                yield json.loads(line, parse_float=Decimal)
        except json.JSONDecodeError as error:
            raise NotVerifiable(f"{path} is not JSON: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotVerifiable(f"{path} cannot be read: {error}") from error
