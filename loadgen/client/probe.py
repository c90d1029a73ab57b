"""Probe: small requests beside the load, one after another, whose latency shows how the load delays others."""

import asyncio
import itertools

from loadgen.client.transport import Transport
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.clock import now_ns
from loadgen.workload.prompt import Prompt

PROMPT = Prompt("Hi", 1, 1, "probe")  # as `vllm bench serve` sends it
FIRST_NUMBER = -1_000_000_000  # numbered downwards from here, far from warm-ups and the run


class Probe:
    """Sends a request of one token, waits for its end and a pause, and so on, on a connection of its own.

    Args:
        transport: Sends them; its `on_end` is taken.
        rate: Requests per second if answers took no time.

    Attributes:
        e2el_ns: From sent to the last token, of each that succeeded.
        failed: How many did not.
    """

    def __init__(self, transport: Transport, rate: float) -> None:
        self._transport, self._pause_s = transport, 1 / rate
        self._body = transport.target.body(PROMPT)
        self._numbers = itertools.count(FIRST_NUMBER, -1)
        self._stopped, self._ended, self._finished = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.e2el_ns: list[int] = []
        self.failed = 0
        transport.on_end = self._on_end

    async def run(self) -> None:
        """Send until `finish` is called."""
        while not self._stopped.is_set():
            record = Record(next(self._numbers), PROMPT.input_tokens, PROMPT.output_tokens, now_ns())
            record.ready = record.due
            self._ended.clear()
            self._transport.send(record, self._body)
            await self._ended.wait()
            try:
                async with asyncio.timeout(self._pause_s):
                    await self._stopped.wait()
            except TimeoutError:
                continue
        self._finished.set()

    async def finish(self) -> None:
        """Send no more, and wait until the last request has ended."""
        self._stopped.set()
        await self._finished.wait()

    def _on_end(self, record: Record) -> None:
        if record.outcome is Outcome.OK:
            self.e2el_ns.append(record.last_token - record.sent)
        elif record.outcome is not Outcome.CANCELLED:
            self.failed += 1
        self._ended.set()
