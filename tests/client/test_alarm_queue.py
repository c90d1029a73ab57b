"""Items are handed out at their times, in virtual time; what is left at the end comes back."""

import asyncio

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.testing import virtual
from loadgen.testing.virtual import timed

MS = 1_000_000


@timed
async def test_items_are_handed_out_when_due_the_earliest_first() -> None:
    clock, seen = virtual.clock(), list[tuple[str, float, float]]()
    start = clock.now_ns()
    queue = AlarmQueue[str](
        lambda item, due: seen.append((item, (due - start) / MS, clock.now_ns() - due)), clock
    )
    for at_ms, item in ((30, "c"), (10, "a"), (20, "b"), (10, "a again")):
        queue.add(start + at_ms * MS, item)
    await asyncio.sleep(0.1)
    assert seen == [("a", 10, 0), ("a again", 10, 0), ("b", 20, 0), ("c", 30, 0)]


@timed
async def test_an_item_can_add_another() -> None:
    clock, seen = virtual.clock(), list[int]()
    start = clock.now_ns()

    def again(item: int, due_ns: int) -> None:
        seen.append(item)
        if item < 3:
            queue.add(due_ns + MS, item + 1)

    queue = AlarmQueue[int](again, clock)
    queue.add(start, 1)
    await asyncio.sleep(0.1)
    assert seen == [1, 2, 3]


@timed
async def test_a_closed_queue_returns_what_is_left_and_hands_out_nothing() -> None:
    clock, seen = virtual.clock(), list[str]()
    queue = AlarmQueue[str](lambda item, due: seen.append(item), clock)
    for at_ms, item in ((20, "b"), (10, "a")):
        queue.add(clock.now_ns() + at_ms * MS, item)
    assert queue.close() == ["a", "b"]
    await asyncio.sleep(0.1)
    assert seen == []
    assert queue.close() == []
