"""Sends requests through a real transport, some of which meet a fault, and collects their
Records.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from loadgen.client.aiohttp_transport import AiohttpTransport
from loadgen.client.compiled_transport import CompiledTransport
from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.testing.faulty import HEADER
from loadgen.util.clock import now_ns
from loadgen.util.route import DIRECT, Route
from loadgen.workload.endpoints.api import Api
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target

Kind = type[CompiledTransport] | type[AiohttpTransport]

KINDS = (CompiledTransport, AiohttpTransport)
TOKENS = 6
UNVERIFIED = Route(verify=False)
PROMPT = Prompt("Hello there", 2, TOKENS, "test/0")
S = 1_000_000_000
NEIGHBOURS = 3


def target(url: str, fault: str | None = None, *, route: Route = DIRECT, api: Api = CHAT) -> Target:
    headers = {HEADER: fault} if fault else {}
    return Target(url + api.path, "m", api, headers=headers, route=route)


class Sender:
    """A transport, and the records that came back, in order of ending: exactly one for each
    request.

    Attributes:
        prompt: What every request sends.
        leave: After how many tokens, and how long after it was sent (ns), the user of a request
            leaves: 0, -1 never.
    """

    prompt = PROMPT
    leave = (0, -1)

    def __init__(
        self,
        url: str,
        timeouts: Timeouts | None = None,
        *,
        route: Route = DIRECT,
        api: Api = CHAT,
        transport: Kind = CompiledTransport,
    ) -> None:
        self.url, self.target = url, target(url, route=route, api=api)
        self.transport = transport(self.target, timeouts or Timeouts(connect=10 * S))
        self.transport.on_end = self._ended
        self.records: list[Record] = []
        self.sent = 0
        self._waiting: dict[Record, asyncio.Future[Record]] = {}

    async def __aenter__(self) -> "Sender":
        await self.transport.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.transport.close()
        assert len(self.records) == len(set(self.records))
        assert not self._waiting

    def start(self, count: int = 1, fault: str | None = None) -> "list[asyncio.Future[Record]]":
        """Send `count` requests that meet `fault`; returns what will be their records."""
        # A run sends the same headers with each request; here one transport has to serve good and
        # bad alike.
        self.transport.encoder = RequestEncoder(target(self.url, fault, api=self.target.api))
        return [self._send() for _ in range(count)]

    async def ended(self, count: int) -> list[Record]:
        """Wait until `count` records have ended in all."""
        await until(lambda: len(self.records) >= count)
        return self.records

    async def several(self, count: int, fault: str | None = None) -> list[Record]:
        """Send `count` requests that meet `fault`, and wait for all of them."""
        return list(await asyncio.gather(*self.start(count, fault)))

    async def one(self, fault: str | None = None) -> Record:
        """Send one request that meets `fault`, and wait for it."""
        return (await self.several(1, fault))[0]

    def _send(self) -> "asyncio.Future[Record]":
        record = Record(self.sent, self.prompt.input_tokens, self.prompt.output_tokens, now_ns())
        record.ready = record.due
        record.end_after_tokens, record.end_after_ns = self.leave
        record.ends_as = Outcome.DISCONNECTED, "the user left"
        self.sent += 1
        self._waiting[record] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[record]
        self.transport.send(record, self.target.body(self.prompt))
        return waiting

    def _ended(self, record: Record) -> None:
        self.records.append(record)
        waiting = self._waiting.pop(record, None)
        if waiting is not None:
            waiting.set_result(record)


@contextlib.asynccontextmanager
async def neighbours(sender: Sender) -> AsyncIterator[None]:
    """Good requests, several at any time, from before the block until after it; each must be as
    if it were alone.
    """
    records: list[Record] = []
    stop = asyncio.Event()

    async def neighbour() -> None:
        while not stop.is_set():
            records.append(await sender.one())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(NEIGHBOURS):
            tasks.create_task(neighbour())
        await until(lambda: len(records) >= NEIGHBOURS)
        yield
        seen = len(records)
        await until(lambda: len(records) >= seen + NEIGHBOURS)
        stop.set()
    for record in records:
        assert_good(record)


def assert_good(record: Record) -> None:
    """The record of a good answer: every token, the server's counts, and stamps in order."""
    assert (record.outcome, record.detail, record.status) == (Outcome.OK, None, 200)
    assert (record.events, record.completion_tokens, record.finish_reason) == (
        TOKENS,
        TOKENS,
        "length",
    )
    assert record.ordered
    assert record.stamps == sorted(record.stamps)


async def until(holds: Callable[[], object]) -> None:
    """Let the loop turn until something holds; pytest's own timeout bounds it."""
    while not holds():
        await asyncio.sleep(0)
