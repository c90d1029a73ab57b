"""Answers: sequences that a client waits for, streamed or whole."""

import asyncio
from typing import Protocol

from loadgen.engines.sim import emit, http1
from loadgen.engines.sim.questions import Question
from loadgen.engines.sim.scheduler import Sequence
from loadgen.engines.sim.shapes import DONE, Usage, Writer


class Client(Protocol):
    """The connection that a request came by."""

    transport: asyncio.Transport
    keep_alive: bool

    def answered(self) -> None:
        """Note that the whole response has been written."""


class Answer(Sequence):
    """A sequence whose tokens go to a client.

    Attributes:
        stream: What takes each token as it comes; None when the answer is sent whole.
        arrival_ns: When the request was read.
        core: Number of the engine core that it was given to.
    """

    __slots__ = ("arrival_ns", "client", "core", "question", "stream", "words", "writer")

    def __init__(self, client: Client, question: Question, writer: Writer, words: emit.Words) -> None:
        super().__init__(question.prompt_tokens, question.output_tokens, blocks=question.blocks or ())
        self.client, self.question, self.writer, self.words = client, question, writer, words
        self.stream: emit.Stream | None = None
        self.arrival_ns = self.core = 0

    @property
    def usage(self) -> Usage:
        """The token counts so far."""
        reasoning = min(self.question.reasoning_tokens, self.generated)
        return Usage(
            self.prompt_tokens, self.generated, reasoning, None if self.question.blocks is None else self.cached
        )

    def start(self) -> None:
        """Deliver the first token, if tokens are delivered as they come."""

    def finish(self) -> None:
        """Deliver the last token, which may be the first as well, and end the response."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Write nothing more: the client is gone."""


class StreamedAnswer(Answer):
    """An answer whose tokens are sent as they come."""

    __slots__ = ()

    stream: emit.Stream

    def __init__(self, client: Client, question: Question, writer: Writer, words: emit.Words) -> None:
        super().__init__(client, question, writer, words)
        self.stream = _stream(client, question, writer, words)

    def start(self) -> None:
        """Send what comes before the tokens, and the first."""
        self.stream.write(self._opening(), tokens=1)

    def finish(self) -> None:
        """Send the last token and the closing events.

        The reason is that of the last token where the answer was cut there. Where it ends by itself it is that of an
        event without text, as what makes an engine stop is a token that has none.
        """
        question, before, events, tail = self.question, b"", b"", None
        if self.generated == 1:
            before = self._opening()
        if question.finish_reason == "length":
            tail = _tail(question, self.writer, question.finish_reason)
        else:
            counts = self.usage if question.continuous_usage else None
            events = http1.chunk(self.writer.finish(question.finish_reason, counts))
        if question.include_usage:
            events += http1.chunk(self.writer.usage(self.usage))
        self.stream.write(before, tokens=1, after=events + http1.chunk(DONE) + http1.LAST_CHUNK, tail=tail)
        self.stream.close()
        self.client.answered()

    def abandon(self) -> None:
        """Let the connection go."""
        self.stream.close()

    def _opening(self) -> bytes:
        head = http1.stream_head(keep_alive=self.client.keep_alive)
        counts = Usage(self.prompt_tokens, 0, 0) if self.question.continuous_usage else None
        role = self.writer.role(counts)
        return head + http1.chunk(role) if role else head


class WholeAnswer(Answer):
    """An answer that is sent when it is complete."""

    __slots__ = ()

    def finish(self) -> None:
        """Send everything."""
        question, usage = self.question, self.usage
        thought = usage.reasoning_tokens
        reasoning = self.words.text(question.seed, thought) if thought else None
        content = self.words.text(question.seed, self.generated - thought, skip=thought)
        body = self.writer.whole(content, reasoning, question.finish_reason, usage)
        self.client.transport.write(http1.response(200, http1.JSON, body, keep_alive=self.client.keep_alive))
        self.client.answered()


def _tail(question: Question, writer: Writer, reason: str) -> bytes:
    """What follows the text of the last token."""
    if question.continuous_usage:
        return writer.counted_tail(question.prompt_tokens, reason)[0]
    return writer.token_tail(reason)


def _stream(client: Client, question: Question, writer: Writer, words: emit.Words) -> emit.Stream:
    tail, between, end = writer.token_tail(), b"", b""
    if question.tokens_per_event == 1 and not question.continuous_usage:
        return emit.Stream(
            client.transport,
            words,
            question.seed,
            writer.token_head,
            tail,
            reasoning_head=writer.reasoning_head,
            reasoning_tokens=question.reasoning_tokens,
        )
    if question.continuous_usage:
        tail, between, end = writer.counted_tail(question.prompt_tokens)
    return emit.Grouped(
        client.transport,
        words,
        question.seed,
        writer.token_head,
        tail,
        group=question.tokens_per_event,
        prompt_tokens=question.prompt_tokens if question.continuous_usage else -1,
        between=between,
        end=end,
        reasoning_head=writer.reasoning_head,
        reasoning_tokens=question.reasoning_tokens,
    )
