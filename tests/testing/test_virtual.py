"""Virtual time passes only when no task can run, exactly and in the same order each time."""

import asyncio
import time

import pytest

from loadgen.testing import virtual
from loadgen.testing.virtual import EPOCH_NS, Stuck, timed
from loadgen.util.clock import KERNEL
from tests.helpers.run_facts import MS, S


def since_start():
    return virtual.now_ns() - EPOCH_NS


async def forever():
    await asyncio.Event().wait()


# -- time


def test_a_year_passes_at_once():
    async def main():
        await asyncio.sleep(365 * 86400)
        return since_start()

    before_s = time.monotonic()
    assert virtual.run(main()) == 365 * 86400 * S
    assert time.monotonic() - before_s < 60


@timed
async def test_computing_takes_no_time_and_yielding_none_either():
    sum(range(100_000))
    for _ in range(100):
        await asyncio.sleep(0)
    assert since_start() == 0


@timed
async def test_every_run_begins_at_the_same_time_and_not_at_0():
    assert virtual.now_ns() == EPOCH_NS > 0
    assert asyncio.get_running_loop().time() == EPOCH_NS / S


@pytest.mark.parametrize("delay_ns", [1, 999, 123_456_789, 86_400 * S + 1])
@timed
async def test_delays_are_kept_to_the_nanosecond(delay_ns):
    await asyncio.sleep(delay_ns / S)
    assert since_start() == delay_ns
    rung = asyncio.Event()
    asyncio.get_running_loop().call_at((virtual.now_ns() + delay_ns) / S, rung.set)
    await rung.wait()
    assert since_start() == 2 * delay_ns


@timed
async def test_simultaneous_callbacks_run_in_order_of_scheduling():
    loop, order = asyncio.get_running_loop(), []
    for number in range(50):
        loop.call_later(1, order.append, number)
        loop.call_soon(order.append, -number)
    loop.call_at_ns(virtual.now_ns() + S - 1, order.append, "before")
    await asyncio.sleep(1)
    assert order == [*range(0, -50, -1), "before", *range(50)]


@timed
async def test_all_that_is_ready_runs_before_time_goes_on():
    seen = []

    async def chain(steps):
        for _ in range(steps):
            await asyncio.sleep(0)
        seen.append(since_start())

    asyncio.get_running_loop().call_later(1e-9, lambda: seen.append("a nanosecond later"))
    await asyncio.gather(chain(10), chain(100))
    await asyncio.sleep(1)
    assert seen == [0, 0, "a nanosecond later"]


@timed
async def test_past_time_runs_at_next_turn_and_time_stays():
    await asyncio.sleep(1)
    loop, seen = asyncio.get_running_loop(), []
    loop.call_at(0, lambda: seen.append(since_start()))
    loop.call_later(-5, lambda: seen.append(since_start()))
    assert seen == []
    for _ in range(2):  # this task had its turn asked for first
        await asyncio.sleep(0)
    assert seen == [S, S]


@timed
async def test_a_timer_that_is_cancelled_does_not_ring():
    loop, rung = asyncio.get_running_loop(), []
    loop.call_later(1, rung.append, "cancelled").cancel()
    late = loop.call_later(3, rung.append, "late")
    loop.call_later(2, late.cancel)
    loop.call_soon(rung.append, "soon").cancel()
    await asyncio.sleep(4)
    assert rung == []


@timed
async def test_spending_time_makes_what_was_due_meanwhile_late():
    loop, seen = asyncio.get_running_loop(), []
    for delay_s in (1, 2, 4):
        loop.call_later(delay_s, lambda: seen.append(since_start() / S))
    virtual.spend(3 * S)
    assert (since_start(), seen) == (3 * S, [])
    await asyncio.sleep(2)
    assert seen == [3, 3, 4]
    with pytest.raises(ValueError, match="-1 ns"):
        virtual.spend(-1)


# -- what asyncio makes of it


@timed
async def test_timeouts_queues_and_task_groups_work():
    queue = asyncio.Queue(maxsize=1)

    async def produce():
        for number in range(3):
            await asyncio.sleep(1)
            await queue.put(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(produce(), name="producer")
        assert [await queue.get() for _ in range(3)] == [0, 1, 2]
    assert since_start() == 3 * S
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(7):
            await forever()
    assert since_start() == 10 * S


def test_a_run_gives_what_its_coroutine_returns_or_raises():
    async def answer(value):
        if value is None:
            raise KeyError("none")
        return value

    assert virtual.run(answer(3)) == 3
    with pytest.raises(KeyError, match="none"):
        virtual.run(answer(None))


def test_tasks_that_are_left_behind_are_cancelled():
    ended = []

    async def lingering():
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(since_start())

    async def main():
        asyncio.create_task(lingering())  # noqa: RUF006 - it is left behind
        await asyncio.sleep(1)

    virtual.run(main())
    assert ended == [S]


@timed
async def test_a_virtual_run_inside_another_loop_is_refused():
    main = forever()
    with pytest.raises(RuntimeError, match="running event loop"):
        virtual.run(main)
    main.close()


# -- what goes wrong is told


def test_endless_wait_raises_stuck_with_its_place():
    with pytest.raises(Stuck, match=r"these wait: forever \(.*test_virtual\.py:\d+\)"):
        virtual.run(forever())


def test_a_fault_in_a_callback_ends_the_run():
    async def main():
        asyncio.get_running_loop().call_later(1, lambda: {}["missing"])
        await asyncio.sleep(2)
        raise AssertionError("it went on")

    with pytest.raises(KeyError, match="missing"):
        virtual.run(main())


@timed
async def test_threads_and_sockets_are_refused():
    with pytest.raises(NotImplementedError):
        await asyncio.to_thread(time.time)
    with pytest.raises(NotImplementedError):
        await asyncio.open_connection("127.0.0.1", 9)


async def test_outside_of_a_virtual_loop_there_is_no_virtual_time():
    for ask in (virtual.now_ns, virtual.clock, lambda: virtual.spend(1)):
        with pytest.raises(RuntimeError, match=r"virtual time exists only inside `virtual\.run`"):
            ask()


# -- the clock that goes with it


@timed
async def test_clock_shows_virtual_time_and_not_the_kernels():
    clock = virtual.clock()
    await asyncio.sleep(3600)
    assert clock.now_ns() == virtual.now_ns() == EPOCH_NS + 3600 * S
    assert abs(KERNEL.now_ns() - time.monotonic_ns()) < 3600 * S


@timed
async def test_an_alarm_rings_once_at_the_time_set_last():
    rung = []
    alarm = virtual.clock().alarm(asyncio.get_running_loop(), lambda: rung.append(since_start()))
    alarm.set(EPOCH_NS + 5 * MS)
    alarm.set(EPOCH_NS + 7 * MS)
    assert alarm.at_ns == EPOCH_NS + 7 * MS
    await asyncio.sleep(1)
    assert (rung, alarm.at_ns) == ([7 * MS], None)


@timed
async def test_an_alarm_in_the_past_rings_at_the_next_turn():
    rung = []
    alarm = virtual.clock().alarm(asyncio.get_running_loop(), lambda: rung.append(since_start()))
    alarm.set(1)
    assert rung == []
    for _ in range(2):
        await asyncio.sleep(0)
    assert rung == [0]


@timed
async def test_a_closed_alarm_never_rings():
    rung = []
    alarm = virtual.clock().alarm(asyncio.get_running_loop(), lambda: rung.append(since_start()))
    alarm.set(EPOCH_NS + MS)
    alarm.close()
    alarm.close()
    await asyncio.sleep(1)
    assert (rung, alarm.at_ns, alarm.closed) == ([], None, True)
