"""Delta: the facts that one streamed event states, in Python."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delta:
    """The facts that one event states.

    Attributes:
        kinds: The kinds of token that the event bears, a subset of TOKENS; 0 for role-only, empty, finish-only and
            usage-only events.
        says: Its other flags (`loadgen.core.event_flags`).
        tokens: The number of its tokens by token ids, else by logprobs; -1: it has neither.
        text: The text of these tokens.
        answer: The text of those that are content.
        finish_reason: Why the answer ended, if this event says it.
        matched_stop: The stop word or token id that ended it, from SGLang's `matched_stop` or vLLM's `stop_reason`.
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens: The server's counts; -1: it gives none.
        has_nan: Whether it holds NaN or an infinity, which are not JSON: logprobs of a broken model.
        error: An error object inside the stream, as JSON text.
    """

    kinds: int = 0
    says: int = 0
    tokens: int = -1
    text: str = ""
    answer: str = ""
    finish_reason: str | None = None
    matched_stop: int | str | None = None
    prompt_tokens: int = -1
    completion_tokens: int = -1
    cached_tokens: int = -1
    reasoning_tokens: int = -1
    has_nan: bool = False
    error: str | None = None
