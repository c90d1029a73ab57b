"""The balancer chooses a target for each request and behaves as one transport."""

import asyncio
from array import array

import pytest

from loadgen.client.balancer import Balancer
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS


class Transport:
    """Remembers what it is asked to do; `end` ends what it was first sent."""

    def __init__(self, hook):
        self.hook, self.reuses, self.sent, self.taps, self.idle = hook, True, [], [], 0
        self.on_end = None

    def send(self, record, body):
        self.sent.append(record)

    def end(self):
        record = self.sent.pop(0)
        record.outcome = Outcome.OK
        self.on_end(record)

    def tap(self, tap):
        self.taps.append(tap)

    def abandon(self, outcome, detail):
        for record in self.sent:
            record.outcome = outcome

    async def warm(self, count):
        self.idle = min(count, 4)
        return self.idle


@pytest.fixture
def transports():
    hook = SendHook()
    return [Transport(hook) for _ in range(3)]


def balancer(transports, balance="round-robin", schedule=None):
    made = Balancer(transports, balance)
    made.on_end = lambda record: None
    if schedule is not None:
        made.follow(schedule)
    return made


def sent(made, *indices):
    """The targets of requests with these numbers, sent one after the other."""
    targets = []
    for index in indices:
        record = Record(index)
        made.send(record, b"{}")
        targets.append(record.target)
    return targets


def sessions(*turns):
    """A schedule of sessions with so many turns each."""
    due_ns = [due for begin, count in enumerate(turns) for due in (begin, *[FOLLOWS] * (count - 1))]
    return Schedule(array("q", due_ns), len(turns))


# -- in turn


def test_round_robin_target_depends_only_on_request_number(transports):
    made = balancer(transports)
    assert sent(made, *range(7)) == [0, 1, 2, 0, 1, 2, 0]
    assert sent(balancer(transports), 5, 3, 4) == [2, 0, 1]


def test_transports_record_the_requests_they_were_sent(transports):
    sent(balancer(transports), *range(4))
    assert [[record.index for record in one.sent] for one in transports] == [[0, 3], [1], [2]]


def test_round_robin_keeps_a_sessions_turns_on_one_target(transports):
    made = balancer(transports, schedule=sessions(2, 3, 1, 2))
    assert sent(made, *range(8)) == [0, 0, 1, 1, 1, 2, 0, 0]


# -- the least outstanding


def test_the_fewest_in_flight_come_first_and_the_first_of_several_such(transports):
    made = balancer(transports, "least-outstanding")
    assert sent(made, 0, 1, 2, 3) == [0, 1, 2, 0]
    transports[2].end()
    assert sent(made, 4, 5) == [2, 1]


def test_failed_request_is_no_longer_in_flight(transports):
    made = balancer(transports, "least-outstanding")
    (number,) = sent(made, 0)
    record = transports[number].sent.pop()
    record.outcome = Outcome.REFUSED
    transports[number].on_end(record)
    assert sent(made, 1) == [0]


def test_later_turns_go_to_the_target_of_the_first(transports):
    made = balancer(transports, "least-outstanding", sessions(2, 1, 1, 1))
    assert sent(made, 0, 2, 3) == [0, 1, 2]
    transports[1].end()
    transports[2].end()
    assert sent(made, 1) == [0]
    assert sent(made, 4) == [1]


# -- as one


def test_every_record_that_ends_is_handed_on_once(transports):
    made, ended = balancer(transports), []
    made.on_end = ended.append
    sent(made, 0, 1, 2)
    for one in transports:
        one.end()
    assert [record.index for record in ended] == [0, 1, 2]


def test_who_listens_last_is_told(transports):
    made, ended = balancer(transports), []
    for one in transports:
        one.on_end = None  # somebody has used it alone meanwhile
    made.on_end = ended.append
    sent(made, 1)
    transports[1].end()
    assert len(ended) == 1


def test_connections_are_opened_in_equal_shares_and_all_of_them_counted(transports):
    assert asyncio.run(balancer(transports).warm(7)) == 9
    assert [one.idle for one in transports] == [3, 3, 3]
    assert asyncio.run(balancer(transports).warm(100)) == 12


def test_connections_are_used_again_only_where_each_target_allows_it(transports):
    made = balancer(transports)
    assert made.reuses
    transports[1].reuses = False
    assert not made.reuses


def test_all_are_tapped_and_all_in_flight_abandoned(transports):
    made, tap = balancer(transports), object()
    made.tap(tap)
    sent(made, 0, 1, 2)
    made.abandon(Outcome.CANCELLED, "enough")
    assert [one.taps for one in transports] == [[tap]] * 3
    assert {record.outcome for one in transports for record in one.sent} == {Outcome.CANCELLED}


def test_balancer_shares_the_send_hook_of_its_transports(transports):
    assert balancer(transports).hook is transports[2].hook
