"""Parser of an answer in one piece.

Embeddings and pooling answer with a list under `data`, rerank with one under `results`; the compiled scanner
(c/json_scan.pxd) must match `parse_pooled`. A text has the form of an event that says everything, with `message` for
`delta`.
"""

from dataclasses import dataclass

from loadgen.core import sse_event
from loadgen.core.delta import Delta
from loadgen.core.json_fields import count_of


@dataclass(frozen=True, slots=True)
class PooledAnswer:
    """The facts of an answer that is no stream.

    Attributes:
        results: How many embeddings or scores it has.
        prompt_tokens: The input tokens by its usage, `total_tokens` where it has no others; -1: it gives none.
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
        ValueError: It is not a JSON object with a list of results, or its usage has types that the API does not have.
    """
    event = sse_event.parse(body)  # errors and usage are those of any other API
    if event.error is not None:
        return PooledAnswer(error=event.error)
    answer, has_nan = sse_event.loads(body)
    results = answer.get("data", answer.get("results"))
    if not isinstance(results, list):
        raise ValueError("neither data nor results is a list")
    prompt_tokens = event.prompt_tokens
    if prompt_tokens < 0:
        prompt_tokens = count_of(answer.get("usage") or {}, "total_tokens")
    return PooledAnswer(len(results), prompt_tokens, event.cached_tokens, has_nan)


def parse_text(body: bytes) -> Delta:
    """Parse the body of an answer that is a text.

    Raises:
        ValueError: As `sse_event.parse`.
    """
    answer, has_nan = sse_event.loads(body)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if isinstance(choices, list):
        answer["choices"] = [
            choice | {"delta": choice.get("message")} if isinstance(choice, dict) else choice for choice in choices
        ]
    return sse_event.delta_of(answer, has_nan)
