"""Answers: sequences whose tokens go to a client, streamed or in one piece."""

from loadgen.engines.sim import emit
from loadgen.engines.sim.api_format import ResponseWriter, Usage
from loadgen.engines.sim.completion_request import CompletionRequest
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk, head
from loadgen.engines.sim.scheduler import Sequence

EVENTS = "content-type: text/event-stream; charset=utf-8"
CHUNKED = "transfer-encoding: chunked"


class Answer(Sequence):
    """A sequence of a client.

    Args:
        client: The connection of the request.
        request: The request.

    Attributes:
        generates: Whether it generates tokens; an embedding does not.
        stream: Writes each token as it comes; None if the answer is sent in one piece.
        arrival_ns: When the request was read (CLOCK_MONOTONIC, ns).
        core: Number of the engine core that computes it.
    """

    __slots__ = ("arrival_ns", "client", "core", "request", "stream")

    generates = True

    def __init__(self, client: ServerConnection, request: CompletionRequest) -> None:
        blocks = request.blocks or ()
        super().__init__(
            request.prompt_tokens, request.output_tokens, blocks=blocks, priority=request.priority
        )
        self.client = client
        self.request = request
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
            self.prompt_tokens,
            self.generated,
            reasoning,
            None if self.request.blocks is None else self.cached,
            self._metrics() if self.request.with_metrics and self.last_ns else None,
        )

    def _metrics(self) -> dict[str, float | None]:
        """Return its times when it has finished, as vLLM's --enable-per-request-metrics."""
        decode_s = (self.last_ns - self.first_ns) / 1e9
        gaps = self.generated - 1
        return {
            "time_to_first_token_ms": (self.first_ns - self.scheduled_ns) / 1e6,
            "generation_time_ms": decode_s * 1e3,
            "queue_time_ms": (self.scheduled_ns - self.ready_ns) / 1e6,
            "mean_itl_ms": decode_s * 1e3 / gaps if gaps else None,
            "tokens_per_second": gaps / decode_s if gaps else None,
        }

    def begin(self) -> None:
        """Send the head of the response early, if the answer is streamed."""

    def start(self) -> None:
        """Send the first token, if the answer is streamed."""

    def finish(self) -> None:
        """Send the last token, which may also be the first, and end the response."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Write nothing more: the client has disconnected."""


class TextAnswer(Answer):
    """An answer of generated tokens.

    Args:
        client, request: As an `Answer`'s.

    Attributes:
        writer: Writes their JSON.
        words: The words of the tokens.
    """

    __slots__ = ("words", "writer")

    def __init__(
        self,
        client: ServerConnection,
        request: CompletionRequest,
        writer: ResponseWriter,
        words: emit.Words,
    ) -> None:
        super().__init__(client, request)
        self.writer = writer
        self.words = words
        self.stream = self._new_stream()

    def _new_stream(self) -> emit.Stream | None:
        """What writes each token as it comes; None: the answer is sent in one piece."""
        return None


class StreamedAnswer(TextAnswer):
    """An answer whose tokens are sent as they come.

    Attributes:
        has_begun: Whether the head of the response has been sent.
    """

    __slots__ = ("has_begun",)

    stream: emit.Stream

    def __init__(
        self,
        client: ServerConnection,
        request: CompletionRequest,
        writer: ResponseWriter,
        words: emit.Words,
    ) -> None:
        super().__init__(client, request, writer, words)
        self.has_begun = False

    def _new_stream(self) -> emit.Stream:
        request = self.request
        writer = self.writer
        tail = writer.token_tail()
        if request.tokens_per_event == 1 and not request.continuous_usage:
            return emit.Stream(
                self.client.transport,
                self.words,
                request.seed,
                writer.token_head,
                tail,
                reasoning_head=writer.reasoning_head,
                reasoning_tokens=request.reasoning_tokens,
            )
        between = end = b""
        if request.continuous_usage:
            tail, between, end = writer.counted_tail(request.prompt_tokens)
        return emit.Grouped(
            self.client.transport,
            self.words,
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

    def start(self) -> None:
        """Send the head, the role event and the first token."""
        self.stream.write(self._opening(), tokens=1)

    def finish(self) -> None:
        """Send the last token and the closing events.

        At the token limit, the finish reason stands in the event of the last token, unless the API
        has an event of its own for it. An answer that ends by itself has the reason in an event
        without text, since the token that stops an engine has no text.
        """
        request = self.request
        writer = self.writer
        usage = self.usage
        before = self._opening() if self.generated == 1 else b""
        tail = None
        finish = b""
        if writer.counts_at_end:
            finish = writer.finish(usage)
        elif request.finish_reason != "length":
            finish = writer.finish(usage if request.continuous_usage else None)
        elif request.continuous_usage:
            tail = writer.counted_tail(self.prompt_tokens, last=True)[0]
        else:
            tail = writer.token_tail(last=True)
        counts = writer.usage(usage) if request.include_usage else b""
        # An empty chunk would be the last one.
        after = b"".join(map(chunk, filter(None, (finish, counts, writer.done)))) + LAST_CHUNK
        self.stream.write(before, tokens=1, after=after, tail=tail)
        self.stream.close()
        self.client.finish()

    def abandon(self) -> None:
        """Close the stream."""
        self.stream.close()

    def begin(self) -> None:
        """Send the head of the response, before there is a token."""
        if not self.has_begun:
            self.has_begun = True
            self.stream.send(self._head())

    def _head(self) -> bytes:
        return head(200, *self.client.fields, EVENTS, CHUNKED)

    def _opening(self) -> bytes:
        counts = Usage(self.prompt_tokens, 0) if self.request.continuous_usage else None
        role = self.writer.role(counts)
        before = b"" if self.has_begun else self._head()
        self.has_begun = True
        return before + (chunk(role) if role else b"")


class WholeAnswer(TextAnswer):
    """An answer that is sent when it is complete."""

    __slots__ = ()

    def finish(self) -> None:
        """Send the response."""
        request = self.request
        usage = self.usage
        reasoning_tokens = usage.reasoning_tokens
        reasoning = self.words.text(request.seed, reasoning_tokens) if reasoning_tokens else None
        content = self.words.text(
            request.seed, self.generated - reasoning_tokens, skip=reasoning_tokens
        )
        self.client.reply(self.writer.whole(content, reasoning, usage))
