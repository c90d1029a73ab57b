"""Sends requests through a real Transport and collects their Records."""

import asyncio

from loadgen.clock import now_ns
from loadgen.prompts import Prompt
from loadgen.target import Target
from loadgen.transport import Timeouts, Transport
from loadgen.wire import Record

PROMPT = Prompt("Hello?", 2, 2, "test/0")
S = 1_000_000_000


class Sender:
    """A transport, and the records that came back, in order of ending."""

    def __init__(self, url: str, timeouts: Timeouts | None = None, *, verify_tls: bool = True) -> None:
        self.target = Target(url + "/v1/chat/completions", "m", chat=True, verify_tls=verify_tls)
        self.transport = Transport(self.target, timeouts or Timeouts(connect=10 * S))
        self.transport.on_end = self._ended
        self.records: list[Record] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> "Sender":
        await self.transport.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.transport.close()

    def start(self, count: int = 1) -> None:
        for _ in range(count):
            record = Record(0, 2, 2, now_ns())
            record.ready = record.due
            self.transport.send(record, self.target.body(PROMPT))

    async def ended(self, count: int) -> list[Record]:
        """Wait until `count` records have ended in all."""
        while len(self.records) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.records

    async def one(self) -> Record:
        """Send one request and wait for it."""
        before = len(self.records)
        self.start()
        return (await self.ended(before + 1))[-1]

    def _ended(self, record: Record) -> None:
        self.records.append(record)
        self._changed.set()
