"""Rehearsal: requests sent off the record before the clock starts: the test request and the warm-ups."""

import asyncio
import time
from collections.abc import Callable, Sequence

from loadgen.clock import now_ns
from loadgen.errors import Unreachable
from loadgen.outcomes import Outcome
from loadgen.requests import Requests
from loadgen.transport import Transport
from loadgen.wire import Record


class Rehearsal:
    """Sends the first requests of a run, and forgets them.

    Args:
        transport: What sends; its `on_end` is taken.
        requests: What is sent.
        stopped: Tells whether the user wants no more of it.
    """

    def __init__(self, transport: Transport, requests: Requests, stopped: Callable[[], bool]) -> None:
        self._transport, self._requests, self._stopped = transport, requests, stopped
        self._records: list[Record] = []
        self._wanted = 0
        self._ended = asyncio.Event()
        transport.on_end = self._on_end

    async def check_ready(self, limit_s: float) -> None:
        """One request must succeed within `limit_s` seconds; 0 asks for none.

        Raises:
            Unreachable: None did.
        """
        deadline = time.monotonic() + limit_s
        while limit_s and not self._stopped():
            (record,) = await self._send([0])
            if record.outcome is Outcome.OK or self._stopped():
                return
            if time.monotonic() >= deadline:
                status = f"({record.status})" if record.outcome is Outcome.STATUS else ""
                raise Unreachable(
                    f"--ready-check-timeout-sec: no success in {limit_s:g} s at {self._transport.target.url}: "
                    f"{record.outcome}{status} {record.detail or ''}".strip()
                )
            await asyncio.sleep(min(1.0, limit_s / 10))

    async def warm_up(self, sessions: Sequence[int], together: int | None) -> None:
        """Send the first requests of these sessions, at most `together` at once; wait until all have ended, however."""
        while sessions and not self._stopped():
            await self._send(sessions[:together])
            sessions = sessions[together or len(sessions) :]

    async def _send(self, sessions: Sequence[int]) -> list[Record]:
        self._records, self._wanted = [], len(sessions)
        self._ended.clear()
        for number in sessions:
            index = self._requests.start(number)  # further turns would need the answers to those before them
            record = Record(index, *self._requests.tokens(index), now_ns())
            record.ready = record.due
            self._transport.send(record, self._requests.body(index))
        await self._ended.wait()
        return self._records

    def _on_end(self, record: Record) -> None:
        self._records.append(record)
        if len(self._records) == self._wanted:
            self._ended.set()
