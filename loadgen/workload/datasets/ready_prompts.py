"""`ReadyDataset`: ready prompts from the rows of a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from loadgen.config.data import CUSTOM_IMAGE
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.datasets.chat_sessions import ChatSessions
from loadgen.workload.datasets.hub.order import shuffled_list
from loadgen.workload.datasets.image_rows import with_messages
from loadgen.workload.datasets.prompt_rows import count_tokens
from loadgen.workload.datasets.row_file import REMEDY, Kind, RowFile
from loadgen.workload.files.mapped_file import dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer, tokenizer_file

OF_IMAGES = "give JSON lines with prompt and image_files, or with content"
BATCH = 256  # rows read and encoded at a time


@dataclass(frozen=True, slots=True)
class ReadyDataset:
    """The rows of a file: `jsonl` and `csv` in its order, `custom` and `custom_image` shuffled by `seed_order`.

    Attributes:
        tokenizer: Loaded for the first row without `input_tokens`.
    """

    # They are shuffled as in `vllm bench serve`. If the file has too few rows, they are repeated. Lengths of a row are
    # not counted.

    rows: RowFile
    settings: RunSettings
    tokenizer: LazyTokenizer

    @classmethod
    def from_settings(cls, settings: RunSettings) -> "ReadyDataset | ChatSessions":
        """Create the data set from `--dataset-path`, `--custom-output-len`, `--disable-shuffle` and `--tokenizer`."""
        # With `--turns`, the chats of `jsonl` and `csv` are sessions.
        name = settings.dataset_name
        if name == CUSTOM_IMAGE:
            convert = partial(with_messages, embeds=settings.custom_ensure_client_side_data)
            rows = RowFile(dataset_path(settings, OF_IMAGES), "jsonl", strict=False, convert=convert, remedy=OF_IMAGES)
        else:
            kind: Kind = "csv" if name == "csv" else "jsonl"
            rows = RowFile(dataset_path(settings, REMEDY), kind, strict=name != "custom")
        if settings.turns not in (None, "1"):
            return ChatSessions.of(rows, settings)
        return cls(rows, settings, LazyTokenizer(settings))

    @classmethod
    def made_of(cls, settings: RunSettings) -> list[Path] | None:
        """Return the file and the tokenizer's file; None if the first row has its length: nothing is counted then."""
        # Sessions are not cached either, nor rows with images: those would be in the cache, too.
        if settings.dataset_name == CUSTOM_IMAGE or settings.timed_by_data:
            return None
        tokenizer = tokenizer_file(settings)
        rows = cls.from_settings(settings).rows
        return None if tokenizer is None or rows[0].input_tokens is not None else [rows.path, tokenizer]

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the first k of which are those of `prompts(k)`. One batch at a time is in memory.

        Raises:
            BadInput: A row cannot be used, or has no length and there is no tokenizer.
        """
        return self._generate(islice(cycle(self._order()), count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the rows after the first `count`, each once.

        Raises:
            BadInput: As `prompts`.
        """
        return self._generate(islice(self._order(), count, None))

    def _generate(self, numbers: Iterator[int]) -> Iterator[Prompt]:
        while batch := [self.rows[number] for number in islice(numbers, BATCH)]:
            for row, tokens in zip(batch, count_tokens(batch, self.tokenizer), strict=True):
                if row.output_tokens is None and self.settings.custom_output_len < 0:
                    raise BadInput("--custom-output-len", "is -1, and a row has no output_tokens", "give a length")
                if row.fields:
                    where = f"extra_body of {row.source} in {self.rows.path}"
                    endpoints.check_row_fields(where, row.fields, self.settings)
                yield row.prompt(tokens, row.output_tokens or self.settings.custom_output_len)

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": self.settings.dataset_name,
            "rule": "in a shuffled order" if self._is_shuffled else "in the file's order",
            "seed_order": seed_of(self.settings, "order") if self._is_shuffled else None,
            "output_tokens": self.settings.custom_output_len,
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }

    @property
    def _is_shuffled(self) -> bool:
        return self.settings.dataset_name in ("custom", CUSTOM_IMAGE) and not self.settings.disable_shuffle

    def _order(self) -> "range | list[int]":
        order = range(len(self.rows))
        return shuffled_list(order, seed_of(self.settings, "order")) if self._is_shuffled else order
