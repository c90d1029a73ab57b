"""Follow-up requests in virtual time: sent when due, and counted whether or not they became
known.
"""

from loadgen.core.read_loop import NEVER
from loadgen.testing.virtual import timed
from tests.helpers.run_facts import MS
from tests.helpers.virtual_pacer import World


@timed
async def test_followup_is_sent_in_due_order_among_other_requests():
    world = World()
    pacer = world.pace([0, 10, 20], following=2)
    pacer.follow(7, world.start + 15 * MS)
    pacer.follow(8, world.start + 5 * MS)
    await world.run()
    assert [(index, at / MS) for index, *_, at in world.sends] == [
        (0, 0),
        (8, 5),
        (1, 10),
        (7, 15),
        (2, 20),
    ]
    assert pacer.all_sent.is_set()


@timed
async def test_followup_that_is_already_due_is_sent_at_once():
    world = World()
    pacer = world.pace([0], following=1)
    await world.run(3)
    pacer.follow(7, world.start + 2 * MS)
    assert world.sends[-1] == (7, 2 * MS, 2 * MS, 3 * MS)


@timed
async def test_not_all_is_sent_while_anything_may_follow():
    world = World()
    pacer = world.pace([0], following=3)
    await world.run(1)
    pacer.cancel_followups(2)
    assert not pacer.all_sent.is_set()
    pacer.cancel_followups(1)
    assert pacer.all_sent.is_set()


@timed
async def test_stop_counts_followups_with_and_without_a_due_time():
    world = World()
    pacer = world.pace([0, 50], following=3)
    pacer.follow(7, world.start + 40 * MS)
    await world.run(1)
    assert pacer.stop() == 4
    pacer.follow(8, world.start + 2 * MS)
    pacer.cancel_followups(1)
    await world.run()
    assert [index for index, *_ in world.sends] == [0]


@timed
async def test_without_a_slot_what_follows_waits_behind_what_was_due_before():
    world = World()
    pacer = world.pace([0, 1], cap=1, following=1)
    await world.run(2)
    pacer.follow(7, world.start + 2 * MS)
    pacer.release()
    await world.run(4)
    pacer.release()
    assert world.sends[1:] == [(1, 1 * MS, 2 * MS, 2 * MS), (7, 2 * MS, 4 * MS, 4 * MS)]


@timed
async def test_closed_loop_followups_keep_their_due_time_and_go_first():
    world = World()
    pacer = world.pace([0, 0, 0], cap=1, closed_loop=True, following=2)
    pacer.follow(7, world.start + 3 * MS)
    pacer.follow(8, world.start + 4 * MS)
    for until_ms in (5, 6, 7, 8):
        await world.run(until_ms)
        pacer.release()
    assert [(index, due / MS, at / MS) for index, due, _, at in world.sends] == [
        (0, 0, 0),
        (7, 3, 5),
        (8, 4, 6),
        (1, 7, 7),
        (2, 8, 8),
    ]


@timed
async def test_followup_after_the_end_is_never_due():
    world = World()
    pacer = world.pace([0, 0], cap=1, closed_loop=True, following=2, until_ms=10)
    await world.run(12)
    pacer.follow(7, world.start + 12 * MS)
    pacer.release()
    assert pacer.schedule.cut_off == 3
    assert pacer.all_sent.is_set()


@timed
async def test_hook_is_due_for_the_next_followup_or_never():
    world = World()
    pacer = world.pace([0], following=1)
    assert world.hook.due_ns == NEVER
    pacer.follow(7, world.start + 5 * MS)
    assert world.hook.due_ns == world.start + 5 * MS
