"""PooledAnswer: an answer of embeddings or scores; embeddings and pooling give a list under `data`,
rerank one under `results`.
"""

from typing import Any

from msgspec import Struct

from loadgen.core import reference_parser

# Where a result has its embedding or score.
RESULT_KEYS = ("embedding", "data", "relevance_score", "score")
NO_RESULT_KEYS = {"index", "object"}


class PooledAnswer(Struct, frozen=True):
    """The facts of an answer that is no stream.

    Attributes:
        results: How many embeddings or scores it has.
        prompt_tokens: The input tokens by its usage, `total_tokens` where it has no others; -1: it
            gives none.
        cached_tokens: Those of them that came from a cache; -1: it does not say.
        has_nan: Whether it holds NaN or an infinity, which are not JSON.
        error: An error object in place of the answer, as JSON text.
    """

    results: int = 0
    prompt_tokens: int = -1
    cached_tokens: int = -1
    has_nan: bool = False
    error: str | None = None


def parse_pooled(body: bytes) -> PooledAnswer:
    """Parse the body of an answer.

    Raises:
        ValueError: It is not a JSON object with a list of results, one of them is empty, or its
            usage has types that the API does not have.
    """
    event = reference_parser.parse(body)  # errors and usage are those of any other API
    if event.error is not None:
        return PooledAnswer(error=event.error)
    answer, has_nan = reference_parser.loads(body)
    results = answer.get("data", answer.get("results"))
    if not isinstance(results, list):
        raise ValueError("neither data nor results is a list")
    for number, result in enumerate(results):
        if _is_empty(result):
            raise ValueError(f"result {number} is empty")
    prompt_tokens = event.prompt_tokens
    if prompt_tokens < 0:
        prompt_tokens = event.total_tokens
    return PooledAnswer(len(results), prompt_tokens, event.cached_tokens, has_nan)


def _is_empty(result: Any) -> bool:
    """Return whether an embedding or score has no number."""
    if not isinstance(result, dict):
        return result is None
    if result.keys() <= NO_RESULT_KEYS:
        return True
    values = [result[key] for key in RESULT_KEYS if key in result]
    return any(
        value in (None, [], "") or (isinstance(value, list) and value[0] is None)
        for value in values
    )
