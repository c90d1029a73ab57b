"""A schedule of integers: what may be sent at a time, and when to ask again. The tests of the pacer
have the rules in a time that passes.
"""

from array import array

from loadgen.core.read_loop import NEVER
from loadgen.core.schedule import Schedule


def steps(schedule: Schedule, at_ns: int) -> list[tuple[int, int, int]]:
    """All that may be sent at a time: number, due time and time of its slot."""
    handed_out = []
    while schedule.step(at_ns):
        handed_out.append((schedule.index, schedule.due_ns, schedule.ready_ns))
    return handed_out


def test_what_is_due_is_handed_out_once_and_the_next_due_time_is_named() -> None:
    schedule = Schedule(1000, [3, 5, 8], [0, 10, 20])
    assert steps(schedule, 999) == []
    assert schedule.next_ns == 1000
    assert steps(schedule, 1015) == [(3, 1000, 1000), (5, 1010, 1010)]
    assert schedule.next_ns == 1020
    assert not schedule.is_done
    assert steps(schedule, 1020) == [(8, 1020, 1020)]
    assert (schedule.is_done, schedule.next_ns) == (True, NEVER)


def test_without_a_slot_a_request_waits_and_is_ready_when_one_is_free() -> None:
    schedule = Schedule(0, range(3), [0, 1, 2], cap=1)
    assert steps(schedule, 5) == [(0, 0, 0)]
    assert schedule.overdue(5) == 2
    assert schedule.release()
    assert steps(schedule, 7) == [(1, 1, 7)]
    assert schedule.overdue(7) == 1


def test_a_cap_that_rises_frees_slots_and_one_that_falls_takes_them() -> None:
    schedule = Schedule(0, range(5), [0] * 5, cap=1, caps=[(10, 3), (20, 1)])
    assert len(steps(schedule, 0)) == 1
    assert schedule.next_ns == 10
    assert [ready_ns for _, _, ready_ns in steps(schedule, 10)] == [10, 10]
    assert steps(schedule, 20) == []
    assert schedule.cap == 1
    for _ in range(2):
        schedule.release()
        assert steps(schedule, 21) == []
    schedule.release()
    assert len(steps(schedule, 22)) == 1


def test_follow_ups_go_by_their_due_times() -> None:
    schedule = Schedule(0, [0], [0], following=2)
    assert len(steps(schedule, 0)) == 1
    assert not schedule.is_done
    assert schedule.follow(7, 30)
    assert not schedule.follow(8, 40)
    assert schedule.follow(9, 20)
    assert steps(schedule, 30) == [(9, 20, 20), (7, 30, 30)]
    schedule.cancel(0)
    assert schedule.is_done


def test_what_is_stopped_is_counted_once() -> None:
    schedule = Schedule(0, range(4), [0, 1, 2, 3], following=2, cap=1)
    steps(schedule, 2)
    assert (schedule.stop(), schedule.stop()) == (5, 0)
    assert (schedule.is_done, steps(schedule, 9)) == (True, [])


def test_due_times_of_any_type_are_taken_as_integers() -> None:
    schedule = Schedule(0, range(2), array("i", [5, 7]))
    assert steps(schedule, 6) == [(0, 5, 5)]
