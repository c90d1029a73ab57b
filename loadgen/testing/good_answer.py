"""Good answer: the events of a correct answer to a request, which faults then change."""

from collections.abc import Callable
from dataclasses import dataclass

from loadgen.testing.replies import DONE, delta, error_body, event, typed_event, usage
from loadgen.testing.request import Request


@dataclass(frozen=True, slots=True)
class GoodAnswer:
    """The events of a correct answer.

    Attributes:
        role: The events before the first token; empty for a completion, which has none.
        tokens: One event for each requested token.
        finish: The event with the finish reason of an answer that is cut at its limit, without a token.
        uncounted: The same without token counts, which some APIs have in it.
        usage: The event with the token counts; empty for an API that has them in `finish`.
        done: The event after all others; empty for an API that has none.
        error: Returns the event of an error with a message.
    """

    role: bytes
    tokens: list[bytes]
    finish: bytes
    uncounted: bytes
    usage: bytes
    done: bytes
    error: Callable[[str], bytes]

    @classmethod
    def to(cls, request: Request) -> "GoodAnswer":
        """Return the correct answer to `request`, in the form of the API that its path names."""
        form = next((form for ending, form in FORMS.items() if request.path.endswith(ending)), _completion)
        return form([f" word{number}" for number in range(request.tokens)], request.prompt_tokens)

    def events(self, *, with_usage: bool) -> list[bytes]:
        """Return all events in order, the last one included; `with_usage` those of an API that counts when asked."""
        ends = [self.finish, self.usage] if with_usage else [self.finish]
        return [each for each in (self.role, *self.tokens, *ends, self.done) if each]


def _chat(words: list[str], prompt_tokens: int) -> GoodAnswer:
    role, finish = delta(role="assistant", content=""), delta("length")
    counts = usage(prompt_tokens=prompt_tokens, completion_tokens=len(words))
    return GoodAnswer(role, [delta(content=word) for word in words], finish, finish, counts, DONE, _error)


def _completion(words: list[str], prompt_tokens: int) -> GoodAnswer:
    tokens = [event(id="x", choices=[{"index": 0, "text": word, "finish_reason": None}]) for word in words]
    finish = event(id="x", choices=[{"index": 0, "text": "", "finish_reason": "length"}])
    counts = usage(prompt_tokens=prompt_tokens, completion_tokens=len(words))
    return GoodAnswer(b"", tokens, finish, finish, counts, DONE, _error)


def _error(message: str) -> bytes:
    return b"data: " + error_body(message, 500) + b"\n\n"


def _response(words: list[str], prompt_tokens: int) -> GoodAnswer:
    """Return the events of OpenAI's Responses."""
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "error": None}
    counts = {"input_tokens": prompt_tokens, "output_tokens": len(words)}
    return GoodAnswer(
        role=typed_event("response.created", response={"status": "in_progress", "usage": None}),
        tokens=[typed_event("response.output_text.delta", content_index=0, delta=word) for word in words],
        finish=typed_event("response.incomplete", response=cut | {"usage": counts}),
        uncounted=typed_event("response.incomplete", response=cut | {"usage": None}),
        usage=b"",
        done=b"",
        error=lambda message: typed_event("error", code="server_error", message=message, param=None),
    )


def _message(words: list[str], prompt_tokens: int) -> GoodAnswer:
    """Return the events of Anthropic's Messages."""
    start = {"role": "assistant", "content": [], "usage": {"input_tokens": 0, "output_tokens": 0}}
    cut, counts = {"stop_reason": "max_tokens"}, {"input_tokens": prompt_tokens, "output_tokens": len(words)}
    tokens = [{"type": "text_delta", "text": word} for word in words]
    return GoodAnswer(
        role=typed_event("message_start", message=start),
        tokens=[typed_event("content_block_delta", index=0, delta=token) for token in tokens],
        finish=typed_event("message_delta", delta=cut, usage=counts),
        uncounted=typed_event("message_delta", delta=cut),
        usage=b"",
        done=typed_event("message_stop"),
        error=lambda message: typed_event("error", error={"type": "api_error", "message": message}),
    )


FORMS: dict[str, Callable[[list[str], int], GoodAnswer]] = {  # by the end of the path; else a completion
    "/chat/completions": _chat,
    "/responses": _response,
    "/messages": _message,
}
