"""Heartbeat: how late the event loop comes to appointments, which is what any stream may have to wait."""

import asyncio

from loadgen.clock import NS_PER_S, Clock
from loadgen.histogram import Histogram
from loadgen.wire import Bell

EVERY_NS = 5_000_000


class Heartbeat:
    """Appointments at regular times, in `with` as long as they are kept; each adds its lateness, ns, to `stalls`.

    While the loop was away, every appointment it missed counts with what was left of the absence: so the share of late
    ones is the share of the time. To read what has come together from many streams is no absence: an appointment is as
    late as the loop was when it began to read.

    Args:
        clock: Which the appointments are by; the event loop's timers wait for them.
        bell: Of the connections; knows since when they are being read.
        stalls: What is added to.
    """

    def __init__(self, clock: Clock, bell: Bell, stalls: Histogram) -> None:
        self._now_ns, self._bell, self._stalls = clock.now_ns, bell, stalls

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due_ns = self._now_ns() + EVERY_NS
        self._wait()

    def __exit__(self, *error: object) -> None:
        self._handle.cancel()

    def _wait(self) -> None:
        self._handle = self._loop.call_later(max(0, self._due_ns - self._now_ns()) / NS_PER_S, self._beat)

    def _beat(self) -> None:
        at_ns = self._now_ns()
        came_ns = self._bell.reading_since(at_ns)
        while self._due_ns <= at_ns:
            self._stalls.record(max(0, came_ns - self._due_ns))
            self._due_ns += EVERY_NS
        self._wait()
