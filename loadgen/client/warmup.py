"""Requests before the run, which leave no record: readiness check and warm-up."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

from loadgen.client.transport import Transport
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import Unreachable, setting
from loadgen.metrics.failures import failure_class
from loadgen.util.clock import now_ns
from loadgen.workload.request_store import Requests

LAST_ANSWER_S = 60.0

logger = logging.getLogger("loadgen")


class Warmup:
    """Sends requests to one target that are no part of the run.

    They are numbered downwards from -1, so that none has the X-Request-Id of another, nor of a
    request of the run.

    Args:
        transport: Sends them; its `on_end` is taken.
        stopped: Returns whether the user has stopped the run.
    """

    def __init__(self, transport: Transport, stopped: Callable[[], bool]) -> None:
        self._transport = transport
        self._stopped = stopped
        self._numbers = itertools.count(-1, -1)
        self._records: list[Record] = []
        self._in_flight = 0
        self._ended = asyncio.Event()
        transport.on_end = self._on_end

    async def check_ready(self, requests: Requests, row: int, limit_s: float) -> None:
        """Wait until the request in this row of `requests` succeeds, for at most `limit_s` seconds;
        one that was sent by then has LAST_ANSWER_S to be answered.

        Raises:
            Unreachable: It did not succeed.
        """
        deadline = time.monotonic() + limit_s
        while not self._stopped():
            answer_s = max(deadline - time.monotonic(), LAST_ANSWER_S)
            why = f"no answer in {answer_s:.3g} s"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(answer_s):
                    (record,) = await self._send(requests, [row])
                    if record.outcome is Outcome.OK or self._stopped():
                        return
                    why = f"{failure_class(record)} {record.detail or ''}".strip()
            if time.monotonic() >= deadline:
                raise Unreachable(
                    f"{setting.ready_check_timeout_sec}: no success in {limit_s:g} s at "
                    f"{self._transport.target.url}: {why}"
                )
            await asyncio.sleep(min(1.0, limit_s / 10))

    async def warm_up(self, requests: Requests, rows: Sequence[int], together: int | None) -> int:
        """Send the requests in these rows, at most `together` at once, and wait until all have
        ended.

        A warning says how many failed.

        Returns:
            How many succeeded.
        """
        ended: list[Record] = []
        while rows and not self._stopped():
            ended += await self._send(requests, rows[:together])
            rows = rows[together or len(rows) :]
        return _succeeded(ended)

    async def warm_up_for(
        self,
        seconds: float,
        requests: Requests,
        rows: Sequence[int],
        *,
        gap_s: float,
        together: int | None,
    ) -> None:
        """Send the requests in these rows in turn for so many seconds, and wait until all have
        ended.

        A warning says how many failed.

        Args:
            gap_s: The time from one to the next, s; 0: each is sent as soon as it may.
            together: How many may be in flight at once; None: any number.
        """
        self._records = []
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for number, row in enumerate(itertools.cycle(rows)):
            await asyncio.sleep(max(0.0, begun_s + number * gap_s - loop.time()))
            if together is not None:
                await self._wait(together - 1)
            if loop.time() - begun_s >= seconds or self._stopped():
                break
            self._start(requests, row)
        await self._wait(0)
        _succeeded(self._records)

    async def _send(self, requests: Requests, rows: Sequence[int]) -> list[Record]:
        self._records = []
        for row in rows:
            self._start(requests, row)
        await self._wait(0)
        return self._records

    def _start(self, requests: Requests, row: int) -> None:
        record = requests.record(row, now_ns())
        record.index = next(self._numbers)
        record.ready = record.due
        self._in_flight += 1
        self._transport.send(record, requests.body(row))

    async def _wait(self, most: int) -> None:
        """Wait until at most so many requests are in flight."""
        while self._in_flight > most:
            self._ended.clear()
            await self._ended.wait()

    def _on_end(self, record: Record) -> None:
        self._records.append(record)
        self._in_flight -= 1
        self._ended.set()


def _succeeded(ended: Sequence[Record]) -> int:
    """Return how many warm-up requests have succeeded; a warning says how many failed."""
    failed = Counter(
        failure_class(record)
        for record in ended
        if record.outcome not in (Outcome.OK, Outcome.CANCELLED)
    )
    if failed:
        how = ", ".join(f"{outcome}: {times}" for outcome, times in failed.items())
        logger.warning("%d of %d warm-up requests failed (%s)", failed.total(), len(ended), how)
    return sum(record.outcome is Outcome.OK for record in ended)
