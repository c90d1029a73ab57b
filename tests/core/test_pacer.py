"""The pacer in virtual time: no request is early or skipped, the cap holds, every wait is
measured.
"""

import heapq
import itertools

from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.pacer import TURN_NS
from loadgen.core.read_loop import NEVER
from loadgen.testing import virtual
from loadgen.testing.virtual import timed
from tests.helpers.run_facts import MS
from tests.helpers.virtual_pacer import World

# -- when


@timed
async def test_every_request_is_sent_when_it_is_due():
    world = World()
    world.pace([1, 5, 5, 20])
    await world.run()
    assert world.sent_ms == [1, 5, 5, 20]
    assert [index for index, *_ in world.sends] == [0, 1, 2, 3]
    assert all(due == ready == at for _, due, ready, at in world.sends)
    assert world.pacer.all_sent.is_set()


@timed
async def test_request_is_not_sent_before_it_is_due():
    world = World()
    world.pace([1, 5])
    await world.run(until_ms=0.999)
    assert world.sent_ms == []
    await world.run(until_ms=4.999)
    assert world.sent_ms == [1]
    assert not world.pacer.all_sent.is_set()


@timed
async def test_overdue_requests_keep_order_and_due_time_after_a_stall():
    world = World(late=lambda: 30 * MS)
    world.pace([1, 2, 3, 40])
    await world.run()
    assert world.sent_ms == [31, 31, 31, 70]
    assert [due // MS for _, due, _, _ in world.sends] == [1, 2, 3, 40]
    # Our lateness is lag, not a wait for a slot.
    assert all(ready == due for _, due, ready, _ in world.sends)


@given(
    st.lists(st.integers(0, 50_000), min_size=1, max_size=80),
    st.lists(st.integers(0, 5_000_000), min_size=1),
)
@timed
async def test_requests_are_never_early_or_skipped_with_late_alarms(due_us, lateness):
    world = World(late=itertools.cycle(lateness).__next__, costs=7_000)
    world.pace(sorted(us / 1000 for us in due_us))
    await world.run()
    assert [index for index, *_ in world.sends] == list(range(len(due_us)))
    assert all(at >= due for _, due, _, at in world.sends)
    assert world.pacer.all_sent.is_set()


@timed
async def test_long_sending_turn_pauses_for_reads_and_continues():
    world = World(costs=100_000)
    world.pace([0.0] * 50)
    first_turn = len(world.sends)
    assert first_turn == TURN_NS // 100_000 + 1
    assert world.alarms[-1].at_ns <= virtual.now_ns()
    assert world.hook.due_ns == virtual.now_ns() + TURN_NS
    await world.run()
    assert len(world.sends) == 50


@timed
async def test_numbers_within_the_run_are_those_of_the_stripe():
    world = World()
    world.pace([0, 1], index=[3, 7])
    await world.run()
    assert [index for index, *_ in world.sends] == [3, 7]


@timed
async def test_a_stripe_without_requests_has_sent_them_all():
    world = World()
    world.pace([])
    assert world.pacer.all_sent.is_set()
    assert world.alarms[-1].closed


@timed
async def test_once_all_is_sent_the_alarm_is_put_away():
    world = World()
    world.pace([1])
    await world.run()
    assert world.alarms[-1].closed
    assert world.hook.due_ns == NEVER


# -- the cap


@timed
async def test_at_the_cap_the_next_request_waits_for_a_slot_and_its_wait_is_measured():
    world = World(serves=10 * MS)
    world.pace([0, 1, 2, 3], cap=2)
    await world.run()
    assert world.sent_ms == [0, 1, 10, 11]
    assert [(ready - due) / MS for _, due, ready, _ in world.sends] == [0, 0, 8, 8]
    assert world.most_in_flight == 2


@timed
async def test_free_slot_sends_no_request_before_it_is_due():
    world = World(serves=2 * MS)
    world.pace([0, 5, 10], cap=1)
    await world.run()
    assert world.sent_ms == [0, 5, 10]
    assert all(ready == due for _, due, ready, _ in world.sends)


@timed
async def test_waiting_requests_keep_their_order():
    world = World(serves=3 * MS)
    world.pace([0, 0, 0, 0, 4], cap=1)
    await world.run()
    assert [index for index, *_ in world.sends] == [0, 1, 2, 3, 4]
    assert world.sent_ms == [0, 3, 6, 9, 12]


@timed
async def test_all_is_sent_only_when_the_last_waiting_request_has_its_slot():
    world = World()
    world.pace([0, 0], cap=1)
    await world.run()
    assert not world.pacer.all_sent.is_set()
    world.end_one()
    assert world.pacer.all_sent.is_set()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 15))
@timed
async def test_requests_wait_only_while_all_slots_are_taken(due_ms, cap, serves_ms):
    world = World(serves=serves_ms * MS)
    world.pace(sorted(due_ms), cap=cap)
    await world.run()
    assert world.most_in_flight <= cap
    free, expected = [0] * cap, []  # the queue by hand: each takes the first slot that is free
    for due in sorted(due_ms):
        start = max(due, heapq.heappop(free))
        heapq.heappush(free, start + serves_ms)
        expected.append(start)
    assert world.sent_ms == expected
    assert [ready / MS for _, _, ready, _ in world.sends] == expected


# -- the closed loop


@timed
async def test_closed_loop_request_is_due_when_a_slot_is_free():
    world = World(serves=10 * MS)
    world.pace([0, 0, 0, 0], cap=2, closed_loop=True)
    await world.run()
    assert world.sent_ms == [0, 0, 10, 10]
    assert all(due == ready == at for _, due, ready, at in world.sends)


@timed
async def test_closed_loop_request_is_due_after_the_previous_send():
    world = World(serves=10 * MS, costs=100_000)
    world.pace([0, 0, 0], cap=3, closed_loop=True)
    await world.run()
    assert [due for _, due, _, _ in world.sends] == [0, 100_000, 200_000]


@timed
async def test_the_end_of_a_closed_loop_cuts_off_what_was_never_due():
    world = World(serves=10 * MS)
    world.pace([0.0] * 100, cap=2, closed_loop=True, until_ms=25)
    await world.run()
    assert world.sent_ms == [0, 0, 10, 10, 20, 20]
    assert world.pacer.schedule.cut_off == 94
    assert world.pacer.all_sent.is_set()


@timed
async def test_a_request_whose_slot_is_free_at_the_very_end_is_not_due():
    world = World(serves=10 * MS)
    world.pace([0.0] * 5, cap=1, closed_loop=True, until_ms=10)
    await world.run()
    assert (world.sent_ms, world.pacer.schedule.cut_off) == ([0], 4)


@timed
async def test_closed_loop_that_ends_early_has_no_never_due_requests():
    world = World(serves=10 * MS)
    world.pace([0.0] * 3, cap=1, closed_loop=True, until_ms=1000)
    await world.run()
    assert (len(world.sends), world.pacer.schedule.cut_off) == (3, 0)


# -- stopping


@timed
async def test_stop_counts_unsent_requests_and_ends_sending():
    world = World()
    world.pace([0, 1, 2, 3, 50], cap=2)
    await world.run(until_ms=10)  # two in flight, two waiting, one not yet due
    assert world.pacer.stop() == 3
    assert world.pacer.all_sent.is_set()
    world.end_one()
    await world.run()
    assert len(world.sends) == 2
    assert world.alarms[-1].closed


@timed
async def test_hook_of_a_stopped_pacer_sends_no_request():
    world = World()
    world.pace([5])
    ring = world.hook.callback
    world.pacer.stop()
    virtual.spend(10 * MS)
    ring()
    assert world.sends == []


@timed
async def test_stopping_after_the_last_request_leaves_none_unsent():
    world = World()
    world.pace([0, 1])
    await world.run()
    assert world.pacer.stop() == 0


# -- the hook


@timed
async def test_the_bell_is_set_to_the_next_due_time():
    world = World()
    world.pace([5, 9])
    assert world.hook.due_ns == world.start + 5 * MS
    await world.run(until_ms=5)
    assert world.hook.due_ns == world.start + 9 * MS


@timed
async def test_hook_sends_due_requests_that_the_alarm_does_not_repeat():
    world = World()
    world.pace([5, 9])
    virtual.spend(6 * MS)  # a long turn of the loop: the alarm is due, but cannot ring
    world.hook.callback()
    assert world.sent_ms == [6]
    assert world.alarms[-1].at_ns == world.start + 9 * MS
    await world.run()
    assert world.sent_ms == [6, 9]


@timed
async def test_hook_called_too_early_sends_no_request():
    world = World()
    world.pace([5])
    world.hook.callback()
    assert world.sends == []
    assert world.hook.due_ns == world.start + 5 * MS


# -- what is due and not sent


@timed
async def test_requests_without_a_slot_and_such_as_are_late_are_overdue():
    world = World(late=lambda: 30 * MS)
    pacer = world.pace([1, 2, 3, 40, 90], cap=2)
    assert pacer.overdue == 0
    virtual.spend(2 * MS + 1)
    assert pacer.overdue == 2  # the alarm has not rung yet
    await world.run(until_ms=35)
    assert pacer.overdue == 1  # the third has no slot
    world.end_one()
    assert pacer.overdue == 0


@timed
async def test_closed_loop_has_no_overdue_requests():
    world = World(serves=10 * MS)
    pacer = world.pace([0] * 5, cap=2, closed_loop=True)
    await world.run(until_ms=15)
    assert (len(world.sends), pacer.overdue) == (4, 0)
