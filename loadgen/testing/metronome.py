"""Metronome: a server of chats and completions that knows to the nanosecond when it wrote which token.

`python -m loadgen.testing.metronome`. Tokens are due on an absolute plan that starts when a request has arrived, so
that a late one delays no other. Each event tells the planned time and the time just before it was given to the socket,
beside the usual fields, as `plan_ns` and `write_ns` (CLOCK_MONOTONIC: a client on the same machine shares the clock);
the same for all of them is at GET /truth until DELETE /truth. A request may bring its own pace in a field `metronome`.
"""

import argparse
import asyncio
import functools
import sys
import time
from collections.abc import Sequence

import numpy as np
import orjson

from loadgen.engines.sim.planned import BLANK_TIME, Planned, Ticker
from loadgen.testing import listening
from loadgen.testing.ask import Ask
from loadgen.testing.exchange import Exchange
from loadgen.testing.pace import SHAPES, Pace
from loadgen.testing.replies import BINARY, DONE, LAST_CHUNK, STREAM, chunk, error_body, event, models
from loadgen.testing.truth import Int64s, Ledger
from loadgen.util.clock import Alarm

MODEL = "metronome"
TEXT = " tick"


class Metronome:
    """What all connections share: the pace, the ticker, the queue, and the truth.

    Args:
        pace: Of requests that bring none of their own.
        tokens: Of answers to requests that do not say how many they want.
    """

    def __init__(self, pace: Pace, tokens: int) -> None:
        self.pace, self.tokens = pace, tokens
        self.ledger = Ledger()
        self._ticker = Ticker(self._ended)
        self._alarm = Alarm(asyncio.get_running_loop(), self._tick)
        self._wakes_ns = 0  # when the alarm rings; 0: it is not set
        self._free_ns = 0  # when the queue's one server will be free
        self._answers: dict[Planned, tuple[Ask, Int64s, Int64s, Connection]] = {}  # under way
        self._requests = 0
        self._started = int(time.time())

    def answer(self, ask: Ask, connection: "Connection") -> Planned:
        """Begin to answer a request.

        Raises:
            BadInput: It asks for what there is not.
        """
        pace = self.pace.changed(ask.json["metronome"]) if "metronome" in ask.json else self.pace
        tokens = ask.stream_tokens(self.tokens)
        number = self._requests if ask.index is None else ask.index
        self._requests += 1
        due = pace.offsets_ns(number, tokens)
        if pace.queue:
            self._free_ns = max(ask.arrival_ns, self._free_ns) + int(due[0])
            due = np.array([self._free_ns], dtype=np.int64)
        else:
            due += ask.arrival_ns
        pieces = Pieces(number, self._started, chat=ask.chat)
        writes = np.zeros(len(due), dtype=np.int64)
        stream = Planned(connection.transport, pieces.token, pieces.end(len(due)), due, writes)
        stream.send(STREAM + pieces.role)
        self._answers[stream] = ask, due, writes, connection
        self._wake_at(self._ticker.add(stream))
        return stream

    def _tick(self) -> None:
        self._wakes_ns = 0
        self._wake_at(self._ticker.tick())

    def _wake_at(self, due_ns: int) -> None:
        if due_ns and not 0 < self._wakes_ns <= due_ns:
            self._wakes_ns = due_ns
            self._alarm.set(due_ns)

    def _ended(self, stream: Planned) -> None:
        ask, due, writes, connection = self._answers.pop(stream)
        self.ledger.add(ask.id, ask.arrival_ns, due, writes, stream.held_back)
        connection.finished(stream)


class Pieces:
    """The bytes of one answer's events, each in an HTTP chunk.

    Args:
        number: Of the request.
        created: Of the answer, in seconds since 1970.
        chat: Whether deltas of a chat are asked for, or else pieces of a text.

    Attributes:
        role: The first event of a chat, which holds no token; empty for completions.
        token: Each token's, with BLANK_TIME for its times.
    """

    def __init__(self, number: int, created: int, *, chat: bool) -> None:
        self._chat = chat
        kind, prefix = ("chat.completion.chunk", "chatcmpl") if chat else ("text_completion", "cmpl")
        self._about = {"id": f"{prefix}-{number}", "object": kind, "created": created, "model": MODEL}
        self.role = self._event({"role": "assistant", "content": ""}) if chat else b""
        choice = self._choice({"content": TEXT}, None)
        start = orjson.dumps(self._about | {"choices": [choice]})[:-1]
        self.token = chunk(b'data: %b,"plan_ns":%b,"write_ns":%b}\n\n' % (start, BLANK_TIME, BLANK_TIME))

    def end(self, tokens: int) -> bytes:
        """All that follows the last token: the finish reason, the usage, [DONE], and the end of the body."""
        usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
        told = event(**self._about, choices=[], usage=usage)
        return self._event({}, "length") + chunk(told) + chunk(DONE) + LAST_CHUNK

    def _event(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        return chunk(event(**self._about, choices=[self._choice(delta, finish_reason)]))

    def _choice(self, delta: dict[str, str], finish_reason: str | None) -> dict[str, object]:
        said = {"delta": delta} if self._chat else {"text": delta.get("content", "")}
        return {"index": 0, **said, "logprobs": None, "finish_reason": finish_reason}


class Connection(Exchange):
    """One client's connection."""

    def __init__(self, metronome: Metronome) -> None:
        super().__init__()
        self._metronome = metronome
        self._stream: Planned | None = None

    def asked(self, ask: Ask) -> None:
        """Answer a question, or say what the server knows."""
        match ask.method, ask.path:
            case "POST", "/v1/chat/completions" | "/v1/completions":
                self._stream = self._metronome.answer(ask, self)
            case "GET", "/v1/models":
                self.reply(models(MODEL))
            case "GET", "/truth":
                self.reply(self._metronome.ledger.to_npz(), kind=BINARY)
            case "DELETE", "/truth":
                self._metronome.ledger.forget()
                self.reply(b"{}")
            case _:
                self.reply(error_body(f"there is no {ask.path}", 404), status=404)

    def finished(self, stream: Planned) -> None:
        """All of a stream is written, or it was closed."""
        if stream is self._stream:
            self._stream = None
            self.answered()

    def connection_lost(self, exc: Exception | None) -> None:
        """Write nothing more of an unfinished answer; the ticker lets go of it when its next event is due."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


@listening.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; returns the exit code."""
    parser = listening.parser("loadgen.testing.metronome", "A server that writes tokens on time, and says when.")
    defaults = Pace()
    parser.add_argument("--shape", default=defaults.shape, help=f"of all times drawn: {', '.join(SHAPES)}")
    parser.add_argument("--first-ms", type=float, default=defaults.first_ms, help="mean time to the first token")
    parser.add_argument("--gap-ms", type=float, default=defaults.gap_ms, help="mean time between tokens")
    parser.add_argument("--spread", type=float, default=defaults.spread, help="sigma of lognormal times")
    parser.add_argument("--queue", action=argparse.BooleanOptionalAction, default=False, help="serve one by one")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of all times drawn")
    listening.add_tokens(parser)
    flags = vars(parser.parse_args(argv))
    host, port, tokens = flags.pop("host"), flags.pop("port"), flags.pop("tokens")
    pace = Pace(**flags).checked()
    shared = functools.cache(lambda: Metronome(pace, tokens))  # made in the loop, by the first connection
    return listening.run(lambda: Connection(shared()), host, port)


if __name__ == "__main__":
    sys.exit(main())
