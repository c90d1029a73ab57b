"""Which connection the next request uses, and how many are opened: against a server that is a
list of integers.
"""

import pytest

from loadgen.core.keep_alive import LONG_REST_NS, MARGIN_NS, REST_NS
from loadgen.core.pool import AT_ONCE, LATE_OPENING_NS
from tests.helpers.integer_server import MS, IntegerServer, S, request
from tests.helpers.stalled_client import CONNECT_NS, StalledClient


@pytest.fixture
def server():
    return IntegerServer()


class TestUnused:
    def test_the_oldest_goes_first_and_the_very_oldest_last(self, server):
        for number in range(3):
            server.opened(str(number), at_ns=number)
        assert [server.take(MS) for _ in range(4)] == ["1", "2", "0", None]

    def test_used_ones_go_before_unused_ones(self, server):
        server.kept("used")
        server.opened("unused", at_ns=S)
        assert [server.take(S) for _ in range(2)] == ["used", "unused"]

    def test_they_are_used_while_one_opened_before_them_is_open(self, server):
        (witness,) = server.opened("witness")
        server.opened("a", "b", at_ns=MARGIN_NS + 1)
        assert server.take(60 * S) == "a"
        witness.closed_by_peer = True
        assert server.take(60 * S) is None

    def test_their_close_sets_no_limit(self, server):
        (peer,) = server.opened("unused")
        server.pool.lost(peer, MS)
        assert (server.pool.keep_alive.limit_ns, server.pool.reusable) == (None, True)
        assert list(server.pool) == []


class TestBudget:
    def test_a_few_are_begun_in_a_turn_of_the_event_loop(self, server):
        server.wait(100)
        assert server.pool.to_open(0) == AT_ONCE
        assert server.pool.to_open(0) == 0
        server.pool.beginning -= 3
        assert server.pool.to_open(0) == 3
        assert server.pool.opening == AT_ONCE + 3

    def test_a_high_rate_gets_them_as_soon_as_it_wants_them(self):
        """2,000 requests/s of 300 ms need 600 connections in 300 ms."""
        client = StalledClient(2000, 300 * MS, first_byte_ns=25 * MS, stall_ns=0)
        _, opened = client.run()
        assert opened < 700
        assert client.longest_wait_ns <= CONNECT_NS

    def test_as_many_as_wait(self, server):
        server.wait(2)
        assert server.pool.to_open(0) == 2
        server.pool.beginning = 0
        assert server.pool.to_open(0) == 0

    def test_one_more_than_were_in_flight_at_once(self, server):
        """In a closed loop of one: what rests holds a thread of the server."""
        for number in range(6):
            at_ns = number * 10 * MS
            server.wait(1, at_ns)
            assert server.pool.to_open(at_ns) == 1
            server.pool.opening = server.pool.beginning = 0
            server.opened(str(number), at_ns=at_ns)
            server.pool.next_waiting()
            server.answered(server.sent(at_ns), at_ns)
            assert len(server.pool) <= 2
        assert server.closed == ["1", "2", "3", "4"]

    def test_where_connections_are_kept_a_request_waits_for_one_that_rests(self, server):
        server.opened("a", "b", "c")
        first, *others = [server.sent(0) for _ in range(3)]
        server.answered(first, 0)
        server.answered(server.sent(LONG_REST_NS), S)
        for peer in others:
            server.answered(peer, S)
        assert server.sent(S) is first
        server.wait(2, S)
        assert server.pool.to_open(S) == 1  # one more than the three
        assert server.closed == []
        assert server.take(S + REST_NS) == others[-1].name

    def test_those_too_old_for_use_make_room(self, server):
        server.kept("rested")
        server.opened("unused")
        server.wait(1, 100 * S)
        assert server.pool.to_open(100 * S) == 1
        assert server.closed == ["unused"]

    def test_what_was_opened_ahead_counts(self, server):
        server.pool.peak = 20
        server.opened(*map(str, range(20)))
        for _ in range(20):
            server.sent(0)
        server.wait(1)
        assert server.pool.to_open(0) == 1
        assert server.closed == []


class TestAhead:
    """Connections that are opened before a request needs them."""

    def busy(self, server, count=16):
        """So many requests in flight, which are answered at once by a server that keeps
        connections.
        """
        server.kept(*map(str, range(count)))
        peers = [server.sent(S) for _ in range(count)]
        for peer in peers:
            peer.record.first_byte = S
        return peers

    def test_some_are_where_connections_are_kept_and_several_are_answered(self, server):
        server.pool.threads.answers_several = True
        self.busy(server)
        assert server.pool.is_short
        assert server.pool.to_open(S) == 3
        assert server.pool.to_open(2 * S) == 0

    def test_two_requests_that_were_answered_together_show_it(self, server):
        server.opened("a", "b")
        for peer in [server.sent(0), server.sent(0)]:
            server.answered(peer, 20 * MS, first_byte_ns=10 * MS)
        server.pool.watch(20 * MS)
        server.pool.rest_left_ns(S)
        server.sent(S)
        server.sent(S)
        assert server.pool.is_short
        assert server.pool.to_open(S) == 1

    def test_none_are_where_the_server_answers_one_at_a_time(self, server):
        self.busy(server)
        assert not server.pool.is_short
        assert server.pool.to_open(S) == 0

    def test_none_are_where_connections_are_not_kept(self, server):
        server.pool.threads.answers_several = True
        server.opened("a")
        server.sent(0)
        assert not server.pool.is_short
        assert server.pool.to_open(0) == 0

    def test_none_are_while_enough_are_ready(self, server):
        server.pool.threads.answers_several = True
        for peer in self.busy(server)[:3]:
            server.answered(peer, 2 * S)
        assert server.pool.to_open(2 * S) == 0

    def test_none_are_while_requests_wait(self, server):
        """Else each that cannot be opened would be replaced, and no request would fail."""
        server.pool.threads.answers_several = True
        self.busy(server)
        server.wait(2, S)
        assert server.pool.to_open(S) == 2

    def test_none_are_where_idle_ones_hold_threads(self, server):
        server.pool.threads.answers_several = True
        self.busy(server)
        server.pool.threads.keeps_none = True
        assert server.pool.to_open(S) == 0


class TestLate:
    """Requests that the client has not sent in time."""

    def test_they_wait_behind_those_in_time(self, server):
        late, in_time = request(), request(ready_ns=S)
        for record in (late, in_time):
            server.pool.wait(record, b"", S)
        assert [server.pool.next_waiting()[0] for _ in range(2)] == [in_time, late]
        assert server.pool.waiting == 0

    def test_connections_for_them_are_opened_slowly(self, server):
        server.pool.peak = 100
        server.wait(100, S, ready_ns=0)
        assert server.pool.to_open(S) == AT_ONCE
        server.pool.beginning = 0
        assert server.pool.to_open(S + LATE_OPENING_NS - 1) == 0
        assert server.pool.to_open(S + LATE_OPENING_NS) == 1

    def test_those_in_time_have_theirs_opened_beside_them(self, server):
        server.pool.peak = 100
        server.wait(100, S, ready_ns=0)
        server.pool.to_open(S)
        server.pool.opening = server.pool.beginning = 0
        server.wait(3, S)
        assert server.pool.to_open(S) == 3

    def test_they_leave_spare_ones_to_those_in_time(self, server):
        server.kept(*map(str, range(16)))
        server.wait(20, S, ready_ns=0)
        taken = 0
        while server.pool.take_for_waiting(S) is not None:
            server.pool.next_waiting()
            taken += 1
        assert taken == 14
        assert server.take(S) is not None

    def test_a_stall_of_the_client_opens_no_storm(self):
        """500 requests/s of 130 ms, and nothing is done for 2.5 s: 1,250 of them are late."""
        client = StalledClient(500, 130 * MS, first_byte_ns=25 * MS, stall_ns=2500 * MS)
        before, after = client.run()
        assert before <= 80
        assert after - before < 200

    def test_those_that_wait_for_no_other_are_sent_soon(self):
        """20 requests/s of 10 s: none ends while 40 are late."""
        client = StalledClient(20, 10 * S, first_byte_ns=200 * MS, stall_ns=2 * S)
        client.run()
        assert client.longest_wait_ns < 2 * S


def test_all_are_closed_in_the_end(server):
    server.kept("rested")
    server.used("resting", S)
    server.opened("unused", at_ns=S)
    server.pool.close_all()
    assert sorted(server.closed) == ["rested", "resting", "unused"]
    assert list(server.pool) == []
