"""Answers: sequences whose tokens go to a client, streamed or in one piece."""

import asyncio
from typing import Protocol

from loadgen.engines.sim import emit, http1
from loadgen.engines.sim.api_format import ResponseWriter, Usage
from loadgen.engines.sim.completion_request import CompletionRequest
from loadgen.engines.sim.scheduler import Sequence


class Client(Protocol):
    """The connection of a request."""

    transport: asyncio.Transport
    keep_alive: bool

    def finish(self) -> None:
        """Note that the response is complete."""


class Answer(Sequence):
    """A sequence of a client.

    Attributes:
        generates: Whether it generates tokens; an embedding does not.
        stream: Writes each token as it comes; None if the answer is sent in one piece.
        arrival_ns: When the request was read (CLOCK_MONOTONIC, ns).
        core: Number of the engine core that computes it.
    """

    __slots__ = ("arrival_ns", "client", "core", "request", "stream")

    generates = True

    def __init__(self, client: Client, request: CompletionRequest) -> None:
        blocks = request.blocks or ()
        super().__init__(request.prompt_tokens, request.output_tokens, blocks=blocks, priority=request.priority)
        self.client, self.request = client, request
        self.stream: emit.Stream | None = None
        self.arrival_ns = self.core = 0

    @property
    def sequences(self) -> "tuple[Answer, ...]":
        """The sequences that are computed for the request of the client."""
        return (self,)

    @property
    def usage(self) -> Usage:
        """The token counts so far."""
        reasoning = min(self.request.reasoning_tokens, self.generated)
        return Usage(
            self.prompt_tokens, self.generated, reasoning, None if self.request.blocks is None else self.cached
        )

    def start(self) -> None:
        """Send the first token, if the answer is streamed."""

    def finish(self) -> None:
        """Send the last token, which may also be the first, and end the response."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Write nothing more: the client has disconnected."""


class TextAnswer(Answer):
    """An answer of generated tokens.

    Attributes:
        writer: Writes their JSON.
        words: The words of the tokens.
    """

    __slots__ = ("words", "writer")

    def __init__(self, client: Client, request: CompletionRequest, writer: ResponseWriter, words: emit.Words) -> None:
        super().__init__(client, request)
        self.writer, self.words = writer, words


class StreamedAnswer(TextAnswer):
    """An answer whose tokens are sent as they come."""

    __slots__ = ()

    stream: emit.Stream

    def __init__(self, client: Client, request: CompletionRequest, writer: ResponseWriter, words: emit.Words) -> None:
        super().__init__(client, request, writer, words)
        self.stream = _stream(client, request, writer, words)

    def start(self) -> None:
        """Send the head, the role event and the first token."""
        self.stream.write(self._opening(), tokens=1)

    def finish(self) -> None:
        """Send the last token and the closing events."""
        # At the token limit, the finish reason stands in the event of the last token. An answer that ends by itself has
        # the reason in an event without text, since the token that stops an engine has no text.
        request, before, events, tail = self.request, b"", b"", None
        if self.generated == 1:
            before = self._opening()
        if request.finish_reason == "length":
            if request.continuous_usage:
                tail = self.writer.counted_tail(self.prompt_tokens, last=True)[0]
            else:
                tail = self.writer.token_tail(last=True)
        else:
            counts = self.usage if request.continuous_usage else None
            events = _chunk(self.writer.finish(counts))
        if request.include_usage:
            events += _chunk(self.writer.usage(self.usage))
        self.stream.write(before, tokens=1, after=events + _chunk(self.writer.done) + http1.LAST_CHUNK, tail=tail)
        self.stream.close()
        self.client.finish()

    def abandon(self) -> None:
        """Close the stream."""
        self.stream.close()

    def _opening(self) -> bytes:
        head = http1.stream_head(keep_alive=self.client.keep_alive)
        counts = Usage(self.prompt_tokens, 0, 0) if self.request.continuous_usage else None
        return head + _chunk(self.writer.role(counts))


class WholeAnswer(TextAnswer):
    """An answer that is sent when it is complete."""

    __slots__ = ()

    def finish(self) -> None:
        """Send the response."""
        request, usage = self.request, self.usage
        reasoning_tokens = usage.reasoning_tokens
        reasoning = self.words.text(request.seed, reasoning_tokens) if reasoning_tokens else None
        content = self.words.text(request.seed, self.generated - reasoning_tokens, skip=reasoning_tokens)
        body = self.writer.whole(content, reasoning, usage)
        self.client.transport.write(http1.response(200, http1.JSON, body, keep_alive=self.client.keep_alive))
        self.client.finish()


def _chunk(events: bytes) -> bytes:
    """Return events as a chunk of the body; nothing if there are none, since an empty chunk is the last one."""
    return http1.chunk(events) if events else b""


def _stream(client: Client, request: CompletionRequest, writer: ResponseWriter, words: emit.Words) -> emit.Stream:
    tail, between, end = writer.token_tail(), b"", b""
    if request.tokens_per_event == 1 and not request.continuous_usage:
        return emit.Stream(
            client.transport,
            words,
            request.seed,
            writer.token_head,
            tail,
            reasoning_head=writer.reasoning_head,
            reasoning_tokens=request.reasoning_tokens,
        )
    if request.continuous_usage:
        tail, between, end = writer.counted_tail(request.prompt_tokens)
    return emit.Grouped(
        client.transport,
        words,
        request.seed,
        writer.token_head,
        tail,
        group=request.tokens_per_event,
        prompt_tokens=request.prompt_tokens if request.continuous_usage else -1,
        between=between,
        end=end,
        reasoning_head=writer.reasoning_head,
        reasoning_tokens=request.reasoning_tokens,
    )
