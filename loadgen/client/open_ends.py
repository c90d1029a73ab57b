"""OpenEnds: answers that are complete although their responses are still open.

A server or a gateway may keep a stream open after its last event: it sends comments, or nothing at
all. The answer does not wait for it.
"""

import asyncio
from collections.abc import Callable

from loadgen.client.timeouts import Carrier
from loadgen.core.record import Record
from loadgen.util.clock import NS_PER_S, now_ns

# So long a response may stay open after [DONE], or a finish reason and usage. Servers write the end
# of the response apart from its last event.
TAIL_NS = 50_000_000
# After a finish reason alone: the usage may follow.
FINISHED_NS = 1_000_000_000


class OpenEnds:
    """Ends responses that stay open after the last event of their answer.

    Args:
        end: Called with what carries each such response.
        guarded: Calls back, and says who is told of an exception.
    """

    def __init__(self, end: Callable[[Carrier], None], guarded: Callable[..., None]) -> None:
        self._end = end
        self._guarded = guarded
        self._waiting: list[tuple[int, Carrier, Record]] = []
        self._alarm: asyncio.Handle | None = None
        self._alarm_ns = 0

    def add(self, carrier: Carrier, is_complete: bool) -> None:
        """Wait for the end of a response whose answer is complete.

        Args:
            carrier: What carries it.
            is_complete: Whether nothing more is expected; else only the finish reason has come.
        """
        until_ns = now_ns() + (TAIL_NS if is_complete else FINISHED_NS)
        self._waiting.append((until_ns, carrier, carrier.record))
        if self._alarm is None or until_ns < self._alarm_ns:
            self._wait(until_ns)

    def close(self) -> None:
        """Wait for no response any more."""
        self._waiting.clear()
        if self._alarm is not None:
            self._alarm.cancel()

    def _wait(self, until_ns: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        wait_s = (until_ns - now_ns()) / NS_PER_S
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._guarded, self._look)
        self._alarm_ns = until_ns

    def _look(self) -> None:
        """End the responses that have been open for too long."""
        at_ns = now_ns()
        self._alarm = None
        waiting, self._waiting = self._waiting, []
        for until_ns, carrier, record in waiting:
            if carrier.complete or carrier.record is not record:
                continue
            if until_ns > at_ns:
                self._waiting.append((until_ns, carrier, record))
            else:
                self._end(carrier)
        if self._waiting:
            self._wait(min(until_ns for until_ns, _, _ in self._waiting))
