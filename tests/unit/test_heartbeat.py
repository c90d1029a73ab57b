"""The loop's lateness: every moment of an absence counts, and reading what came together is none."""

import asyncio

from loadgen.clock import now_ns
from loadgen.heartbeat import EVERY_NS, Heartbeat
from loadgen.histogram import Histogram
from loadgen.testing import virtual
from loadgen.testing.virtual import timed
from loadgen.wire import Bell, Connection

MS = 1_000_000
EVERY_MS = EVERY_NS // MS


class Away:
    """A clock that is ahead of its loop: as if something had kept the loop busy since the loop's own time."""

    def __init__(self):
        self.clock, self.by_ns = virtual.clock(), 0

    def now_ns(self):
        return self.clock.now_ns() + self.by_ns


class Owner:
    def ended(self, connection):
        pass


def read(bell):
    """Let a stream be read now, by the kernel's clock; returns when."""
    before_ns = now_ns()
    Connection(Owner(), None, None, bell).data_received(b"")
    return before_ns


@timed
async def test_a_loop_that_is_always_there_is_never_late():
    stalls = Histogram()
    with Heartbeat(virtual.clock(), Bell(), stalls):
        await asyncio.sleep(0.1 + 1e-4)
    assert (stalls.count, stalls.max) == (0.1e9 // EVERY_NS, 0)


@timed
async def test_every_appointment_within_an_absence_counts_with_what_was_left_of_it():
    stalls, away = Histogram(), Away()
    with Heartbeat(away, Bell(), stalls):
        await asyncio.sleep(0)
        away.by_ns = 4 * EVERY_NS
        await asyncio.sleep(EVERY_MS / 1e3 + 1e-4)
    assert (stalls.count, stalls.max, stalls.total) == (5, 4 * EVERY_NS, (4 + 3 + 2 + 1 + 0) * EVERY_NS)


@timed
async def test_nothing_counts_once_it_has_stopped():
    stalls = Histogram()
    with Heartbeat(virtual.clock(), Bell(), stalls):
        await asyncio.sleep(0.02 + 1e-4)
    kept = stalls.count
    await asyncio.sleep(0.1)
    assert stalls.count == kept > 0


class Reading:
    """A bell of connections that are being read since some time."""

    def __init__(self, since_ns):
        self.since_ns = since_ns

    def reading_since(self, at_ns):
        return self.since_ns


@timed
async def test_an_appointment_is_as_late_as_the_loop_was_when_it_began_to_read():
    stalls, away = Histogram(), Away()
    start_ns = away.now_ns()
    with Heartbeat(away, Reading(start_ns + EVERY_NS + 2 * MS), stalls):
        await asyncio.sleep(0)
        away.by_ns = EVERY_NS - MS
        await asyncio.sleep(EVERY_MS / 1e3 + 1e-4)
    assert (stalls.count, stalls.max) == (1, 2 * MS)


def test_connections_are_being_read_from_the_first_of_many_reads_to_a_break_after_the_last():
    bell = Bell()
    assert bell.reading_since(123 * MS) == 123 * MS
    first_ns = read(bell)
    read(bell)
    last_ns = now_ns()
    assert first_ns <= bell.reading_since(last_ns) <= last_ns
    assert bell.reading_since(last_ns + MS) == last_ns + MS
