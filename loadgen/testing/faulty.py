"""A server that plays faults, for tests of whatever talks to LLM servers: `python -m loadgen.testing.faulty`.

It answers chat completions and completions well, unless a request names a fault in its header `X-Fault: NAME` (or
`NAME:NUMBER`), or is of a share of them that meets one. `GET /v1/models` is always answered well, so that a client
finds its way; `GET /counts` tells what has been asked and played.
"""

import asyncio
import contextlib
import ssl
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import orjson

from loadgen.testing import listening
from loadgen.testing.ask import Ask
from loadgen.testing.faults import FAULTS, Steps, chosen
from loadgen.testing.faults.shares import Shares
from loadgen.testing.player import Player
from loadgen.testing.replies import error_body, models, whole

HEADER = "X-Fault"
MODEL = "faulty"


class Faulty:
    """The server, whoever listens for it.

    Args:
        shares: The faults of requests that name none.

    Attributes:
        url: Scheme, host and port, where `serving` has set it.
        requests: POSTs that have come; a client's probes are no part of what is to be tested.
        connections: Connections that have been accepted.
        open: Those of them that have not ended.
        played: How often each fault has been played, by name; `none` is a good answer.
    """

    def __init__(self, shares: Shares | None = None) -> None:
        self.url = ""
        self.requests = self.connections = 0
        self.played: Counter[str] = Counter()
        self._shares = shares or Shares()
        self._players: set[Player] = set()
        self._waiting: list[Player] = []
        self._none_left = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def open(self) -> int:
        """See above."""
        return len(self._players)

    def player(self) -> Player:
        """The protocol of a new connection."""
        return Player(self)

    def answer(self, ask: Ask) -> Steps:
        """Count a request and choose what answers it.

        Raises:
            BadInput: It names a fault that cannot be played.
        """
        match ask.method, ask.path:
            case "GET", "/v1/models":
                return iter([whole(200, models(MODEL))])
            case "GET", "/counts":
                counts = {"requests": self.requests, "connections": self.connections, "played": dict(self.played)}
                return iter([whole(200, orjson.dumps(counts))])
        named = ask.headers.get(HEADER.lower())
        if ask.method != "POST" and not named:
            return iter([whole(404, error_body(f"there is no {ask.path}", 404))])
        number = self.requests
        self.requests += ask.method == "POST"
        self._news.set()
        found = chosen(named, HEADER) if named else self._shares.of(number)
        fault, argument = found or (FAULTS["none"], None)
        self.played[fault.name] += 1
        return fault.steps(ask, argument)

    async def came(self, count: int) -> None:
        """Wait until so many POSTs have come."""
        while self.requests < count:
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """End every connection, and wait until they have ended."""
        self._none_left.clear()
        for player in self._players:
            player.transport.abort()
        if self._players:
            await self._none_left.wait()

    def joined(self, player: Player) -> None:
        """See `loadgen.testing.player.Owner`."""
        self.connections += 1
        self._players.add(player)

    def left(self, player: Player) -> None:
        """See `loadgen.testing.player.Owner`."""
        self._players.discard(player)
        if player in self._waiting:
            self._waiting.remove(player)
        if not self._players:
            self._none_left.set()

    def gather(self, player: Player, count: int) -> None:
        """See `loadgen.testing.player.Owner`."""
        self._waiting.append(player)
        if len(self._waiting) >= count:
            for waiting in self._waiting:
                waiting.go_on()
            self._waiting = []


@contextlib.asynccontextmanager
async def serving(shares: Shares | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Faulty]:
    """A faulty server in the running loop, on a free port of loopback; nothing of it is left at the end.

    Args:
        shares: The faults of requests that name none.
        tls: Serve https with this.
    """
    faulty = Faulty(shares)
    server = await asyncio.get_running_loop().create_server(
        faulty.player, "127.0.0.1", 0, ssl=tls, backlog=listening.BACKLOG
    )
    faulty.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield faulty
    finally:
        server.close()
        await faulty.close()
        await server.wait_closed()


def arguments(argv: Sequence[str] | None = None) -> Namespace:
    """The command line."""
    parser = listening.parser("loadgen.testing.faulty", "Serve faults.")
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("--plan", default="", help="shares of requests that meet a fault: reset=0.01,stall:3=0.02")
    parser.add_argument("--seed", type=int, default=0, help="which requests these are")
    parser.epilog = "faults:\n" + "\n".join(f"  {known}" for known in FAULTS.values())
    return parser.parse_args(argv)


@listening.command
def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to stop; returns the exit code."""
    given = arguments(argv)
    faulty = Faulty(Shares.parse(given.plan, given.seed))
    return listening.run(faulty.player, given.host, given.port)


if __name__ == "__main__":
    sys.exit(main())
