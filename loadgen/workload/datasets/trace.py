"""`TraceDataset`: requests with the times and lengths of a trace, and random words as texts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.trace_file import TraceFile, TraceRow
from loadgen.workload.files import file_hash
from loadgen.workload.files.mapped_file import FIELD, dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer import word_list
from loadgen.workload.tokenizer.random_text import RandomText, prefix_rows
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BLOCK_TOKENS = 512  # tokens of a block that prompts of a Mooncake trace share
CACHED_BLOCKS = 16_384  # texts of blocks in memory: about 50 MB


@dataclass(frozen=True)
class TraceDataset:
    """The requests of a trace in the order of their times; texts are random words, exact to the token.

    The prompt of a row with blocks consists of these blocks, so prompts share the prefixes that they shared in the
    trace. A block is the prefix of its number: its words do not depend on how many of them a prompt uses.

    Attributes:
        file: The trace.
        rows: The rows within the run.
        drawing: Draws the words.
        time_scale: Factor by which requests are sent faster.
    """

    file: TraceFile
    rows: list[TraceRow] = field(repr=False)
    drawing: RandomText
    time_scale: float

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--trace-format`, `--time-scale`, `--duration` and `--tokenizer`.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        file = TraceFile(dataset_path(settings, "give the file of a trace"), settings.trace_format)
        tokenizer = tokenizers.tokenizer_of(settings)
        drawing = RandomText(tokenizer, word_list.words_of(tokenizer), seed_of(settings, "prompts"))
        first_ns, rows = file.rows[0].at_ns, file.rows
        if settings.duration is not None:
            end_ns = first_ns + settings.duration * settings.time_scale * NS_PER_S
            rows = list(itertools.takewhile(lambda row: row.at_ns < end_ns, rows))
        return cls(file, rows, drawing, settings.time_scale)

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
        blocks = Blocks(self.drawing)
        first_ns, special = self.file.rows[0].at_ns, self.tokenizer.special_tokens
        for row in self.rows[:count]:
            tokens = max(row.input_tokens - special, 1)
            if len(row.blocks) > -(-row.input_tokens // BLOCK_TOKENS):
                problem = (
                    f"{self.file.path}, line {row.line}: {len(row.blocks)} blocks of {BLOCK_TOKENS} tokens are more"
                )
                raise BadInput(FIELD, f"{problem} than its {row.input_tokens}", "use a trace of blocks of that size")
            due_ns = round((row.at_ns - first_ns) / self.time_scale)
            source = f"trace/{row.line}"
            yield Prompt(self._text(row, tokens, blocks), tokens + special, row.output_tokens, source, due_ns=due_ns)

    def provenance(self) -> dict[str, Any]:
        """Return the file's name, format and hash, the use of it, and the tokenizer's name and hash."""
        return {
            "name": "trace",
            "rule": "at the trace's times",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": file_hash.sha256(self.file.path),
            "rows": len(self.file.rows),
            "rows_left_out": self.file.left_out,
            "time_scale": self.time_scale,
            "seed_prompts": self.drawing.seed,
            "words": len(self.drawing.words.items),
            **self.tokenizer.provenance(),
        }

    def _text(self, row: TraceRow, tokens: int, blocks: "Blocks") -> str:
        """Make the text of a row: its blocks, with the last one cut, or its own words."""
        whole = min(len(row.blocks), (tokens - 1) // BLOCK_TOKENS)
        cut = row.blocks[whole : whole + 1]
        rest = prefix_rows(cut) if cut else np.array([row.line], dtype=np.uint64)
        before = BLOCK_TOKENS * whole
        (text,) = self.drawing.texts(rest, [tokens - before], [blocks.text(row.blocks[:whole])], before)
        return text


class Blocks:
    """Texts of complete blocks. The most recent ones stay in memory, because later prompts begin with them."""

    def __init__(self, drawing: RandomText) -> None:
        self._drawing, self._texts = drawing, dict[int, str]()

    def text(self, numbers: Sequence[int]) -> str:
        """Return the text of blocks in order."""
        missing = [number for number in dict.fromkeys(numbers) if number not in self._texts]
        if missing:
            self._texts.update(zip(missing, self._drawing.prefixes(BLOCK_TOKENS, missing), strict=True))
        text = " ".join(self._texts[number] for number in numbers)
        for number in list(itertools.islice(self._texts, max(0, len(self._texts) - CACHED_BLOCKS))):
            del self._texts[number]
        return text
