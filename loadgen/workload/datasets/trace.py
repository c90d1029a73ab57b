"""`TraceDataset`: requests with the times and lengths of a trace, and random words as texts.

`TraceFile` reads times and lengths from the published trace formats.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets import recorded_requests
from loadgen.workload.datasets.lengths import MAX_TOKENS
from loadgen.workload.datasets.recorded_requests import REQUESTS, RecordedRequests
from loadgen.workload.datasets.trace_times import NS_PER_MS, columns_of, count_within, time_ns
from loadgen.workload.files import cache
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path, parse_object
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.random_text import BlockTexts, RandomText, check_blocks, prefix_rows
from loadgen.workload.tokenizer.tokenizer import Tokenizer

LINE_REMEDY = "correct the line, or remove it"
COLUMNS = ("time", "input", "output", "blocks")  # fields of a format that --trace-column names


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request of a trace.

    Attributes:
        line: Its line in the file, from 1.
        at_ns: Its time, ns, from any origin.
        input_tokens: Tokens of the prompt.
        output_tokens: Tokens of the answer.
        blocks: The numbers of the blocks of its prompt; equal numbers are equal texts.
    """

    line: int
    at_ns: int
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """The names of the fields in a format.

    Attributes:
        time: The time.
        input: The tokens of the prompt.
        output: The tokens of the answer.
        unit_ns: How long a time of 1 is, ns; None: times are dates.
        blocks: The list of blocks, "" for none.
    """

    time: str
    input: str
    output: str
    unit_ns: int | None
    blocks: str = ""


FORMATS = {
    # https://github.com/kvcache-ai/Mooncake: JSON lines, times in ms
    "mooncake": Format("timestamp", "input_length", "output_length", NS_PER_MS, blocks="hash_ids"),
    # https://github.com/HPMLL/BurstGPT: CSV, times in s
    "burstgpt": Format("Timestamp", "Request tokens", "Response tokens", NS_PER_S),
    # https://github.com/Azure/AzurePublicDataset: CSV, times as dates
    "azure": Format("TIMESTAMP", "ContextTokens", "GeneratedTokens", None),
}


class TraceFile:
    """A trace file in one of FORMATS.

    Attributes:
        path: The file.
        format: The name of its format.
        rows: Its requests in the order of their times, without those of 0 input or output tokens.
        left_out: The number of requests without input or output tokens.

    Args:
        path: The file.
        format_name: One of FORMATS, or `auto` to recognise it by the first line.
        columns: The names of fields in this file, by those in COLUMNS, if they are not those of the
            format.
        unit_s: Seconds of a time of 1, if it is not the unit of the format.
        timed: Whether each row must have a time; else rows without one are at the beginning, in the
            order of the file.

    Raises:
        BadInput: The file cannot be read, or a row is invalid.
    """

    def __init__(
        self,
        path: Path,
        format_name: str = "auto",
        columns: Mapping[str, str] | None = None,
        unit_s: float | None = None,
        *,
        timed: bool = True,
    ) -> None:
        if format_name not in ("auto", *FORMATS):
            raise BadInput(
                setting.trace_format,
                f"{format_name} has sessions of agents",
                f"give {setting.dataset_name} agentic",
            )
        self.path = path
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                if not first or "\0" in first:
                    problem = "contains NUL bytes" if first else "is empty"
                    raise BadInput(DATASET_PATH, f"{path} {problem}", "give the file of a trace")
                self.format = _recognised(path, first) if format_name == "auto" else format_name
                file.seek(0)
                changes: dict[str, Any] = dict(columns or {})
                if unit_s is not None:
                    changes["unit_ns"] = round(unit_s * NS_PER_S)
                form = replace(FORMATS[self.format], **changes)
                lines = (
                    _json_lines(path, file)
                    if self.format == "mooncake"
                    else _csv(path, file, form, timed=timed)
                )
                rows = [_row(path, line, record, form, timed=timed) for line, record in lines]
        except OSError as error:
            raise BadInput(
                DATASET_PATH, f"{path}: {error.strerror}", "give the file of a trace"
            ) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                DATASET_PATH,
                f"{path} is not a text ({error.reason})",
                "give the unpacked file of a trace",
            ) from error
        # its requests in the order of their times, without those of 0 input or output tokens
        self.rows = sorted((row for row in rows if row is not None), key=lambda row: row.at_ns)
        self.left_out = len(rows) - len(self.rows)
        if not self.rows:
            why = f": none of its {len(rows):,} rows has input and output tokens" if rows else ""
            raise BadInput(DATASET_PATH, f"{path} has no requests{why}", "give the file of a trace")


@dataclass(frozen=True)
class TraceDataset:
    """The requests of a trace in the order of their times; texts are random words, exact to the
    token.

    The prompt of a row with blocks consists of these blocks, so prompts share the prefixes that
    they shared in the trace. A block is the prefix of its number: its words do not depend on how
    many of them a prompt uses.

    Attributes:
        file: The trace.
        rows: The rows within the run.
        drawing: Draws the words.
        time_scale: Factor by which requests are sent faster; None: they have no due times.
        block_tokens: Tokens of a block.
    """

    file: TraceFile
    rows: list[TraceRow] = field(repr=False)
    drawing: RandomText
    time_scale: float | None
    block_tokens: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "Self | RecordedRequests":
        """Create the data set from `--dataset-path`, `--trace-*`, `--time-scale`, `--duration` and
        `--tokenizer`.

        Rows with bodies are sent as they are.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        path = dataset_path(settings, "give the file of a trace")
        if settings.trace_format == REQUESTS or (
            settings.trace_format == "auto" and recorded_requests.is_one(path)
        ):
            return RecordedRequests.of(path, settings)
        columns = columns_of(settings, COLUMNS)
        keeps_times = settings.trace_times == "keep"
        unit_s = settings.trace_time_unit
        file = TraceFile(path, settings.trace_format, columns, unit_s, timed=keeps_times)
        drawing = RandomText.of(settings)
        count = count_within(settings, path, [row.at_ns for row in file.rows])
        return cls(
            file,
            file.rows[:count],
            drawing,
            settings.time_scale if keeps_times else None,
            settings.trace_block_size,
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the prompts."""
        return self.drawing.tokenizer

    @property
    def requests(self) -> int:
        """The number of requests within the duration of the run."""
        return len(self.rows)

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` prompts, fewer if the trace ends before.

        Raises:
            BadInput: A row has more blocks than fit into its prompt.
        """
        blocks = BlockTexts(self.drawing)
        first_ns = self.file.rows[0].at_ns
        special = self.tokenizer.special_tokens
        for row in self.rows[:count]:
            tokens = max(row.input_tokens - special, 1)
            try:
                check_blocks(len(row.blocks), self.block_tokens, row.input_tokens)
            except ValueError as error:
                problem = f"{self.file.path}, line {row.line}: {error}"
                remedy = f"give the size of its blocks: {setting.trace_block_size} TOKENS"
                raise BadInput(DATASET_PATH, problem, remedy) from error
            due_ns = (
                None if self.time_scale is None else round((row.at_ns - first_ns) / self.time_scale)
            )
            sizes = [self.block_tokens] * len(row.blocks)
            text = blocks.text(prefix_rows(row.blocks).tolist(), sizes, tokens, row.line)
            yield Prompt(
                text, tokens + special, row.output_tokens, f"trace/{row.line}", due_ns=due_ns
            )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "trace",
            "rule": "at the rate of the run" if self.time_scale is None else "at the trace's times",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": cache.file_sha256(self.file.path),
            "rows": len(self.file.rows),
            "rows_left_out": self.file.left_out,
            "time_scale": self.time_scale,
            "block_tokens": self.block_tokens,
            "seed_prompts": self.drawing.seed,
            "words": len(self.drawing.words.items),
            **self.tokenizer.provenance(),
        }


def _recognised(path: Path, first: str) -> str:
    if first.lstrip().startswith("{"):
        return "mooncake"
    names = {name.strip() for name in first.split(",")}
    for name, form in FORMATS.items():
        if {form.time, form.input, form.output} <= names:
            return name
    formats = ", ".join(FORMATS)
    raise BadInput(
        DATASET_PATH,
        f"{path}, line 1: unknown format, none of {formats}",
        f"give {setting.trace_format}",
    )


def _json_lines(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, parse_object(path, f"line {number}", line, LINE_REMEDY)


def _csv(
    path: Path, lines: Iterator[str], form: Format, *, timed: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(lines, skipinitialspace=True)
    missing = [
        name
        for name in (*([form.time] if timed else []), form.input, form.output)
        if name not in (reader.fieldnames or ())
    ]
    if missing:
        raise BadInput(
            DATASET_PATH,
            f"{path}, line 1: missing column {missing[0]!r}",
            f"give {setting.trace_format}, or correct the file",
        )
    try:
        for record in reader:
            yield reader.line_num, record
    except csv.Error as error:
        raise BadInput(
            DATASET_PATH, f"{path}, line {reader.line_num}: not CSV ({error})", LINE_REMEDY
        ) from error


def _row(
    path: Path, line: int, record: dict[str, Any], form: Format, *, timed: bool
) -> TraceRow | None:
    lengths = []
    for name in (form.input, form.output):
        try:
            if not 0 <= (tokens := float(record[name])) <= MAX_TOKENS or tokens % 1:
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise _refusal(path, line, name, record, "number of tokens") from error
        lengths.append(int(tokens))
    try:
        missing = not timed and record.get(form.time) is None
        at_ns = 0 if missing else time_ns(record[form.time], form.unit_ns)
        if not 0 <= at_ns < 1 << 62:
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _refusal(path, line, form.time, record, "time") from error
    blocks = record.get(form.blocks) or ()
    if not isinstance(blocks, list | tuple) or not all(
        type(block) is int and block >= 0 for block in blocks
    ):
        raise _refusal(path, line, form.blocks, record, "list of numbers")
    return TraceRow(line, at_ns, lengths[0], lengths[1], tuple(blocks)) if all(lengths) else None


def _refusal(path: Path, line: int, name: str, record: dict[str, Any], kind: str) -> BadInput:
    value = repr(record[name])[:40] if record.get(name) is not None else "missing"
    return BadInput(
        DATASET_PATH, f"{path}, line {line}: {name!r} is {value}, not a {kind}", LINE_REMEDY
    )
