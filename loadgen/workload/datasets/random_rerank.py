"""`random-rerank`: a query of random words, and documents to be scored with it, as in `vllm bench
serve`.

`TextBatches` makes requests of several texts from the prompts of another data set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from loadgen.config.data import parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.lengths import INPUT_LEN, WHOLE, Lengths
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.prompt import Continued, Dataset, Prompt
from loadgen.workload.tokenizer.random_text import RandomText, generator

SEPARATOR = 1  # token between a query and a document
QUERY_LENGTH = 5  # the random stream of its length, beside those of `random_text`


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
        return self._batches(
            self.texts.beyond(self._texts_of(count)) if isinstance(self.texts, Continued) else ()
        )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return self.texts.provenance() | {"batch_size": self.size}

    def _texts_of(self, count: int) -> int:
        texts = count * self.size
        return texts if self.total is None else min(texts, self.total)

    def _batches(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        waiting = iter(prompts)
        while batch := list(islice(waiting, self.size)):
            tokens = (
                sum(prompt.input_tokens + self.tokens_per_text for prompt in batch)
                + self.query_tokens
            )
            texts = tuple(prompt.text for prompt in batch)
            yield Prompt(
                "", tokens, 0, batch[0].source, texts=(self.query, *texts) if self.query else texts
            )


class RandomRerankDataset:
    """Creates the data set: one query in all requests, with --random-batch-size documents each.

    A reranker reads the query with each document: both together have --random-input-len tokens,
    half of them the query's. With --no-reranker a model embeds each text alone: each has
    --random-input-len tokens, and the query is one of the texts of the batch and of --num-prompts.
    """

    @classmethod
    def from_settings(cls, settings: RunSettings) -> TextBatches:
        """Create the data set from `--random-input-len`, `--random-range-ratio`, the batch size and
        the seeds.

        Raises:
            BadInput: A length is no number or too small, or a setting of other data sets is given.
        """
        if settings.random_prefix_len:
            problem = "has no effect on random-rerank, whose query all requests share"
            raise BadInput(setting.random_prefix_len, problem, "leave it out")
        if not WHOLE.fullmatch(str(settings.random_input_len)):
            problem = (
                f"{settings.random_input_len!r} is not a number, which random-rerank needs "
                "to divide it"
            )
            raise BadInput(
                INPUT_LEN, problem, f"give one number, and {setting.random_range_ratio} for a range"
            )
        length = int(settings.random_input_len)
        together = not settings.no_reranker
        ratio, _ = parse_ratios(settings.random_range_ratio)
        drawing = RandomText.of(settings)
        special = drawing.tokenizer.special_tokens
        least = 2 * (special + 1 + SEPARATOR) if together else special + 1
        if length < least:
            raise BadInput(
                INPUT_LEN, f"{length} leaves no token for the query", f"give at least {least}"
            )
        query_mean = length // 2 - SEPARATOR if together else length
        drawn = Lengths.around(INPUT_LEN, query_mean, ratio, less=special).draw(
            generator(drawing.seed, QUERY_LENGTH), 1
        )
        query_tokens = int(drawn[0])
        document_mean = length - query_tokens - SEPARATOR if together else length
        inputs = Lengths.around(INPUT_LEN, document_mean, ratio, less=special)
        documents = RandomDataset(drawing, inputs, Lengths(1, 1), seed_of(settings, "order"))
        query = drawing.prefix(query_tokens).text
        size = settings.random_batch_size
        total = settings.num_prompts
        if together:
            return TextBatches(documents, size, total, query, 0, query_tokens + SEPARATOR)
        total = None if total is None else total - 1
        return TextBatches(documents, size - 1, total, query, query_tokens + special)
