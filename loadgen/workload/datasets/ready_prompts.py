"""Ready prompts: rows of a file, sent as they are."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.prompt_rows import counted
from loadgen.workload.datasets.row_file import REMEDY, RowFile
from loadgen.workload.files.mapped_file import path_of
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import OnDemand

BATCH = 256  # rows read and encoded at a time


@dataclass(frozen=True, slots=True)
class ReadyDataset:
    """The rows of a file: `jsonl` and `csv` in its order, `custom` shuffled by `seed_order` as `vllm bench serve` does.

    Where the file has too few rows they are sent again from the first on. A row's own lengths are believed.

    Attributes:
        name: What it was called: jsonl, csv or custom.
        rows: The file.
        output_tokens: Tokens wanted of an answer whose row does not say; -1: every row does.
        settings: Say how rows are ordered.
        tokenizer: Called for when the first row is met that says no `input_tokens`.
    """

    name: str
    rows: RowFile
    output_tokens: int
    settings: RunSettings
    tokenizer: OnDemand

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Make it of `--dataset-path`, `--custom-output-len`, `--disable-shuffle`, `--tokenizer` and the order's seed.

        Raises:
            BadInput: The file cannot be used.
        """
        name = settings.dataset_name
        rows = RowFile(path_of(settings, REMEDY), "csv" if name == "csv" else "jsonl", strict=name != "custom")
        return cls(name, rows, settings.custom_output_len, settings, OnDemand(settings))

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """The file and the tokenizer's; None where the first row says its length: then there is nothing to count."""
        tokenizer = tokenizers.file_of(settings)
        rows = cls.from_settings(settings).rows
        return None if tokenizer is None or rows[0].input_tokens is not None else [rows.path, tokenizer]

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, of which the first k are those of `prompts(k)`; a batch at a time is in memory.

        Raises:
            BadInput: A row cannot be used, or says no length and there is no tokenizer.
        """
        return self._made(islice(cycle(self._order()), count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the rows after the first `count`, each once.

        Raises:
            BadInput: As `prompts`.
        """
        return self._made(islice(self._order(), count, None))

    def _made(self, numbers: Iterator[int]) -> Iterator[Prompt]:
        while batch := [self.rows[number] for number in islice(numbers, BATCH)]:
            for row, tokens in zip(batch, counted(batch, self.tokenizer), strict=True):
                if row.output_tokens is None and self.output_tokens < 0:
                    raise BadInput("--custom-output-len", "-1, and a row says no output_tokens", "give a length")
                yield row.prompt(tokens, row.output_tokens or self.output_tokens)

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file and what its rows leave open; reads the whole file."""
        return {
            "name": self.name,
            "rule": "in a shuffled order" if self._is_shuffled else "in the file's order",
            "seed_order": seed_of(self.settings, "order") if self._is_shuffled else None,
            "output_tokens": self.output_tokens,
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }

    @property
    def _is_shuffled(self) -> bool:
        return self.name == "custom" and not self.settings.disable_shuffle

    def _order(self) -> "range | list[int]":
        if not self._is_shuffled:
            return range(len(self.rows))
        order = list(range(len(self.rows)))
        random.Random(seed_of(self.settings, "order")).shuffle(order)
        return order
