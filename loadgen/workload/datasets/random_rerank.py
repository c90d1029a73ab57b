"""`random-rerank`: a query of random words, and documents to be scored with it, as in `vllm bench serve`."""

from loadgen.config.data import parse_ratios
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.workload.datasets.lengths import INPUT_LEN, WHOLE, Lengths
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.datasets.text_batches import TextBatches
from loadgen.workload.tokenizer.random_text import RandomText, generator

SEPARATOR = 1  # token between a query and a document
QUERY_LENGTH = 5  # the random stream of its length, beside those of `random_text`


class RandomRerankDataset:
    """Creates the data set: one query in all requests, with --random-batch-size documents each.

    A reranker reads the query with each document: both together have --random-input-len tokens, half of them the
    query's. With --no-reranker a model embeds each text alone: each has --random-input-len tokens, and the query is one
    of the texts of the batch and of --num-prompts.
    """

    @classmethod
    def from_settings(cls, settings: RunSettings) -> TextBatches:
        """Create the data set from `--random-input-len`, `--random-range-ratio`, the batch size and the seeds."""
        if settings.random_prefix_len:
            problem = "has no effect on random-rerank, whose query all requests share"
            raise BadInput("--random-prefix-len", problem, "leave it out")
        if not WHOLE.fullmatch(str(settings.random_input_len)):
            problem = f"{settings.random_input_len!r} is not a number, which random-rerank needs to divide it"
            raise BadInput(INPUT_LEN, problem, "give one number, and --random-range-ratio for a range")
        length, together = int(settings.random_input_len), not settings.no_reranker
        ratio, _ = parse_ratios(settings.random_range_ratio)
        drawing = RandomText.of(settings)
        special = drawing.tokenizer.special_tokens
        least = 2 * (special + 1 + SEPARATOR) if together else special + 1
        if length < least:
            raise BadInput(INPUT_LEN, f"{length} leaves no token for the query", f"give at least {least}")
        query_mean = length // 2 - SEPARATOR if together else length
        drawn = Lengths.around(INPUT_LEN, query_mean, ratio, less=special).draw(
            generator(drawing.seed, QUERY_LENGTH), 1
        )
        query_tokens = int(drawn[0])
        document_mean = length - query_tokens - SEPARATOR if together else length
        inputs = Lengths.around(INPUT_LEN, document_mean, ratio, less=special)
        documents = RandomDataset(drawing, inputs, Lengths(1, 1), seed_of(settings, "order"))
        query = drawing.prefix(query_tokens).text
        size, total = settings.random_batch_size, settings.num_prompts
        if together:
            return TextBatches(documents, size, total, query, 0, query_tokens + SEPARATOR)
        total = None if total is None else total - 1
        return TextBatches(documents, size - 1, total, query, query_tokens + special)
