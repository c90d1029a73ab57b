"""Replies: the bytes of responses and events, built from parts so that any part can be wrong;
and correct answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from loadgen.engines.sim.api_format import DONE as DONE
from loadgen.engines.sim.api_format import CompletionWriter, ResponseWriter, Usage
from loadgen.engines.sim.api_format import event as event
from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk
from loadgen.engines.sim.typed_format import MessagesWriter, ResponsesWriter

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
STREAM = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
WRITERS = {
    "/chat/completions": ResponseWriter,
    "/responses": ResponsesWriter,
    "/messages": MessagesWriter,
}


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    """Return an event of a chat completion; the delta of its only choice has `fields`."""
    return event(id="x", choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def usage(**counts: Any) -> bytes:
    """Return the event with the token counts and without a choice."""
    return event(id="x", choices=[], usage=counts)


def answer(*words: str, finish: str = "stop") -> bytes:
    """Return the events of a complete chat completion, one for each word."""
    return (
        delta(role="assistant", content="")
        + b"".join(delta(content=word) for word in words)
        + delta(finish)
        + DONE
    )


def chunked(body: bytes, size: int = 100) -> bytes:
    """Return a complete body in chunks of at most `size` bytes."""
    return b"".join(chunk(body[i : i + size]) for i in range(0, len(body), size)) + LAST_CHUNK


def streamed(body: bytes, size: int = 100) -> bytes:
    """Return a complete response that streams `body` in chunks of at most `size` bytes."""
    return STREAM + chunked(body, size)


def models(*names: str) -> bytes:
    """Return the body of GET /v1/models for a server with these models."""
    rows = [{"id": name, "object": "model", "owned_by": "loadgen"} for name in names]
    return orjson.dumps({"object": "list", "data": rows})


@dataclass(frozen=True, slots=True)
class GoodAnswer:
    """The events of a correct answer, which faults change.

    Attributes:
        role: The events before the first token; empty for a completion, which has none.
        tokens: One event for each requested token.
        finish: The events with the finish reason of an answer that is cut at its limit, without a
            token.
        uncounted: The same without token counts, which some APIs have in them.
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
    def to(
        cls, request: Request, text: str | None = None, prompt_tokens: int | None = None
    ) -> "GoodAnswer":
        """Return the correct answer to a request, in the form of the API that its path names;
        else of a completion.

        Args:
            request: The request.
            text: Of each token; None: a word with the token's number.
            prompt_tokens: Of its usage; None: the number of words in the prompt.
        """
        form = next(
            (form for ending, form in WRITERS.items() if request.path.endswith(ending)),
            CompletionWriter,
        )
        writer = form("x", 0, '"x"', "length")
        counts = Usage(
            request.prompt_tokens if prompt_tokens is None else prompt_tokens, request.tokens
        )
        return cls(
            role=writer.role(),
            tokens=[
                writer.token(f" word{number}" if text is None else text)
                for number in range(request.tokens)
            ],
            finish=writer.finish(counts if writer.counts_at_end else None),
            uncounted=writer.finish(),
            usage=writer.usage(counts),
            done=writer.done,
            error=writer.error,
        )

    def events(self, *, with_usage: bool) -> list[bytes]:
        """Return all events in order, the last one included; `with_usage` those of an API that
        counts when asked.
        """
        ends = [self.finish, self.usage] if with_usage else [self.finish]
        return [event for event in (self.role, *self.tokens, *ends, self.done) if event]


def good_body(request: Request) -> bytes:
    """Return the body of the correct answer to a request."""
    return b"".join(GoodAnswer.to(request).events(with_usage=request.wants_usage))
