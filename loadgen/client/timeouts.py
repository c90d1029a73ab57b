"""Timeouts: how long a request may take to connect, to its first token, between tokens and in
all, and who ends it.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol, Self

from msgspec import Struct

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.failures import SILENCE_NS
from loadgen.util.clock import NS_PER_S, now_ns

NEVER_NS = 1 << 62
MIN_PAUSE_NS = 20_000_000  # between two looks
LOOKED_AT_ONCE = 200  # requests: a tenth of a millisecond


class Timeouts(Struct, frozen=True):
    """Limits in ns; 0 is no limit.

    Attributes:
        connect: For opening a connection.
        first_token: From sent to the first token.
        stall: From the last token to the next one; from the first byte where there is no token yet,
            and no limit on the first one.
        whole: From sent to the end.
    """

    connect: int
    first_token: int = 0
    stall: int = 0
    whole: int = 0

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Read the timeouts of the settings, which are in seconds."""
        seconds = (
            settings.connect_timeout,
            settings.first_token_timeout,
            settings.stall_timeout,
            settings.timeout,
        )
        return cls(*(int(limit * 1e9) for limit in seconds))

    @property
    def smallest(self) -> int:
        """The smallest limit, SILENCE_NS included: no request that is sent now can pass a limit
        earlier.
        """
        return min(
            limit for limit in (self.first_token, self.stall, self.whole, SILENCE_NS) if limit
        )

    @property
    def first_byte(self) -> int:
        """How long a request may take from sent to its first byte."""
        return min((limit for limit in (self.first_token, self.whole) if limit), default=0)

    def left(self, record: Record, at_ns: int) -> tuple[int, Outcome]:
        """Return the ns from `at_ns` until a request passes a limit, 0 or less where it has, and
        its outcome then.
        """
        left = NEVER_NS
        outcome = Outcome.TIMEOUT
        if self.whole:
            left = record.sent + self.whole - at_ns
        since = record.latest_event
        limit = self.stall
        other = Outcome.STALLED
        if not since:
            if self.first_token:
                since = record.sent
                limit = self.first_token
                other = Outcome.TIMEOUT_FIRST_TOKEN
            elif not (since := record.first_byte):
                return left, outcome
        if limit and since + limit - at_ns < left:
            return since + limit - at_ns, other
        return left, outcome


class Carrier(Protocol):
    """What carries one request at a time: a connection, or an exchange over one."""

    @property
    def record(self) -> Record:
        """That of the request."""

    @property
    def complete(self) -> bool:
        """Whether its response has ended."""

    @property
    def requests(self) -> int:
        """How many requests its connection has carried."""

    def abandon(self, outcome: Outcome, detail: str, at_ns: int) -> None:
        """End the response from the client's side."""


class LimitWatch:
    """Looks at requests in flight no more often than one of them can pass a limit.

    Args:
        active: What carries a request, at any time.
        timeouts: The limits.
        abandon: Called as abandon(carrier, outcome, detail) to end a request.
        guarded: Calls back, and says who is told of an exception.

    Attributes:
        silent: Requests of whose streams no token had come for SILENCE_NS at the last look, by
            index, and the stamp of the last token.
    """

    def __init__(
        self,
        active: Collection[Carrier],
        timeouts: Timeouts,
        abandon: Callable[[Carrier, Outcome, str], None],
        guarded: Callable[..., None],
    ) -> None:
        self._active = active
        self._timeouts = timeouts
        self._abandon = abandon
        self._guarded = guarded
        self.silent: dict[int, int] = {}
        self._alarm: asyncio.Handle | None = None

    def start(self) -> None:
        """Start; call in the loop that sends."""
        self._alarm = asyncio.get_running_loop().call_later(
            self._timeouts.smallest / NS_PER_S, self._guarded, self._begin
        )

    def stop(self) -> None:
        """Look no more; a second stop does nothing."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _begin(self) -> None:
        """Begin a look: what is sent from now on cannot pass a limit before the smallest one is
        over.
        """
        self._look(list(self._active), now_ns() + self._timeouts.smallest, {})

    def _look(self, among: list[Carrier], again_ns: int, silent: dict[int, int]) -> None:
        """Look at a few requests in this turn of the loop, so that no token waits, at the rest in
        those after it.

        Args:
            among: What carries those that are left; emptied.
            again_ns: When the first of the others may pass a limit.
            silent: Silent streams among the others.
        """
        at_ns = now_ns()
        for carrier in among[-LOOKED_AT_ONCE:]:
            if carrier not in self._active:  # it has ended since
                continue
            record = carrier.record
            left_ns, outcome = self._timeouts.left(record, at_ns)
            if left_ns <= 0:
                self._abandon(
                    carrier,
                    outcome,
                    f"no {'end' if outcome is Outcome.TIMEOUT else 'token'} in time",
                )
                continue
            if record.last_token:
                silent_ns = at_ns - record.last_token
                if silent_ns >= SILENCE_NS:
                    silent[record.index] = record.last_token
                    # So that a stream that goes on soon leaves the list.
                    left_ns = min(left_ns, SILENCE_NS // 10)
                else:
                    left_ns = min(left_ns, SILENCE_NS - silent_ns)
            again_ns = min(again_ns, at_ns + left_ns)
        del among[-LOOKED_AT_ONCE:]
        loop = asyncio.get_running_loop()
        if among:
            self._alarm = loop.call_soon(self._guarded, self._look, among, again_ns, silent)
            return
        self.silent = silent
        pause_ns = max(again_ns - at_ns, self._timeouts.smallest // 10, MIN_PAUSE_NS)
        self._alarm = loop.call_later(pause_ns / NS_PER_S, self._guarded, self._begin)
