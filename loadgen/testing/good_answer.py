"""Good answer: the events of a correct answer to a request, which faults then change."""

from dataclasses import dataclass

from loadgen.testing.replies import DONE, delta, event, usage
from loadgen.testing.request import Request


@dataclass(frozen=True, slots=True)
class GoodAnswer:
    """The events of a correct answer; `DONE` follows them.

    Attributes:
        role: The event with the role; empty for a completion, which has none.
        tokens: One event for each requested token.
        finish: The event with the finish reason "length", without a token.
        usage: The event with the token counts.
    """

    role: bytes
    tokens: list[bytes]
    finish: bytes
    usage: bytes

    @classmethod
    def to(cls, request: Request) -> "GoodAnswer":
        """Return the correct answer to `request`."""
        words = [f" word{number}" for number in range(request.tokens)]
        counts = usage(prompt_tokens=request.prompt_tokens, completion_tokens=request.tokens)
        if request.chat:
            role = delta(role="assistant", content="")
            return cls(role, [delta(content=word) for word in words], delta("length"), counts)
        tokens = [event(id="x", choices=[{"index": 0, "text": word, "finish_reason": None}]) for word in words]
        finish = event(id="x", choices=[{"index": 0, "text": "", "finish_reason": "length"}])
        return cls(b"", tokens, finish, counts)

    def events(self, *, with_usage: bool) -> list[bytes]:
        """Return all events in order, [DONE] included."""
        ends = [self.finish, self.usage] if with_usage else [self.finish]
        return [*([self.role] if self.role else []), *self.tokens, *ends, DONE]
