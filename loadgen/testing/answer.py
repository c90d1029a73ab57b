"""Answer: the events of a good answer to one request: what faults depart from."""

from dataclasses import dataclass

from loadgen.testing.ask import Ask
from loadgen.testing.replies import DONE, delta, event, usage


@dataclass(frozen=True, slots=True)
class Answer:
    """One event each: the role, every token, the finish reason, and the usage; `DONE` would follow.

    Attributes:
        role: Empty in a completion, which has none.
        tokens: As many as were asked for.
        finish: The finish reason "length", without a token.
        usage: The counts of tokens.
    """

    role: bytes
    tokens: list[bytes]
    finish: bytes
    usage: bytes

    @classmethod
    def to(cls, ask: Ask) -> "Answer":
        """The good answer to `ask`."""
        words = [f" word{number}" for number in range(ask.tokens)]
        counts = usage(prompt_tokens=ask.prompt_tokens, completion_tokens=ask.tokens)
        if ask.chat:
            role = delta(role="assistant", content="")
            return cls(role, [delta(content=word) for word in words], delta("length"), counts)
        tokens = [event(id="x", choices=[{"index": 0, "text": word, "finish_reason": None}]) for word in words]
        finish = event(id="x", choices=[{"index": 0, "text": "", "finish_reason": "length"}])
        return cls(b"", tokens, finish, counts)

    def events(self, *, with_usage: bool) -> list[bytes]:
        """All of it in order, [DONE] included."""
        ends = [self.finish, self.usage] if with_usage else [self.finish]
        return [*([self.role] if self.role else []), *self.tokens, *ends, DONE]
