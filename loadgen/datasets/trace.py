"""Traces: requests that come when they once came, as long as they were then, of words of our own."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from loadgen.clock import NS_PER_S
from loadgen.datasets import kept
from loadgen.datasets import tokenizer as tokenizers
from loadgen.datasets.mapped import FIELD
from loadgen.datasets.tokenizer import Tokenizer
from loadgen.datasets.trace_file import TraceFile, TraceRow
from loadgen.datasets.words import Words, fitted
from loadgen.errors import BadInput
from loadgen.prompts import Prompt
from loadgen.settings import RunSettings, seed_of

BLOCK_TOKENS = 512  # of a block that prompts of a Mooncake trace share
BLOCKS_KEPT = 16_384  # texts of blocks that are not made anew: some 50 MB
OWN, BLOCK = range(2)  # what words are drawn for


@dataclass(frozen=True)
class TraceDataset:
    """The requests of a trace, in the order of their times; texts are words, exact to the token.

    Where a row names blocks, its prompt is put together from these, so that prompts begin alike where those did.

    Attributes:
        file: The trace.
        rows: What of it is within the run.
        tokenizer: What counts the tokens.
        words: Its words.
        seed: Draws the texts.
        time_scale: How many times as fast requests come.
    """

    file: TraceFile
    rows: list[TraceRow] = field(repr=False)
    tokenizer: Tokenizer
    words: Words
    seed: int
    time_scale: float

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--dataset-path`, `--trace-format`, `--time-scale`, `--duration`, `--tokenizer` and the seed.

        Raises:
            BadInput: The file or the tokenizer cannot be used.
        """
        if settings.dataset_path is None:
            raise BadInput(FIELD, "is not given, and a trace is a file", "name it")
        file = TraceFile(Path(settings.dataset_path).expanduser(), settings.trace_format)
        tokenizer = tokenizers.of_settings(settings)
        first_ns, rows = file.rows[0].at_ns, file.rows
        if settings.duration is not None:
            end_ns = first_ns + settings.duration * settings.time_scale * NS_PER_S
            rows = list(itertools.takewhile(lambda row: row.at_ns < end_ns, rows))
        return cls(file, rows, tokenizer, Words.of(tokenizer), seed_of(settings, "prompts"), settings.time_scale)

    @property
    def requests(self) -> int:
        """How many there are within the run's duration."""
        return len(self.rows)

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` prompts, fewer where the trace ends before.

        Raises:
            BadInput: A row names more blocks than its prompt has room for.
        """
        text_of = functools.lru_cache(BLOCKS_KEPT)(self._block)
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
            yield Prompt(self._text(row, tokens, text_of), tokens + special, row.output_tokens, source, due_ns=due_ns)

    def provenance(self) -> dict[str, Any]:
        """Return the file's name, format and hash, what is made of it, and the tokenizer's name and hash."""
        return {
            "name": "trace",
            "rule": "at the trace's times",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": kept.sha256(self.file.path),
            "rows": len(self.file.rows),
            "rows_left_out": self.file.left_out,
            "time_scale": self.time_scale,
            "seed_prompts": self.seed,
            "words": len(self.words.items),
            "tokenizer": self.tokenizer.name,
            "tokenizer_sha256": self.tokenizer.sha256,
        }

    def _text(self, row: TraceRow, tokens: int, text_of: Any) -> str:
        """The blocks of a row, as far as there are, and words of its own, cut to so many tokens."""
        drawn = tokens if self.words.additive else 2 * tokens  # where words may join into one token
        whole = [text_of(block) for block in row.blocks]
        missing = drawn - BLOCK_TOKENS * len(whole)
        if missing > 0:
            whole.append(self._drawn(OWN, row.line, missing))
        words = " ".join(whole).split(" ")
        return " ".join(words[:tokens]) if self.words.additive else fitted([words], [tokens], self.tokenizer)[0]

    def _block(self, number: int) -> str:
        return self._drawn(BLOCK, number, BLOCK_TOKENS)

    def _drawn(self, purpose: int, number: int, count: int) -> str:
        """So many words: a function of the seed and of what they are for."""
        generator = np.random.default_rng([self.seed, *b"trace", purpose, number])
        return " ".join(self.words.items.take(generator.integers(0, len(self.words.items), count)).tolist())
