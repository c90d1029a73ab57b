"""`TextBatches`: requests of several texts, made of the prompts of another data set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from loadgen.workload.prompt import Continued, Dataset, Prompt


@dataclass(frozen=True, slots=True)
class TextBatches:
    """Batches of the prompts of a data set; the last batch may be smaller.

    Attributes:
        texts: The data set.
        size: Texts in each request.
        total: Texts in all; None: `size` in each request.
        query: A text that stands first in each request; empty: none.
        query_tokens: Tokens of it, counted once in each request.
        tokens_per_text: Tokens counted with each text, beside its own.
    """

    texts: Dataset
    size: int
    total: int | None
    query: str = ""
    query_tokens: int = 0
    tokens_per_text: int = 0

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` requests, the same in every call."""
        return self._batches(self.texts.prompts(self._texts_of(count)))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the requests after the first `count`; none if the data set has no further texts."""
        return self._batches(self.texts.beyond(self._texts_of(count)) if isinstance(self.texts, Continued) else ())

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return self.texts.provenance() | {"batch_size": self.size}

    def _texts_of(self, count: int) -> int:
        texts = count * self.size
        return texts if self.total is None else min(texts, self.total)

    def _batches(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        waiting = iter(prompts)
        while batch := list(islice(waiting, self.size)):
            tokens = sum(prompt.input_tokens + self.tokens_per_text for prompt in batch) + self.query_tokens
            texts = tuple(prompt.text for prompt in batch)
            yield Prompt("", tokens, 0, batch[0].source, texts=(self.query, *texts) if self.query else texts)
