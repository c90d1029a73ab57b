"""`TraceDataset`: requests with the times and lengths of a trace, and random words as texts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.block_texts import BlockTexts, check_blocks
from loadgen.workload.datasets.trace_file import COLUMNS, TraceFile, TraceRow
from loadgen.workload.files import file_hash
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.random_text import RandomText, prefix_rows
from loadgen.workload.tokenizer.tokenizer import Tokenizer

COLUMN = "--trace-column"


@dataclass(frozen=True)
class TraceDataset:
    """The requests of a trace in the order of their times; texts are random words, exact to the token.

    The prompt of a row with blocks consists of these blocks, so prompts share the prefixes that they shared in the
    trace. A block is the prefix of its number: its words do not depend on how many of them a prompt uses.

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
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--trace-*`, `--time-scale`, `--duration` and `--tokenizer`."""
        path, columns = dataset_path(settings, "give the file of a trace"), _columns(settings.trace_column)
        file = TraceFile(path, settings.trace_format, columns, settings.trace_time_unit)
        drawing = RandomText.of(settings)
        first_ns, rows = file.rows[0].at_ns, file.rows
        keeps_times = settings.trace_times == "keep"
        if settings.duration is not None and keeps_times:
            end_ns = first_ns + settings.duration * settings.time_scale * NS_PER_S
            rows = list(itertools.takewhile(lambda row: row.at_ns < end_ns, rows))
        return cls(file, rows, drawing, settings.time_scale if keeps_times else None, settings.trace_block_size)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the prompts."""
        return self.drawing.tokenizer

    @property
    def requests(self) -> int:
        """The number of requests within the duration of the run."""
        return len(self.rows)

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` prompts, fewer if the trace ends before."""
        blocks = BlockTexts(self.drawing)
        first_ns, special = self.file.rows[0].at_ns, self.tokenizer.special_tokens
        for row in self.rows[:count]:
            tokens = max(row.input_tokens - special, 1)
            try:
                check_blocks(len(row.blocks), self.block_tokens, row.input_tokens)
            except ValueError as error:
                problem = f"{self.file.path}, line {row.line}: {error}"
                remedy = "give the size of its blocks: --trace-block-size TOKENS"
                raise BadInput(DATASET_PATH, problem, remedy) from error
            due_ns = None if self.time_scale is None else round((row.at_ns - first_ns) / self.time_scale)
            sizes = [self.block_tokens] * len(row.blocks)
            text = blocks.text(prefix_rows(row.blocks).tolist(), sizes, tokens, row.line)
            yield Prompt(text, tokens + special, row.output_tokens, f"trace/{row.line}", due_ns=due_ns)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "trace",
            "rule": "at the rate of the run" if self.time_scale is None else "at the trace's times",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": file_hash.sha256(self.file.path),
            "rows": len(self.file.rows),
            "rows_left_out": self.file.left_out,
            "time_scale": self.time_scale,
            "block_tokens": self.block_tokens,
            "seed_prompts": self.drawing.seed,
            "words": len(self.drawing.words.items),
            **self.tokenizer.provenance(),
        }


def _columns(given: Sequence[str]) -> dict[str, str]:
    """Read `--trace-column`: the name of each field in the file.

    Raises:
        BadInput: A field is unknown, or has no name.
    """
    found = dict(pair.partition("=")[::2] for pair in given)
    for name, column in found.items():
        if name not in COLUMNS or not column:
            problem = f"unknown field or empty column in {name!r}"
            raise BadInput(COLUMN, problem, f"write FIELD=COLUMN with {', '.join(COLUMNS)}")
    return found
