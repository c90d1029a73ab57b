"""How long a token may wait in the event loop: every stall counts, and every read."""

import asyncio

from loadgen.core.histogram import Histogram
from loadgen.core.loop_probe import PERIOD_NS, RECENT, STAMPED_PERIOD_NS, LoopProbe
from loadgen.core.read_loop import ReadLoop, SendHook
from loadgen.core.stamped_connection import Connection
from loadgen.testing import virtual
from loadgen.testing.virtual import timed
from loadgen.util.clock import KERNEL, NS_PER_S


class Owner:
    def ended(self, connection):
        pass


def read(read_loop, times):
    connection = Connection(Owner(), None, read_loop)
    for _ in range(times):
        connection.data_received(b"")


async def appointments(count):
    """Wait for so many of them, if none is late, and half the time to the next."""
    await asyncio.sleep((count + 0.5) * PERIOD_NS / NS_PER_S)


@timed
async def test_a_loop_that_is_always_there_is_never_late():
    stalls = Histogram()
    with LoopProbe(virtual.clock(), SendHook(), stalls):
        await appointments(50)
    assert (stalls.count, stalls.max) == (50, 0)


@timed
async def test_each_beat_in_a_stall_counts_with_its_remaining_time():
    stalls = Histogram()
    with LoopProbe(virtual.clock(), SendHook(), stalls):
        virtual.spend(5 * PERIOD_NS)
        await appointments(0)
    assert (stalls.count, stalls.max, stalls.total) == (
        5,
        4 * PERIOD_NS,
        (4 + 3 + 2 + 1 + 0) * PERIOD_NS,
    )


@timed
async def test_reads_of_a_stall_may_be_as_late_as_the_loop_was_away():
    hook = SendHook()
    with LoopProbe(virtual.clock(), hook, Histogram()):
        await appointments(1)
        assert hook.late_ns == 0
        virtual.spend(2 * PERIOD_NS)  # from the middle between two alarms to another such middle
        await appointments(0)
        assert hook.late_ns == 5 * PERIOD_NS // 2


@timed
async def test_what_is_read_with_a_late_alarm_may_have_come_in_the_stall_before_it():
    hook, clock = SendHook(), virtual.clock()
    with LoopProbe(clock, hook, Histogram()):
        await appointments(2)
        stall_ns = clock.now_ns()
        virtual.spend(3 * PERIOD_NS)
        await asyncio.sleep(0.1 * PERIOD_NS / NS_PER_S)
        assert stall_ns - PERIOD_NS < hook.handled_ns <= stall_ns
        assert stall_ns + 3 * PERIOD_NS <= hook.stalled_ns <= clock.now_ns()
        stalled_ns = hook.stalled_ns
        await appointments(2)
        assert hook.stalled_ns == stalled_ns


@timed
async def test_reads_between_beats_wait_as_long_as_the_later_beat():
    stalls, read_loop, late_ns = Histogram(), ReadLoop(), PERIOD_NS // 4
    with LoopProbe(virtual.clock(), read_loop.hook, stalls):
        read(read_loop, 7)
        await appointments(1)  # kept
        assert (stalls.count, stalls.total) == (1 + 7, 0)
        read(read_loop, 10)
        virtual.spend(PERIOD_NS // 2 + late_ns)
        await asyncio.sleep(0)  # late
        read(read_loop, 20)
        await appointments(1)  # kept
    assert (stalls.count, stalls.total) == (3 + 7 + 10 + 20, (1 + 10 + 20) * late_ns)


@timed
async def test_stopped_probe_counts_no_more_beats():
    stalls = Histogram()
    with LoopProbe(virtual.clock(), SendHook(), stalls):
        await appointments(10)
    await appointments(10)
    assert stalls.count == 10


@timed
async def test_alarms_are_rarer_after_a_second_of_stamps_and_frequent_again_without():
    stalls, hook = Histogram(), SendHook()
    with LoopProbe(virtual.clock(), hook, stalls):
        await appointments(RECENT)
        assert stalls.count == RECENT
        await appointments(2 * STAMPED_PERIOD_NS / PERIOD_NS)
        assert stalls.count == RECENT + 2
        hook.loop_bounded_reads += 1
        await appointments(2 * STAMPED_PERIOD_NS / PERIOD_NS)
        assert stalls.count >= RECENT + 2 + STAMPED_PERIOD_NS // PERIOD_NS


async def test_on_the_kernels_clock_an_absence_is_seen_as_soon_as_it_ends():
    stalls = Histogram()
    with LoopProbe(KERNEL, SendHook(), stalls):
        until_ns = KERNEL.now_ns() + 10 * PERIOD_NS
        while KERNEL.now_ns() < until_ns:
            pass
        while not stalls.count:
            await asyncio.sleep(0)
    assert stalls.count >= 9
    assert stalls.max >= 8 * PERIOD_NS


def test_send_hook_counts_reads():
    read_loop = ReadLoop()
    read(read_loop, 3)
    assert read_loop.hook.reads == 3
