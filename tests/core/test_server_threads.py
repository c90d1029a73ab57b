"""Whether idle connections hold threads that requests wait for: on a clock of integers."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.server_threads import FIRST_PATIENCE_NS, LEAST_PATIENCE_NS, ServerThreads
from tests.helpers.integer_server import MS, IntegerServer, S, request


@pytest.fixture
def threads():
    return ServerThreads()


def sent(threads, at_ns=0):
    """A request on a new connection."""
    record = request(at_ns)
    threads.sent(record)
    return record


def answer(threads, record, first_byte_ns, closed_ns=None):
    """Its whole response."""
    record.first_byte = first_byte_ns
    record.closed = closed_ns or first_byte_ns
    record.outcome = Outcome.OK
    threads.ended(record, record.closed)


def kept(threads, sent_ns, first_byte_ns):
    """A request on a connection that was kept, and its response."""
    record = request(sent_ns)
    record.reused = True
    answer(threads, record, first_byte_ns)


@pytest.fixture
def starving(threads):
    """A request without a byte, beside a connection that is idle since another one was answered
    within 20 ms.
    """
    first = sent(threads)
    record = sent(threads)
    answer(threads, first, 20 * MS)
    return record


class TestSuspicion:
    def test_it_takes_three_times_as_long_as_another_response_has_taken(self, threads, starving):
        assert threads.look(20 * MS, 1, 80 * MS - 1) == (False, 1)
        assert threads.look(20 * MS, 1, 80 * MS) == (True, LEAST_PATIENCE_NS)

    def test_without_an_idle_connection_there_is_none(self, threads, starving):
        assert threads.look(None, 1, S) == (False, LEAST_PATIENCE_NS)

    def test_the_first_response_of_all_may_take_long(self, threads):
        sent(threads)
        assert not threads.look(0, 1, FIRST_PATIENCE_NS - 1)[0]
        assert threads.look(0, 1, FIRST_PATIENCE_NS)[0]

    def test_no_request_waits_as_long_as_its_timeout(self):
        threads = ServerThreads(most_patience_ns=S)
        sent(threads)
        assert not threads.look(0, 1, S - 1)[0]
        assert threads.look(0, 1, S)[0]

    def test_nothing_is_watched_once_all_have_been_answered(self, threads, starving):
        answer(threads, starving, 30 * MS)
        assert threads.look(20 * MS, 0, 30 * MS) == (False, 0)

    def test_a_server_that_answers_no_later_request_is_slow(self, threads, starving):
        assert not threads.look(20 * MS, 2, S)[0]

    def test_one_that_answers_a_later_request_on_a_kept_one_is_not(self, threads, starving):
        kept(threads, 30 * MS, 50 * MS)
        assert not threads.look(None, 2, 60 * MS - 1)[0]
        assert threads.look(None, 2, 60 * MS)[0]

    def test_one_that_serves_others_on_kept_ones_is_not(self, threads):
        """Also where requests that were sent behind it have been answered."""
        ended = [request(MS, 2 * MS), request(MS, 2 * MS)]
        for record in [request(), *ended]:
            threads.sent(record)
        assert threads.look(0, 3, 6 * S) == (False, LEAST_PATIENCE_NS)
        assert threads.look(0, 1, 6 * S)[0]

    def test_responses_on_kept_connections_show_how_long_one_takes(self, threads, starving):
        """One on a new connection may have waited for a thread."""
        answer(threads, sent(threads), S)
        kept(threads, S, S + 10 * MS)
        assert threads.look(None, 2, S + 20 * MS)[0]


class TestProof:
    def test_a_response_that_begins_soon_after_is_one(self, threads, starving):
        threads.look(20 * MS, 1, 80 * MS)
        starving.first_byte = 100 * MS
        assert threads.look(None, 1, 130 * MS) == (True, 0)
        assert (threads.starved, threads.are_held) == (1, True)

    def test_none_is_kept_until_it_has_come_to_an_end(self, threads, starving):
        assert not threads.keeps_none
        threads.look(20 * MS, 1, 80 * MS)
        assert threads.keeps_none
        assert threads.look(None, 1, 131 * MS) == (False, 0)
        assert not threads.keeps_none

    def test_where_none_is_idle_the_next_response_to_end_frees_a_thread(self, threads, starving):
        kept(threads, 30 * MS, 50 * MS)
        threads.look(None, 2, 80 * MS)
        threads.look(None, 2, S)
        assert threads.keeps_none
        kept(threads, 60 * MS, S)
        starving.first_byte = S + 20 * MS
        threads.look(None, 1, S + 30 * MS)
        assert threads.starved == 1

    def test_its_end_shows_it_too(self, threads, starving):
        threads.look(20 * MS, 1, 80 * MS)
        answer(threads, starving, 100 * MS)
        assert (threads.starved, threads.are_held) == (1, True)

    def test_a_slow_response_is_none(self, threads, starving):
        threads.look(20 * MS, 1, 80 * MS)
        answer(threads, starving, 200 * MS)
        assert (threads.starved, threads.are_held) == (0, False)

    def test_beside_others_it_takes_two(self, threads, starving):
        second = sent(threads)
        threads.look(20 * MS, 2, 80 * MS)
        answer(threads, starving, 100 * MS)
        assert (threads.starved, threads.are_held) == (1, False)
        threads.look(100 * MS, 1, 160 * MS)
        answer(threads, second, 170 * MS)
        assert (threads.starved, threads.are_held) == (2, True)


class TestSeveral:
    def test_two_responses_under_way_are_several(self, threads):
        for record in (sent(threads), sent(threads)):
            record.first_byte = 20 * MS
        threads.look(None, 2, 30 * MS)
        assert threads.answers_several

    def test_two_that_have_ended_are_where_they_overlap(self, threads):
        first, second = sent(threads), sent(threads)
        answer(threads, first, 20 * MS, 50 * MS)
        answer(threads, second, 49 * MS, 90 * MS)
        threads.look(None, 0, S)
        assert threads.answers_several

    def test_one_after_the_other_is_not(self, threads):
        first, second = sent(threads), sent(threads)
        answer(threads, first, 20 * MS, 50 * MS)
        answer(threads, second, 50 * MS, 90 * MS)
        threads.look(None, 0, S)
        assert not threads.answers_several

    def test_a_request_without_an_answer_is_not(self, threads):
        first, second = sent(threads), sent(threads)
        first.first_byte = 20 * MS
        second.outcome = Outcome.REFUSED
        threads.look(None, 1, S)
        assert not threads.answers_several


def test_then_the_pool_gives_each_request_its_own_connection():
    server = IntegerServer()
    server.opened("idle", "starves")
    first, starving = server.sent(0), server.sent(0)
    server.answered(first, 20 * MS)
    server.pool.watch(80 * MS)
    assert server.closed == [first.name]
    server.answered(starving, 100 * MS)
    assert server.closed == [first.name, starving.name]
    assert len(server.pool) == 0
    assert not server.pool.reusable
    assert server.pool.watch(S) == 0
