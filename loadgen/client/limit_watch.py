"""`LimitWatch`: ends requests that have passed a limit of time, and knows the streams that are silent."""

import asyncio
from collections.abc import Callable, Collection

from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.stamped_connection import Connection
from loadgen.metrics.failures import SILENCE_NS
from loadgen.util.clock import NS_PER_S, now_ns

MIN_PAUSE_NS = 20_000_000  # between two looks
LOOKED_AT_ONCE = 200  # connections: a tenth of a millisecond


class LimitWatch:
    """Looks at requests in flight no more often than one of them can pass a limit.

    Args:
        active: The connections with a request in flight, at any time.
        timeouts: The limits.
        abandon: Called as abandon(connection, outcome, detail) to end a request.

    Attributes:
        silent: Requests of whose streams no token had come for SILENCE_NS at the last look, by index, and the stamp of
            the last token.
    """

    def __init__(
        self,
        active: Collection[Connection],
        timeouts: Timeouts,
        abandon: Callable[[Connection, Outcome, str], None],
    ) -> None:
        self._active, self._timeouts, self._abandon = active, timeouts, abandon
        # requests of whose streams no token had come for SILENCE_NS at the last look, by index, and the stamp of the
        # last token
        self.silent: dict[int, int] = {}
        self._alarm: asyncio.Handle | None = None

    def start(self) -> None:
        """Start; call in the loop that sends."""
        self._alarm = asyncio.get_running_loop().call_later(self._timeouts.smallest / NS_PER_S, self._begin)

    def stop(self) -> None:
        """Look no more; a second stop does nothing."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _begin(self) -> None:
        """Begin a look: what is sent from now on cannot pass a limit before the smallest one is over."""
        self._look(list(self._active), now_ns() + self._timeouts.smallest, {})

    def _look(self, among: list[Connection], again_ns: int, silent: dict[int, int]) -> None:
        """Look at a few connections in this turn of the loop, so that no token waits, at the rest in those after it.

        Args:
            among: Those that are left; emptied.
            again_ns: When the first of the others may pass a limit.
            silent: Silent streams among the others.
        """
        at_ns = now_ns()
        for connection in among[-LOOKED_AT_ONCE:]:
            if connection not in self._active:  # it has ended since
                continue
            record = connection.record
            left_ns, outcome = self._timeouts.left(record, at_ns)
            if left_ns <= 0:
                self._abandon(connection, outcome, f"no {'end' if outcome is Outcome.TIMEOUT else 'token'} in time")
                continue
            if record.last_token:
                silent_ns = at_ns - record.last_token
                if silent_ns >= SILENCE_NS:
                    silent[record.index] = record.last_token
                    left_ns = min(left_ns, SILENCE_NS // 10)  # so that a stream that goes on soon leaves the list
                else:
                    left_ns = min(left_ns, SILENCE_NS - silent_ns)
            again_ns = min(again_ns, at_ns + left_ns)
        del among[-LOOKED_AT_ONCE:]
        loop = asyncio.get_running_loop()
        if among:
            self._alarm = loop.call_soon(self._look, among, again_ns, silent)
            return
        self.silent = silent
        pause_ns = max(again_ns - at_ns, self._timeouts.smallest // 10, MIN_PAUSE_NS)
        self._alarm = loop.call_later(pause_ns / NS_PER_S, self._begin)
