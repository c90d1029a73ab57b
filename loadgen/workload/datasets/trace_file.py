"""Trace files: when requests came and how long they and their answers were, in the formats that are published."""

import csv
import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.lengths import MOST
from loadgen.workload.files.mapped_file import FIELD

REMEDY = "mend the line, or take it out"
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request.

    Attributes:
        line: Where it stands in the file, from 1 on.
        at_ns: When it came, ns since whatever the file counts from.
        input_tokens: Of the prompt.
        output_tokens: Of the answer.
        blocks: The numbers of the blocks its prompt consists of; prompts share what has the same number.
    """

    line: int
    at_ns: int
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """What a format calls its times and lengths.

    Attributes:
        at: The name of the time.
        input, output: Of the lengths.
        ns: What a time says, in ns.
        blocks: The name of the list of blocks, "" for none.
    """

    at: str
    input: str
    output: str
    ns: Callable[[Any], int]
    blocks: str = ""


def _number(told: Any, unit_ns: int) -> int:
    seconds, _, fraction = str(told).partition(".")
    if isinstance(told, bool) or not seconds.isdecimal() or not (fraction or "0").isdecimal():
        at = float(told)  # in whatever else a number is written
        return round(at * unit_ns)
    return int(seconds) * unit_ns + round(float(f"0.{fraction or 0}") * unit_ns)


def _date(told: Any) -> int:
    at = datetime.datetime.fromisoformat(told)
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)
    since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


FORMATS = {
    # https://github.com/kvcache-ai/Mooncake: JSON lines, times in ms
    "mooncake": Format(
        "timestamp", "input_length", "output_length", lambda told: _number(told, NS_PER_MS), blocks="hash_ids"
    ),
    # https://github.com/HPMLL/BurstGPT: CSV, times in s
    "burstgpt": Format("Timestamp", "Request tokens", "Response tokens", lambda told: _number(told, NS_PER_S)),
    # https://github.com/Azure/AzurePublicDataset: CSV, times as dates
    "azure": Format("TIMESTAMP", "ContextTokens", "GeneratedTokens", _date),
}


class TraceFile:
    """A file of one of the formats.

    Attributes:
        path: The file.
        format: The name of its format.
        rows: Its requests in the order of their times; those that asked or were answered nothing are left out.
        left_out: How many those are.

    Args:
        path: The file.
        format_name: One of FORMATS, or `auto` to go by the first line.

    Raises:
        BadInput: It cannot be read, or a row does not say what it should.
    """

    def __init__(self, path: Path, format_name: str = "auto") -> None:
        self.path = path
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                if not first or "\0" in first:
                    problem = "is no text: it holds NUL bytes" if first else "is empty"
                    raise BadInput(FIELD, f"{path} {problem}", "name the file of a trace")
                self.format = _recognised(path, first) if format_name == "auto" else format_name
                file.seek(0)
                told = _json_lines(path, file) if self.format == "mooncake" else _csv(path, file, FORMATS[self.format])
                rows = [_row(path, line, one, FORMATS[self.format]) for line, one in told]
        except OSError as error:
            raise BadInput(FIELD, f"{path}: {error.strerror}", "name the file of a trace") from error
        except UnicodeDecodeError as error:
            raise BadInput(FIELD, f"{path} is no text ({error.reason})", "name the unpacked file of a trace") from error
        self.rows = sorted((row for row in rows if row is not None), key=lambda row: row.at_ns)
        self.left_out = len(rows) - len(self.rows)
        if not self.rows:
            why = f": none of its {len(rows):,} rows has tokens asked and answered" if rows else ""
            raise BadInput(FIELD, f"{path} holds no request{why}", "name the file of a trace")


def _recognised(path: Path, first: str) -> str:
    if first.lstrip().startswith("{"):
        return "mooncake"
    names = {name.strip() for name in first.split(",")}
    for name, form in FORMATS.items():
        if {form.at, form.input, form.output} <= names:
            return name
    known = ", ".join(FORMATS)
    raise BadInput(FIELD, f"{path}, line 1: none of the formats {known}", "say which it is, with --trace-format")


def _json_lines(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadInput(FIELD, f"{path}, line {number}: no JSON ({error})", REMEDY) from error
        if not isinstance(told, dict):
            raise BadInput(FIELD, f"{path}, line {number}: no JSON object", REMEDY)
        yield number, told


def _csv(path: Path, lines: Iterator[str], form: Format) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(lines, skipinitialspace=True)
    missing = [name for name in (form.at, form.input, form.output) if name not in (reader.fieldnames or ())]
    if missing:
        raise BadInput(
            FIELD, f"{path}, line 1: there is no column {missing[0]!r}", "say which format it is, or mend it"
        )
    try:
        for told in reader:
            yield reader.line_num, told
    except csv.Error as error:
        raise BadInput(FIELD, f"{path}, line {reader.line_num}: no CSV ({error})", REMEDY) from error


def _row(path: Path, line: int, told: dict[str, Any], form: Format) -> TraceRow | None:
    """The request that a line tells of; None where nothing was asked or answered."""
    lengths = []
    for name in (form.input, form.output):
        try:
            if not 0 <= (tokens := float(told[name])) <= MOST or tokens % 1:
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise _refusal(path, line, name, told, "number of tokens") from error
        lengths.append(int(tokens))
    try:
        at_ns = form.ns(told[form.at])
        if not 0 <= at_ns < 1 << 62:
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _refusal(path, line, form.at, told, "time") from error
    blocks = told.get(form.blocks) or ()
    if not isinstance(blocks, list | tuple) or not all(type(block) is int and block >= 0 for block in blocks):
        raise _refusal(path, line, form.blocks, told, "list of numbers")
    return TraceRow(line, at_ns, lengths[0], lengths[1], tuple(blocks)) if all(lengths) else None


def _refusal(path: Path, line: int, name: str, told: dict[str, Any], kind: str) -> BadInput:
    value = repr(told[name])[:40] if told.get(name) is not None else "missing"
    return BadInput(FIELD, f"{path}, line {line}: {name!r} is {value}, no {kind}", REMEDY)
