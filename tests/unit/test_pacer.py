"""The pacer in virtual time: never early, never skipped, the cap kept, every wait measured."""

import asyncio
import contextlib
import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import pacer
from loadgen.pacer import TURN_NS, Pacer
from loadgen.wire import NEVER, Bell
from tests.unit.making import MS, S


class World:
    """A clock that moves only when a test lets it, the alarms set on it, and a server that takes `serves` ns."""

    def __init__(self, serves=None, late=lambda: 0, costs=0):
        self.now, self.alarms, self.sends = 10 * S, [], []
        self._serves, self._late, self._costs = serves, late, costs
        self._ends, self._order = [], itertools.count()
        self.in_flight = self.most_in_flight = 0
        self.bell = Bell()

    def now_ns(self):
        return self.now

    def alarm(self, loop, callback):
        self.alarms.append(VirtualAlarm(callback))
        return self.alarms[-1]

    def send(self, index, due_ns, ready_ns):
        self.now += self._costs
        self.sends.append((index, due_ns, ready_ns, self.now))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if self._serves is not None:
            heapq.heappush(self._ends, (self.now + self._serves, next(self._order)))

    def end_one(self):
        self.in_flight -= 1
        self.pacer.release()

    def pace(self, due_ms, **options):
        """A pacer of requests due so long after now; it is started."""
        due_ns = self.now + np.array([round(ms * MS) for ms in due_ms], dtype=np.int64)
        self.pacer = Pacer(due_ns, np.arange(len(due_ns), dtype=np.int64), self.send, self.bell, **options)
        self.pacer.start()
        return self.pacer

    def run(self, until_ms=float("inf")):
        """Let time pass up to a moment, or until nothing more happens."""
        until = 10 * S + until_ms * MS
        while True:
            ends = self._ends[0][0] if self._ends else NEVER
            alarm = self.alarms[-1]
            when = min(ends, alarm.at_ns)
            if when == NEVER or when > until:
                self.now = max(self.now, int(until)) if until < float("inf") else self.now
                return
            if ends <= alarm.at_ns:
                self.now = max(self.now, ends)
                heapq.heappop(self._ends)
                self.end_one()
            else:
                self.now = max(self.now, alarm.at_ns) + self._late()
                alarm.ring()

    @property
    def sent_ms(self):
        return [(at - 10 * S) / MS for _, _, _, at in self.sends]


class VirtualAlarm:
    """What `loadgen.clock.Alarm` is, on a clock of its own."""

    def __init__(self, callback):
        self._callback, self.at_ns, self.closed = callback, NEVER, False

    def set(self, due_ns):
        assert not self.closed
        self.at_ns = due_ns

    def close(self):
        self.at_ns, self.closed = NEVER, True

    def ring(self):
        self.at_ns = NEVER
        self._callback()


@contextlib.contextmanager
def virtual_time():
    """Yields what makes a World; pacers use its clock and alarms inside."""

    def make(**options):
        made = World(**options)
        patch.setattr(pacer, "now_ns", made.now_ns)
        patch.setattr(pacer, "Alarm", made.alarm)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: None)  # virtual alarms need none
        yield make


@pytest.fixture
def make_world():
    with virtual_time() as make:
        yield make


@pytest.fixture
def world(make_world):
    return make_world()


# -- when


def test_every_request_is_sent_when_it_is_due(world):
    world.pace([1, 5, 5, 20])
    world.run()
    assert world.sent_ms == [1, 5, 5, 20]
    assert [index for index, *_ in world.sends] == [0, 1, 2, 3]
    assert all(due == ready == at for _, due, ready, at in world.sends)
    assert world.pacer.all_sent.is_set()


def test_nothing_is_sent_before_it_is_due(world):
    world.pace([1, 5])
    world.run(until_ms=0.999)
    assert world.sent_ms == []
    world.run(until_ms=4.999)
    assert world.sent_ms == [1]
    assert not world.pacer.all_sent.is_set()


def test_after_a_stall_what_has_become_due_is_sent_in_order_with_its_own_due_time(make_world):
    world = make_world(late=lambda: 30 * MS)
    world.pace([1, 2, 3, 40])
    world.run()
    assert world.sent_ms == [31, 31, 31, 70]
    assert [(due - 10 * S) // MS for _, due, _, _ in world.sends] == [1, 2, 3, 40]
    assert all(ready == due for _, due, ready, _ in world.sends)  # our lateness is lag, not a wait for a slot


@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=80), st.lists(st.integers(0, 5_000_000), min_size=1))
def test_never_early_never_skipped_however_late_the_alarm_rings(due_us, lateness):
    with virtual_time() as make_world:
        world = make_world(late=itertools.cycle(lateness).__next__, costs=7_000)
        world.pace(sorted(us / 1000 for us in due_us))
        world.run()
    assert [index for index, *_ in world.sends] == list(range(len(due_us)))
    assert all(at >= due for _, due, _, at in world.sends)
    assert world.pacer.all_sent.is_set()


def test_a_long_turn_of_sending_lets_streams_be_read_and_goes_on_at_once(make_world):
    world = make_world(costs=100_000)
    world.pace([0.0] * 50)
    first_turn = len(world.sends)
    assert first_turn == TURN_NS // 100_000 + 1
    assert world.alarms[-1].at_ns <= world.now
    world.run()
    assert len(world.sends) == 50


def test_numbers_within_the_run_are_those_of_the_stripe(world):
    due_ns = world.now + np.array([0, MS], dtype=np.int64)
    world.pacer = Pacer(due_ns, np.array([3, 7], dtype=np.int64), world.send, world.bell)
    world.pacer.start()
    world.run()
    assert [index for index, *_ in world.sends] == [3, 7]


def test_a_stripe_without_requests_has_sent_them_all(world):
    world.pace([])
    assert world.pacer.all_sent.is_set()
    assert world.alarms[-1].closed


def test_once_all_is_sent_the_alarm_is_put_away(world):
    world.pace([1])
    world.run()
    assert world.alarms[-1].closed
    assert world.bell.at_ns == NEVER


# -- the cap


def test_at_the_cap_the_next_request_waits_for_a_slot_and_its_wait_is_measured(make_world):
    world = make_world(serves=10 * MS)
    world.pace([0, 1, 2, 3], cap=2)
    world.run()
    assert world.sent_ms == [0, 1, 10, 11]
    assert [(ready - due) / MS for _, due, ready, _ in world.sends] == [0, 0, 8, 8]
    assert world.most_in_flight == 2


def test_a_slot_that_is_free_before_the_request_is_due_sends_nothing_early(make_world):
    world = make_world(serves=2 * MS)
    world.pace([0, 5, 10], cap=1)
    world.run()
    assert world.sent_ms == [0, 5, 10]
    assert all(ready == due for _, due, ready, _ in world.sends)


def test_waiting_requests_keep_their_order(make_world):
    world = make_world(serves=3 * MS)
    world.pace([0, 0, 0, 0, 4], cap=1)
    world.run()
    assert [index for index, *_ in world.sends] == [0, 1, 2, 3, 4]
    assert world.sent_ms == [0, 3, 6, 9, 12]


def test_all_is_sent_only_when_the_last_waiting_request_has_its_slot(world):
    world.pace([0, 0], cap=1)
    world.run()
    assert not world.pacer.all_sent.is_set()
    world.end_one()
    assert world.pacer.all_sent.is_set()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 15))
def test_the_cap_holds_and_nothing_waits_while_a_slot_is_free(due_ms, cap, serves_ms):
    with virtual_time() as make_world:
        world = make_world(serves=serves_ms * MS)
        world.pace(sorted(due_ms), cap=cap)
        world.run()
    assert world.most_in_flight <= cap
    free, expected = [0] * cap, []  # the queue by hand: each takes the first slot that is free
    for due in sorted(due_ms):
        start = max(due, heapq.heappop(free))
        heapq.heappush(free, start + serves_ms)
        expected.append(start)
    assert world.sent_ms == expected
    assert [(ready - 10 * S) / MS for _, _, ready, _ in world.sends] == expected


# -- the closed loop


def test_in_a_closed_loop_a_request_is_due_when_a_slot_is_free_for_it(make_world):
    world = make_world(serves=10 * MS)
    world.pace([0, 0, 0, 0], cap=2, closed_loop=True)
    world.run()
    assert world.sent_ms == [0, 0, 10, 10]
    assert all(due == ready == at for _, due, ready, at in world.sends)


def test_the_end_of_a_closed_loop_cuts_off_what_was_never_due(make_world):
    world = make_world(serves=10 * MS)
    world.pace([0.0] * 100, cap=2, closed_loop=True, until_ns=world.now + 25 * MS)
    world.run()
    assert world.sent_ms == [0, 0, 10, 10, 20, 20]
    assert world.pacer.never_due == 94
    assert world.pacer.all_sent.is_set()


def test_a_request_whose_slot_is_free_at_the_very_end_is_not_due(make_world):
    world = make_world(serves=10 * MS)
    world.pace([0.0] * 5, cap=1, closed_loop=True, until_ns=world.now + 10 * MS)
    world.run()
    assert (world.sent_ms, world.pacer.never_due) == ([0], 4)


def test_a_closed_loop_that_ends_before_its_time_cuts_nothing_off(make_world):
    world = make_world(serves=10 * MS)
    world.pace([0.0] * 3, cap=1, closed_loop=True, until_ns=world.now + S)
    world.run()
    assert (len(world.sends), world.pacer.never_due) == (3, 0)


# -- stopping


def test_stop_counts_what_was_never_sent_and_nothing_is_sent_after_it(world):
    world.pace([0, 1, 2, 3, 50], cap=2)
    world.run(until_ms=10)  # two in flight, two waiting, one not yet due
    assert world.pacer.stop() == 3
    assert world.pacer.all_sent.is_set()
    world.end_one()
    world.run()
    assert len(world.sends) == 2
    assert world.alarms[-1].closed


def test_the_bell_of_a_stopped_pacer_sends_nothing(world):
    world.pace([5])
    ring = world.bell.ring
    world.pacer.stop()
    world.now += 10 * MS
    ring()
    assert world.sends == []


def test_stopping_after_the_last_request_leaves_none_unsent(world):
    world.pace([0, 1])
    world.run()
    assert world.pacer.stop() == 0


# -- the bell


def test_the_bell_is_set_to_the_next_due_time(world):
    world.pace([5, 9])
    assert world.bell.at_ns == world.now + 5 * MS
    world.run(until_ms=5)
    assert world.bell.at_ns == 10 * S + 9 * MS


def test_a_bell_rung_by_a_stream_sends_what_is_due_and_the_alarm_after_it_nothing_twice(world):
    world.pace([5, 9])
    world.now += 6 * MS  # a long turn of the loop: the alarm is due, but cannot ring
    world.bell.ring()
    assert world.sent_ms == [6]
    assert world.alarms[-1].at_ns == 10 * S + 9 * MS
    world.run()
    assert world.sent_ms == [6, 9]


def test_a_bell_rung_too_early_sends_nothing(world):
    world.pace([5])
    world.bell.ring()
    assert world.sends == []
    assert world.bell.at_ns == world.now + 5 * MS
