"""Which connection the next request uses, and how many are opened: against a server that is a
list of integers.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from loadgen.client.pool import (
    AT_ONCE,
    LEAST_LONG_REST_NS,
    LONG_REST_NS,
    MARGIN_NS,
    OPENING_NS,
    REST_NS,
    SAFE_AGE_NS,
    Pool,
)
from loadgen.core.outcome import Outcome

MS, S = 1_000_000, 1_000_000_000


@dataclass(eq=False)
class Peer:
    """A connection whose other end is the test."""

    name: str
    requests: int = 0
    keep_alive: bool = True
    keep_alive_ns: int = 0
    idle_since: int = 0
    closed_by_peer: bool = False
    record: SimpleNamespace = field(default_factory=lambda: request())

    def is_open(self) -> bool:
        return not self.closed_by_peer


def request(sent_ns: int = 0, first_byte_ns: int = 0) -> SimpleNamespace:
    return SimpleNamespace(sent=sent_ns, first_byte=first_byte_ns, outcome=None)


class Server:
    """Connections to one server: opened, used and put back at the times that a test names."""

    def __init__(self, most_patience_ns: int = 0) -> None:
        self.closed: list[str] = []
        self.pool = Pool(lambda connection: self.closed.append(connection.name), most_patience_ns)

    def opened(self, *names: str, at_ns: int = 0) -> list[Peer]:
        peers = [Peer(name) for name in names]
        for peer in peers:
            self.pool.opened(peer, at_ns)
        return peers

    def sent(self, at_ns: int) -> Peer:
        """A request that finds a connection."""
        peer = self.pool.take(at_ns)
        assert peer is not None
        peer.record = request(at_ns)
        if not peer.requests:
            self.pool.sent_on_new(peer.record)
        peer.requests += 1
        return peer

    def answered(self, peer: Peer, at_ns: int, *, first_byte_ns: int = 0) -> Peer:
        """Its response ends."""
        peer.record.first_byte = first_byte_ns or at_ns
        peer.record.outcome = Outcome.OK
        self.pool.rest(peer, at_ns)
        return peer

    def used(self, name: str, at_ns: int) -> Peer:
        """A connection whose first response ends."""
        self.opened(name, at_ns=at_ns)
        return self.answered(self.sent(at_ns), at_ns)

    def kept(self, *names: str, at_ns: int = 0) -> list[Peer]:
        """Connections of a server that keeps them: each has carried two responses."""
        peers = self.opened(*names, at_ns=at_ns)
        for peer in [self.sent(at_ns) for _ in names]:
            self.answered(peer, at_ns)
        for peer in [self.sent(at_ns + LONG_REST_NS) for _ in names]:
            self.answered(peer, at_ns + LONG_REST_NS)
        return peers

    def take(self, at_ns: int) -> str | None:
        taken = self.pool.take(at_ns)
        return None if taken is None else taken.name

    def wait(self, count: int, at_ns: int = 0) -> None:
        """Requests that find no connection."""
        for _ in range(count):
            assert self.pool.take(at_ns) is None
            self.pool.wait(request(), b"", at_ns)


@pytest.fixture
def server():
    return Server()


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
        assert server.pool.limit_ns is None
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
        peer.keep_alive = False
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
        assert server.pool.limit_ns == 5 * S
        assert server.closed == [witness.name]
        assert server.pool.take(since_ns + 5 * S - MARGIN_NS) is None
        assert server.pool.take(since_ns + 5 * S - MARGIN_NS - 1) is used

    def test_an_announced_limit_is_a_limit(self, server):
        server.kept("a")
        peer = server.sent(S)
        peer.keep_alive_ns = 75 * S
        server.answered(peer, S)
        assert server.take(76 * S - MARGIN_NS) is None
        assert server.take(76 * S - MARGIN_NS - 1) == "a"

    def test_the_least_limit_counts(self, server):
        server.kept("a", "b")
        peer = server.sent(S)
        peer.keep_alive_ns = 75 * S
        server.answered(peer, S)
        server.pool.lost(peer, 61 * S)
        assert server.pool.limit_ns == 60 * S

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
        assert server.pool.limit_ns == 900 * MS
        server.opened("new", at_ns=2 * S)
        server.pool.lost_request(server.sent(3 * S - 1))
        assert server.pool.limit_ns == 900 * MS

    def test_the_kernel_is_asked_before_one_is_used(self, server):
        one, _ = server.kept("a", "b")
        one.closed_by_peer = True
        assert [server.take(S), server.take(S)] == ["b", None]
        assert server.closed == ["a"]


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
        assert (server.pool.limit_ns, server.pool.reusable) == (None, True)
        assert list(server.pool) == []


class TestBudget:
    def test_late_requests_open_a_few_at_a_time(self, server):
        server.wait(100)
        assert server.pool.to_open(0) == AT_ONCE
        assert server.pool.to_open(OPENING_NS - 1) == 0
        assert server.pool.to_open(OPENING_NS) == AT_ONCE
        assert server.pool.opening == 2 * AT_ONCE

    def test_as_many_as_wait(self, server):
        server.wait(2)
        assert server.pool.to_open(0) == 2
        assert server.pool.to_open(OPENING_NS) == 0

    def test_one_more_than_were_in_flight_at_once(self, server):
        """In a closed loop of one: what rests holds a thread of the server."""
        for number in range(6):
            at_ns = number * OPENING_NS
            server.wait(1, at_ns)
            assert server.pool.to_open(at_ns) == 1
            server.pool.opening = 0
            server.opened(str(number), at_ns=at_ns)
            server.pool.waiting.clear()
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


class TestThreads:
    """A server of one thread, which answers within 20 ms."""

    def starving(self, server):
        """One connection is idle, and a request on another one has no byte."""
        server.opened("idle", "starves")
        first = server.sent(0)
        starving = server.sent(0)
        server.answered(first, 20 * MS)
        return starving

    def test_idle_ones_are_closed_for_a_request_without_a_byte(self, server):
        starving = self.starving(server)
        assert server.pool.watch(20 * MS) > 0
        assert server.pool.watch(80 * MS - 1) > 0
        assert server.closed == []
        assert server.pool.watch(80 * MS) > 0  # three times as long as the other one has taken
        assert len(server.closed) == 1
        starving.record.first_byte = 100 * MS
        server.pool.watch(130 * MS)
        assert server.pool.starved == 1
        assert server.pool.holds_threads

    def test_then_each_request_has_its_own_connection(self, server):
        starving = self.starving(server)
        server.pool.watch(80 * MS)
        server.answered(starving, 100 * MS)
        assert server.pool.starved == 1
        assert len(server.closed) == 2
        assert len(server.pool) == 0
        assert not server.pool.reusable
        assert server.pool.watch(S) == 0

    def test_a_slow_response_is_no_proof(self, server):
        starving = self.starving(server)
        server.pool.watch(80 * MS)
        starving.record.first_byte = 200 * MS
        server.pool.watch(200 * MS)
        assert server.pool.starved == 0
        server.answered(starving, 300 * MS, first_byte_ns=200 * MS)
        assert len(server.pool) == 1

    def test_beside_others_it_takes_two(self, server):
        server.opened("streams", "idle", "starves", "starves too")
        server.sent(0).record.first_byte = 5 * MS
        first, starving, second = (server.sent(0) for _ in range(3))
        server.answered(first, 20 * MS)
        server.pool.watch(80 * MS)
        server.answered(starving, 100 * MS)
        assert (server.pool.starved, server.pool.holds_threads) == (1, False)
        server.pool.watch(160 * MS)
        server.answered(second, 170 * MS)
        assert (server.pool.starved, server.pool.holds_threads) == (2, True)

    def test_no_request_waits_as_long_as_its_timeout(self):
        server = Server(most_patience_ns=S)
        server.opened("idle", "starves")
        server.sent(0)
        server.opened("idle too")
        assert server.pool.watch(S - 1) > 0
        assert server.closed == []
        server.pool.watch(S)
        assert len(server.closed) == 2

    def test_nothing_is_watched_once_all_have_answered(self, server):
        starving = self.starving(server)
        server.answered(starving, 30 * MS)
        assert server.pool.watch(30 * MS) == 0


def test_all_are_closed_in_the_end(server):
    server.kept("rested")
    server.used("resting", S)
    server.opened("unused", at_ns=S)
    server.pool.close_all()
    assert sorted(server.closed) == ["rested", "resting", "unused"]
    assert list(server.pool) == []
