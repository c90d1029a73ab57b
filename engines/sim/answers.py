"""Answers: sequences that a client waits for, streamed or whole."""

import asyncio
from typing import Protocol

from loadgen import emit
from loadgen.engines.sim import http1
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
    """

    __slots__ = ("arrival_ns", "client", "question", "stream", "words", "writer")

    def __init__(self, client: Client, question: Question, writer: Writer, words: emit.Words) -> None:
        super().__init__(question.prompt_tokens, question.output_tokens)
        self.client, self.question, self.writer, self.words = client, question, writer, words
        self.stream: emit.Stream | None = None
        self.arrival_ns = 0

    @property
    def usage(self) -> Usage:
        """The token counts so far."""
        return Usage(self.prompt_tokens, self.generated, min(self.question.reasoning_tokens, self.generated))

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
        self.stream = emit.Stream(
            client.transport,
            words,
            question.seed,
            writer.token_head,
            writer.token_tail,
            reasoning_head=writer.reasoning_head,
            reasoning_tokens=question.reasoning_tokens,
        )

    def start(self) -> None:
        """Send what comes before the tokens, and the first."""
        self.stream.write(self._opening(), tokens=1)

    def finish(self) -> None:
        """Send the last token and the closing events."""
        events = http1.chunk(self.writer.finish(self.question.finish_reason))
        if self.question.include_usage:
            events += http1.chunk(self.writer.usage(self.usage))
        before = self._opening() if self.generated == 1 else b""
        self.stream.write(before, tokens=1, after=events + http1.chunk(DONE) + http1.LAST_CHUNK)
        self.stream.close()
        self.client.answered()

    def abandon(self) -> None:
        """Let the connection go."""
        self.stream.close()

    def _opening(self) -> bytes:
        head, role = http1.stream_head(keep_alive=self.client.keep_alive), self.writer.role
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
