"""A cap that changes, in virtual time: no request is sent above it, and every slot that it adds
is used.
"""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from loadgen.testing.virtual import timed
from tests.helpers.run_facts import MS
from tests.helpers.virtual_pacer import World


def caps(world, *changes):
    """A cap of 0 until the first change, each given in ms."""
    return {"cap": 0, "caps": [(world.start + round(at_ms * MS), cap) for at_ms, cap in changes]}


def highest(changes, from_ns, to_ns):
    """The highest cap of any moment between two times; at the moment of a change, either cap may
    count.
    """
    before = [cap for at_ms, cap in changes if at_ms * MS < from_ns][-1:]
    return max([*before, *(cap for at_ms, cap in changes if from_ns <= at_ms * MS <= to_ns)])


@timed
async def test_a_rise_sends_at_once_and_a_fall_waits_for_those_in_flight():
    world = World(serves=10 * MS)
    world.pace(
        [0] * 100, closed_loop=True, until_ms=30, **caps(world, (0, 1), (5, 3), (18, 1), (30, 0))
    )
    await world.run()
    # At 18 ms three are in flight; the one that ends last has a successor.
    assert world.sent_ms == [0, 5, 5, 10, 15, 15, 25]
    assert world.pacer.all_sent.is_set()


@timed
async def test_followups_that_wait_for_a_slot_have_the_first_of_a_rise():
    world = World(serves=10 * MS)
    pacer = world.pace([0] * 3, following=1, closed_loop=True, **caps(world, (0, 1), (5, 2)))
    pacer.follow(7, world.start + 2 * MS)
    await world.run()
    assert [(index, due / MS, at / MS) for index, due, _, at in world.sends] == [
        (0, 0, 0),
        (7, 2, 5),
        (1, 10, 10),
        (2, 15, 15),
    ]


@timed
async def test_a_time_without_slots_ends_at_the_end_of_the_run():
    world = World(serves=10 * MS)
    world.pace([0] * 3, closed_loop=True, until_ms=50, **caps(world, (0, 1), (5, 0), (50, 0)))
    await world.run(until_ms=49)
    assert not world.pacer.all_sent.is_set()
    await world.run(until_ms=51)
    assert world.pacer.all_sent.is_set()
    assert (world.sent_ms, world.pacer.schedule.cut_off) == ([0], 2)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=10),
    st.integers(1, 30),
    st.lists(st.integers(0, 3_000_000), min_size=1),
)
@timed
async def test_nothing_is_sent_above_the_cap_of_its_time(steps, serves_ms, lateness):
    world = World(serves=serves_ms * MS, late=itertools.cycle(lateness).__next__)
    ends_ms = list(itertools.accumulate(ms for ms, _ in steps))
    changes = [(start, cap) for start, (_, cap) in zip([0, *ends_ms], steps, strict=False)]
    world.pace(
        [0] * 500, closed_loop=True, until_ms=ends_ms[-1], **caps(world, *changes, (ends_ms[-1], 0))
    )
    await world.run()
    for *_, at in world.sends:
        in_flight = sum(sent <= at < sent + serves_ms * MS for *_, sent in world.sends)
        # An alarm that rings late leaves the cap before it a little longer.
        assert in_flight <= highest(changes, at - max(lateness), at)
    assert world.pacer.all_sent.is_set()
    assert all(at < ends_ms[-1] * MS for *_, at in world.sends)
