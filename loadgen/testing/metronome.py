"""Metronome: a server of chat completions and completions that records when it wrote each token.

Run it with `python -m loadgen.testing.metronome`. Tokens are due on an absolute plan that starts
when a request has arrived, so that a late token delays no other. Each event has two more fields:
`plan_ns`, when it was due, and `write_ns`, the time just before it was given to the socket
(CLOCK_MONOTONIC, which a client on the same machine shares). GET /truth returns these times of all
answers since the last DELETE /truth. A request may set its own pace in the field `metronome`.
"""

import argparse
import asyncio
import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.engines.sim.api_format import CompletionWriter, ResponseWriter, Usage
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import BINARY, LAST_CHUNK, Request, RequestError, chunk
from loadgen.engines.sim.planned import BLANK_TIME, Planned, Ticker
from loadgen.errors import BadInput
from loadgen.testing import server_main
from loadgen.testing.replies import STREAM, models
from loadgen.testing.truth import Int64s, Ledger
from loadgen.util.argument_parser import integer_within
from loadgen.util.clock import Alarm

NS_PER_MS = 1_000_000
# bimodal: one time in ten is ten times as long as the others
SLOW_SHARE = 0.1
SLOW_FACTOR = 10.0
MAX_MS = 3_600_000.0

Draw = Callable[[np.random.Generator, float, int], NDArray[np.float64]]

# Each function draws `size` times with mean 1, given the spread.
SHAPES: dict[str, Draw] = {
    "constant": lambda rng, spread, size: np.ones(size),
    "exponential": lambda rng, spread, size: rng.exponential(1.0, size),
    "lognormal": lambda rng, spread, size: rng.lognormal(-spread * spread / 2, spread, size),
    "bimodal": lambda rng, spread, size: (
        np.where(rng.random(size) < SLOW_SHARE, SLOW_FACTOR, 1.0)
        / (1 - SLOW_SHARE + SLOW_SHARE * SLOW_FACTOR)
    ),
}


@dataclass(frozen=True, slots=True)
class Pace:
    """The distribution of the times at which tokens are due.

    Attributes:
        shape: Distribution of all times: constant, exponential, lognormal or bimodal.
        first_ms: Mean time from a request's arrival to its first token, ms.
        gap_ms: Mean time between tokens, ms.
        spread: Standard deviation of the logarithm of lognormal times.
        queue: Whether requests are served one after another, first come, first served, with one
            token each; the time to the first token is then the service time. With constant times
            and Poisson arrivals this is an M/D/1 queue, with exponential times an M/M/1 queue.
        seed: Seed of all times.
    """

    shape: str = "constant"
    first_ms: float = 20.0
    gap_ms: float = 20.0
    spread: float = 0.5
    queue: bool = False
    seed: int = 0

    def checked(self) -> "Pace":
        """Return this pace if its fields are valid.

        Raises:
            BadInput: A field is not.
        """
        if self.shape not in SHAPES:
            raise BadInput(
                "shape", f"unknown shape {self.shape!r}", f"choose from {', '.join(SHAPES)}"
            )
        for name, most in (("first_ms", MAX_MS), ("gap_ms", MAX_MS), ("spread", 10.0)):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 <= value <= most
            ):
                raise BadInput(
                    name, f"{value!r} is out of range", f"give a number from 0 to {most:g}"
                )
        if not isinstance(self.queue, bool):
            raise BadInput("queue", f"{self.queue!r} is not a boolean", "give true or false")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise BadInput("seed", f"{self.seed!r} is not a seed", "give a whole number from 0")
        return self

    def changed(self, fields: Any) -> "Pace":
        """Return this pace with the values in a request's field `metronome`.

        Raises:
            BadInput: A field is unknown or invalid.
        """
        names = [field.name for field in dataclasses.fields(self)]
        if not isinstance(fields, dict) or not fields.keys() <= set(names):
            raise BadInput(
                "metronome", f"{fields!r} is not a pace", f"send an object of {', '.join(names)}"
            )
        return dataclasses.replace(self, **fields).checked()

    def offsets_ns(self, number: int, tokens: int) -> NDArray[np.int64]:
        """Return when the tokens of request `number` are due, ns from its arrival (in a queue: from
        its turn).

        The shape is (tokens,), or (1,) in a queue. The first k times are the same for any larger
        `tokens`.
        """
        means_ns = np.full(1 if self.queue else tokens, self.gap_ms * NS_PER_MS)
        means_ns[0] = self.first_ms * NS_PER_MS
        if self.shape != "constant":  # creating a generator is the most expensive step here
            rng = np.random.default_rng([self.seed, number])
            means_ns *= SHAPES[self.shape](rng, self.spread, len(means_ns))
        return np.cumsum(means_ns).astype(np.int64)


MODEL = "metronome"
TEXT = " tick"
MAX_TEXT_BYTES = 1 << 20
TIMES = b',"plan_ns":%b,"write_ns":%b}\n\n' % (BLANK_TIME, BLANK_TIME)


class Metronome:
    """The state that all connections share: the pace, the ticker, the queue and the ledger.

    Args:
        pace: The pace of requests that do not set their own.
        tokens: Tokens of an answer if the request does not set them.
        text: The text of each token.
    """

    def __init__(self, pace: Pace, tokens: int, text: str = TEXT) -> None:
        self.pace = pace
        self.tokens = tokens
        self.text = text
        self.ledger = Ledger()
        self._ticker = Ticker(self._ended)
        self._alarm = Alarm(asyncio.get_running_loop(), self._tick)
        self._wakes_ns = 0  # when the alarm is due; 0: it is not set
        self._free_ns = 0  # when the queue's only server will be free
        self._answers: dict[
            Planned, tuple[Request, Int64s, Int64s, Int64s, Connection]
        ] = {}  # not ended yet
        self._requests = 0
        self._started = int(time.time())

    def answer(self, request: Request, connection: "Connection") -> Planned:
        """Begin the answer to a request, and return its stream.

        Args:
            request: The request.
            connection: Its connection.

        Raises:
            RequestError: The request is invalid.
            BadInput: Its pace is invalid.
        """
        pace = (
            self.pace.changed(request.json["metronome"])
            if "metronome" in request.json
            else self.pace
        )
        tokens = request.stream_tokens(self.tokens)
        number = self._requests if request.index is None else request.index
        self._requests += 1
        due = pace.offsets_ns(number, tokens)
        if pace.queue:
            self._free_ns = max(request.arrival_ns, self._free_ns) + int(due[0])
            due = np.array([self._free_ns], dtype=np.int64)
        else:
            due += request.arrival_ns
        form = ResponseWriter if request.path.endswith("/chat/completions") else CompletionWriter
        writer = form(str(number), self._started, f'"{MODEL}"', "length")
        token = chunk(writer.token(self.text).removesuffix(b"}\n\n") + TIMES)
        ends = (writer.finish(), writer.usage(Usage(1, len(due))), writer.done)
        writes, written = np.zeros((2, len(due)), dtype=np.int64)
        stream = Planned(
            connection.transport,
            token,
            b"".join(map(chunk, ends)) + LAST_CHUNK,
            due,
            writes,
            written,
        )
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
                raise RequestError(404, f"unknown path {request.path}")

    def finished(self, stream: Planned) -> None:
        """End the response: the stream is complete or closed."""
        if stream is self._stream:
            self._stream = None
            self.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the stream of an unfinished answer; the ticker removes it when its next event is
        due.
        """
        if self._stream is not None:
            self._stream.close()
            self._stream = None


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line; return the exit code."""
    parser = server_main.parser(
        "loadgen.testing.metronome", "Write tokens on time, and record when."
    )
    defaults = Pace()
    parser.add_argument(
        "--shape", default=defaults.shape, help=f"distribution of all times: {', '.join(SHAPES)}"
    )
    parser.add_argument(
        "--first-ms", type=float, default=defaults.first_ms, help="mean time to the first token"
    )
    parser.add_argument(
        "--gap-ms", type=float, default=defaults.gap_ms, help="mean time between tokens"
    )
    parser.add_argument(
        "--spread", type=float, default=defaults.spread, help="sigma of lognormal times"
    )
    parser.add_argument(
        "--queue", action=argparse.BooleanOptionalAction, default=False, help="serve one by one"
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="seed of all times")
    parser.add_argument(
        "--text-bytes",
        type=integer_within(1, MAX_TEXT_BYTES),
        default=len(TEXT),
        help="length of the text of a token",
    )
    server_main.add_tokens(parser)
    flags = vars(parser.parse_args(argv))
    host = flags.pop("host")
    port = flags.pop("port")
    tokens = flags.pop("tokens")
    text = TEXT.ljust(flags.pop("text_bytes"), "k")
    pace = Pace(**flags).checked()
    # Created in the loop, by the first connection.
    shared = functools.cache(lambda: Metronome(pace, tokens, text))
    return server_main.run(lambda: Connection(shared()), host, port)


if __name__ == "__main__":
    sys.exit(main())
