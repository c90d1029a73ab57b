"""Faulty: a server that plays faults, for tests of clients of LLM servers: `python -m
loadgen.testing.faulty`.

It answers chat completions, completions, Responses and Messages correctly, unless a request names a
fault in its header `X-Fault: NAME` (or `NAME:NUMBER`), or belongs to a share of requests with a
fault. Faults that end a stream early, send an error or leave counts out have the form of the API;
others have events of chat. `GET /v1/models` is always answered correctly, so that a client can find
the model. `GET /counts` returns the numbers of requests and of played faults.
"""

import asyncio
import contextlib
import ssl
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

import orjson

from loadgen.engines.sim.connection import ServerConnection, listen
from loadgen.engines.sim.http1 import Request, RequestError, whole
from loadgen.testing import server_main
from loadgen.testing.faults import FAULTS, Step, Steps, Together, Until, chosen
from loadgen.testing.faults.fault import Shares
from loadgen.testing.replies import models
from loadgen.util.clock import now_ns

HEADER = "X-Fault"
MODEL = "faulty"


class FaultConnection(ServerConnection):
    """Plays the steps that answer each request."""

    def __init__(self, server: "Faulty") -> None:
        super().__init__()
        self._server = server
        self._steps: Iterator[bytes | Step | Together | Until] | None = None
        self._arrival_ns = 0
        self._awaits_request = self._paused = self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection with the server."""
        super().connection_made(transport)
        self._server.register(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection, and stop playing."""
        self._steps = None
        self._server.unregister(self)

    def pause_writing(self) -> None:
        """Pause: the client reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """Continue: the client has caught up."""
        self._paused = False
        self.go_on()

    def handle(self, request: Request) -> None:
        """Play the answer to a request, or continue the steps that waited for it."""
        steps = self._server.answer(request)
        self._arrival_ns = request.arrival_ns
        if self._awaits_request:
            self._awaits_request = False
        else:
            self._steps = iter(steps)
        self.go_on()

    def go_on(self) -> None:
        """Play the next step in a later turn of the loop, so that earlier writes reach the
        client by themselves.
        """
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            # Twice: asyncio runs callbacks of `call_soon` before it handles sockets that have
            # become readable.
            loop.call_soon(loop.call_soon, self._play)

    def _play(self) -> None:
        self._scheduled = False
        if self._steps is None or self._paused or self.transport.is_closing():
            return
        match next(self._steps, None):
            case None:
                self._steps = None
                self.finish()
            case bytes() as data:
                self.transport.write(data)
                self.go_on()
            case Together(count=count):
                self._server.gather(self, count)
            case Until(ms=ms):
                wait_s = (self._arrival_ns - now_ns()) / 1e9 + ms / 1e3
                asyncio.get_running_loop().call_later(max(0.0, wait_s), self.go_on)
            case Step.CLOSE:
                self.transport.close()
            case Step.RESET:
                self.reset()
            case Step.NEXT_REQUEST:
                self._awaits_request = True
                self.finish()
            case Step.SILENCE:
                pass


class Faulty:
    """The state of a faulty server; `connection` is the protocol factory for a listening socket.

    Args:
        shares: The faults of requests that name none.

    Attributes:
        url: Scheme, host and port; `serving` sets it.
        requests: Number of POSTs; a client's GETs are not counted.
        connections: Number of accepted connections.
        played: How often each fault was played, by name; `none` is a correct answer.
    """

    def __init__(self, shares: Shares | None = None) -> None:
        self.url = ""
        self.requests = self.connections = 0
        self.played: Counter[str] = Counter()
        self._shares = shares or Shares()
        self._connections: set[FaultConnection] = set()
        self._waiting: list[FaultConnection] = []
        self._none_left = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def open(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    def connection(self) -> FaultConnection:
        """Return the protocol of a new connection."""
        return FaultConnection(self)

    def answer(self, request: Request) -> Steps:
        """Count a request, and return the steps that answer it.

        Raises:
            BadInput: The request names an unknown fault, or gives it an invalid number.
            RequestError: There is nothing at its path.
        """
        match request.method, request.path:
            case "GET", "/v1/models":
                return [whole(200, models(MODEL))]
            case "GET", "/counts":
                counts = {
                    "requests": self.requests,
                    "connections": self.connections,
                    "played": dict(self.played),
                }
                return [whole(200, orjson.dumps(counts))]
        choice = request.headers.get(HEADER.lower())
        if request.method != "POST" and not choice:
            raise RequestError(404, f"unknown path {request.path}")
        number = self.requests
        if request.method == "POST":
            self.requests += 1
        self._news.set()
        fault, argument = (chosen(choice, HEADER) if choice else self._shares.of(number)) or (
            FAULTS["none"],
            None,
        )
        self.played[fault.name] += 1
        return fault.steps(request, argument)

    async def came(self, count: int) -> None:
        """Wait until `count` POSTs have arrived."""
        while self.requests < count:
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """End every connection, and wait until they have ended."""
        self._none_left.clear()
        for connection in self._connections:
            connection.transport.abort()
        if self._connections:
            await self._none_left.wait()

    def register(self, connection: FaultConnection) -> None:
        """Count a new connection."""
        self.connections += 1
        self._connections.add(connection)

    def unregister(self, connection: FaultConnection) -> None:
        """Remove a connection that has ended."""
        self._connections.discard(connection)
        if connection in self._waiting:
            self._waiting.remove(connection)
        if not self._connections:
            self._none_left.set()

    def gather(self, connection: FaultConnection, count: int) -> None:
        """Let the waiting connections continue when there are `count` of them."""
        self._waiting.append(connection)
        if len(self._waiting) >= count:
            for waiting in self._waiting:
                waiting.go_on()
            self._waiting = []


@contextlib.asynccontextmanager
async def serving(
    shares: Shares | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Faulty]:
    """Run a faulty server in the running event loop, on a free port of loopback, for the length of
    the block.

    Args:
        shares: The faults of requests that name none.
        tls: Context to serve https with; None: http.
    """
    faulty = Faulty(shares)
    server = await listen(faulty.connection, "127.0.0.1", 0, tls)
    faulty.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield faulty
    finally:
        server.close()
        await faulty.close()
        await server.wait_closed()


def arguments(argv: Sequence[str] | None = None) -> Namespace:
    """Return the parsed command line."""
    parser = server_main.parser("loadgen.testing.faulty", "Run a server that plays faults.")
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument(
        "--plan", default="", help="shares of requests with a fault: reset=0.01,stall:3=0.02"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of these requests")
    parser.epilog = "faults:\n" + "\n".join(f"  {fault}" for fault in FAULTS.values())
    return parser.parse_args(argv)


@server_main.command
def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    flags = arguments(argv)
    faulty = Faulty(Shares.parse(flags.plan, flags.seed))
    return server_main.run(faulty.connection, flags.host, flags.port)


if __name__ == "__main__":
    sys.exit(main())
