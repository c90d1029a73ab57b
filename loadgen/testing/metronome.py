"""Metronome: a server of chat completions and completions that records when it wrote each token.

Run it with `python -m loadgen.testing.metronome`. Tokens are due on an absolute plan that starts when a request has
arrived, so that a late token delays no other. Each event has two more fields: `plan_ns`, when it was due, and
`write_ns`, the time just before it was given to the socket (CLOCK_MONOTONIC, which a client on the same machine
shares). GET /truth returns these times of all answers since the last DELETE /truth. A request may set its own pace in
the field `metronome`.
"""

import argparse
import asyncio
import functools
import sys
import time
from collections.abc import Sequence

import numpy as np

from loadgen.engines.sim.api_format import CompletionWriter, ResponseWriter, Usage
from loadgen.engines.sim.planned import BLANK_TIME, Planned, Ticker
from loadgen.testing import server_main
from loadgen.testing.pace import SHAPES, Pace
from loadgen.testing.replies import BINARY, LAST_CHUNK, STREAM, chunk, error_body, models
from loadgen.testing.request import Request
from loadgen.testing.server_connection import ServerConnection
from loadgen.testing.truth import Int64s, Ledger
from loadgen.util.clock import Alarm

MODEL = "metronome"
TEXT = b" tick"
TIMES = b',"plan_ns":%b,"write_ns":%b}\n\n' % (BLANK_TIME, BLANK_TIME)


class Metronome:
    """The state that all connections share: the pace, the ticker, the queue and the ledger.

    Args:
        pace: The pace of requests that do not set their own.
        tokens: Tokens of an answer if the request does not set them.
    """

    def __init__(self, pace: Pace, tokens: int) -> None:
        self.pace, self.tokens = pace, tokens
        self.ledger = Ledger()
        self._ticker = Ticker(self._ended)
        self._alarm = Alarm(asyncio.get_running_loop(), self._tick)
        self._wakes_ns = 0  # when the alarm is due; 0: it is not set
        self._free_ns = 0  # when the queue's only server will be free
        self._answers: dict[Planned, tuple[Request, Int64s, Int64s, Int64s, Connection]] = {}  # not ended yet
        self._requests = 0
        self._started = int(time.time())

    def answer(self, request: Request, connection: "Connection") -> Planned:
        """Begin the answer to a request, and return its stream.

        Raises:
            BadInput: The request or its pace is invalid.
        """
        pace = self.pace.changed(request.json["metronome"]) if "metronome" in request.json else self.pace
        tokens = request.stream_tokens(self.tokens)
        number = self._requests if request.index is None else request.index
        self._requests += 1
        due = pace.offsets_ns(number, tokens)
        if pace.queue:
            self._free_ns = max(request.arrival_ns, self._free_ns) + int(due[0])
            due = np.array([self._free_ns], dtype=np.int64)
        else:
            due += request.arrival_ns
        kind = ResponseWriter if request.chat else CompletionWriter
        writer = kind(str(number), self._started, f'"{MODEL}"', "length")
        token = chunk(writer.token_head + TEXT + writer.token_tail().removesuffix(b"}\n\n") + TIMES)
        ends = (writer.finish(), writer.usage(Usage(1, len(due), 0)), writer.done)
        writes, written = np.zeros((2, len(due)), dtype=np.int64)
        stream = Planned(connection.transport, token, b"".join(map(chunk, ends)) + LAST_CHUNK, due, writes, written)
        role = writer.role()
        stream.send(STREAM + chunk(role) if role else STREAM)
        self._answers[stream] = request, due, writes, written, connection
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
        request, due, writes, written, connection = self._answers.pop(stream)
        self.ledger.add(request.id, request.arrival_ns, due, writes, written, stream.held_back)
        connection.finished(stream)


class Connection(ServerConnection):
    """One client's connection."""

    def __init__(self, metronome: Metronome) -> None:
        super().__init__()
        self._metronome = metronome
        self._stream: Planned | None = None

    def handle(self, request: Request) -> None:
        """Answer a request for a completion, the models or the truth."""
        match request.method, request.path:
            case "POST", "/v1/chat/completions" | "/v1/completions":
                self._stream = self._metronome.answer(request, self)
            case "GET", "/v1/models":
                self.reply(models(MODEL))
            case "GET", "/truth":
                self.reply(self._metronome.ledger.to_npz(), kind=BINARY)
            case "DELETE", "/truth":
                self._metronome.ledger.forget()
                self.reply(b"{}")
            case _:
                self.reply(error_body(f"unknown path {request.path}", 404), status=404)

    def finished(self, stream: Planned) -> None:
        """End the response: the stream is complete or closed."""
        if stream is self._stream:
            self._stream = None
            self.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the stream of an unfinished answer; the ticker removes it when its next event is due."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code."""
    parser = server_main.parser("loadgen.testing.metronome", "Write tokens on time, and record when.")
    defaults = Pace()
    parser.add_argument("--shape", default=defaults.shape, help=f"distribution of all times: {', '.join(SHAPES)}")
    parser.add_argument("--first-ms", type=float, default=defaults.first_ms, help="mean time to the first token")
    parser.add_argument("--gap-ms", type=float, default=defaults.gap_ms, help="mean time between tokens")
    parser.add_argument("--spread", type=float, default=defaults.spread, help="sigma of lognormal times")
    parser.add_argument("--queue", action=argparse.BooleanOptionalAction, default=False, help="serve one by one")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="seed of all times")
    server_main.add_tokens(parser)
    flags = vars(parser.parse_args(argv))
    host, port, tokens = flags.pop("host"), flags.pop("port"), flags.pop("tokens")
    pace = Pace(**flags).checked()
    shared = functools.cache(lambda: Metronome(pace, tokens))  # created in the loop, by the first connection
    return server_main.run(lambda: Connection(shared()), host, port)


if __name__ == "__main__":
    sys.exit(main())
