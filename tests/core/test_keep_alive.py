"""For how long an idle connection is used: by what the server has shown, on a clock of integers."""

import pytest

from loadgen.core.keep_alive import (
    LEAST_LONG_REST_NS,
    LONG_REST_NS,
    MARGIN_NS,
    REST_NS,
    SAFE_AGE_NS,
)
from tests.helpers.integer_server import MS, IntegerServer, S


@pytest.fixture
def server():
    return IntegerServer()


class TestRest:
    def test_the_first_rest_is_long_and_the_next_one_short(self, server):
        server.used("a", 0)
        assert server.take(LONG_REST_NS - 1) is None
        assert server.take(LONG_REST_NS) == "a"
        server.used("b", S)
        assert server.take(S + REST_NS - 1) is None
        assert server.take(S + REST_NS) == "b"

    def test_a_connection_that_was_used_again_needs_no_rest(self, server):
        server.used("a", 0)
        peer = server.sent(LONG_REST_NS)
        server.answered(peer, S)
        assert server.take(S) == "a"

    def test_a_rest_known_from_before_the_clock_is_short(self, server):
        server.used("ready check", 0)
        assert server.pool.rest_left_ns(0) == LONG_REST_NS
        assert server.pool.rest_left_ns(LONG_REST_NS) == 0
        assert server.pool.ready(LONG_REST_NS) == 1
        server.used("a", S)
        assert server.pool.rest_left_ns(S) == REST_NS

    @pytest.mark.parametrize(
        ("count", "rest_ns"), [(2, LONG_REST_NS // 2), (50, LEAST_LONG_REST_NS)]
    )
    def test_several_that_rest_show_it_sooner(self, server, count, rest_ns):
        server.opened(*map(str, range(count)))
        for peer in [server.sent(0) for _ in range(count)]:
            server.answered(peer, 0)
        assert server.take(rest_ns - 1) is None
        assert server.take(rest_ns) is not None

    def test_a_server_that_closes_behind_a_response_proves_nothing(self, server):
        for number in range(3):
            peer = server.used(str(number), number)
            server.pool.lost(peer, number + MS)
        assert not server.pool.reusable
        assert server.pool.keep_alive.limit_ns is None
        server.used("a", S)
        assert server.take(S + LONG_REST_NS - 1) is None

    def test_an_early_close_takes_back_what_a_rest_has_shown(self, server):
        server.used("a", 0)
        assert server.pool.ready(LONG_REST_NS) == 1
        server.pool.lost(server.used("b", S), S + 20 * MS)
        server.used("c", 2 * S)
        assert server.take(2 * S + LONG_REST_NS - 1) is None

    def test_a_close_at_the_end_of_the_first_rest_is_seen(self, server):
        server.used("a", 0).closed_by_peer = True
        assert server.take(LONG_REST_NS) is None
        assert server.closed == ["a"]

    def test_connection_without_keep_alive_is_closed(self, server):
        server.opened("a")
        peer = server.sent(0)
        peer.say(b"Connection: close")
        server.answered(peer, MS)
        assert server.closed == ["a"]
        assert not server.pool.reusable


class TestAge:
    def test_the_newest_is_taken_first(self, server):
        first, second, third = server.kept("a", "b", "c")
        taken = [server.sent(S) for _ in range(3)]
        for number, peer in enumerate((second, third, first)):
            assert peer in taken
            server.answered(peer, S + number)
        assert [server.take(S + 3) for _ in range(4)] == ["a", "c", "b", None]

    def test_one_is_used_for_a_second_where_nothing_shows_more(self, server):
        (peer,) = server.kept("a")
        since_ns = peer.idle_since
        assert server.take(since_ns + SAFE_AGE_NS) is None
        assert server.closed == []  # it is the witness
        assert server.take(since_ns + SAFE_AGE_NS - 1) == "a"

    def pair(self, server, gap_ns):
        """A witness, and one that was used later by this much."""
        witness, used = server.kept("witness", "used")
        since_ns = witness.idle_since
        while (peer := server.sent(since_ns)) is not used:
            server.answered(peer, since_ns)
        witness, used = peer, peer
        server.answered(peer, since_ns + gap_ns)
        return next(other for other in server.pool if other is not peer), used, since_ns + gap_ns

    def test_an_older_one_is_used_while_the_witness_is_open(self, server):
        _, used, since_ns = self.pair(server, MARGIN_NS + 1)
        assert server.pool.take(since_ns + 100 * S) is used

    def test_the_witness_must_be_older_by_the_margin(self, server):
        _, used, since_ns = self.pair(server, MARGIN_NS)
        assert server.pool.take(since_ns + SAFE_AGE_NS) is None
        assert server.closed == [used.name]

    def test_a_witness_that_is_closed_shows_nothing(self, server):
        witness, used, since_ns = self.pair(server, MARGIN_NS + 1)
        witness.closed_by_peer = True  # and the event loop does not know yet
        assert server.pool.take(since_ns + 100 * S) is None
        assert server.closed == [used.name]

    def test_the_witness_never_goes_before_younger_ones(self, server):
        witness, used, since_ns = self.pair(server, MARGIN_NS + 1)
        for at_ns in range(since_ns + S, since_ns + 20 * S, S):
            assert server.pool.take(at_ns) is used
            server.answered(used, at_ns)
        assert list(server.pool) == [witness, used]

    def test_the_close_of_a_witness_shows_the_limit(self, server):
        witness, used, since_ns = self.pair(server, MARGIN_NS + 1)
        server.pool.lost(witness, witness.idle_since + 5 * S)
        assert server.pool.keep_alive.limit_ns == 5 * S
        assert server.closed == [witness.name]
        assert server.pool.take(since_ns + 5 * S - MARGIN_NS) is None
        assert server.pool.take(since_ns + 5 * S - MARGIN_NS - 1) is used

    def test_an_announced_limit_is_a_limit(self, server):
        server.kept("a")
        peer = server.sent(S)
        peer.say(b"Keep-Alive: timeout=75")
        server.answered(peer, S)
        assert server.take(76 * S - MARGIN_NS) is None
        assert server.take(76 * S - MARGIN_NS - 1) == "a"

    def test_the_least_limit_counts(self, server):
        server.kept("a", "b")
        peer = server.sent(S)
        peer.say(b"Keep-Alive: timeout=75")
        server.answered(peer, S)
        server.pool.lost(peer, 61 * S)
        assert server.pool.keep_alive.limit_ns == 60 * S

    def test_a_limit_that_one_outlives_was_none(self, server):
        """A server that was restarted, or a balancer that lost one, closes at any age."""
        crashed, _ = server.kept("crashed", "lasts")
        server.pool.lost(crashed, crashed.idle_since + 30 * MS)
        assert server.take(crashed.idle_since + 59 * MS) is None
        assert server.take(crashed.idle_since + 60 * MS) == "lasts"

    def test_a_lost_request_shows_the_limit_where_it_was_not_the_first(self, server):
        server.kept("a")
        peer = server.sent(LONG_REST_NS + 900 * MS)
        server.pool.lost_request(peer)
        assert server.pool.keep_alive.limit_ns == 900 * MS
        server.opened("new", at_ns=2 * S)
        server.pool.lost_request(server.sent(2 * S + 500 * MS))
        assert server.pool.keep_alive.limit_ns == 900 * MS

    def test_the_kernel_is_asked_before_one_is_used(self, server):
        one, _ = server.kept("a", "b")
        one.closed_by_peer = True
        assert [server.take(S), server.take(S)] == ["b", None]
        assert server.closed == ["a"]
