"""Which idle connections a request may use, given that servers close them after a time."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from loadgen.client.idle_connections import FIRST_LIMIT_NS, LONG_REST_NS, REST_NS, IdleConnections

MS, S = 1_000_000, 1_000_000_000


@dataclass(eq=False)
class Peer:
    """A connection whose other end is the test."""

    name: str
    requests: int = 1
    keep_alive: bool = True
    keep_alive_ns: int = 0
    idle_since: int = 0
    closed_by_peer: bool = False
    record: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(sent=0, first_byte=0))

    def is_open(self) -> bool:
        return not self.closed_by_peer


class Server:
    """Connections to one server: opened, used and put back at the times that a test names."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.idle = IdleConnections(lambda connection: self.closed.append(connection.name))

    def opened(self, name: str, at_ns: int) -> Peer:
        peer = Peer(name, requests=0)
        self.idle.add(peer, at_ns)
        return peer

    def ended(self, name: str, at_ns: int, announced_s: int = 0) -> Peer:
        peer = Peer(name, keep_alive_ns=announced_s * S)
        self.idle.add(peer, at_ns)
        return peer

    def proven(self) -> "Server":
        """A connection has lasted through the long rest; it is gone."""
        self.ended("first", -LONG_REST_NS)
        assert self.take(0) == "first"
        return self

    def take(self, at_ns: int) -> str | None:
        taken = self.idle.take(at_ns)
        return None if taken is None else taken.name

    def answered(
        self, sent_ns: int, first_byte_ns: int, idle_since: int = 0, requests: int = 1
    ) -> None:
        record = SimpleNamespace(sent=sent_ns, first_byte=first_byte_ns)
        self.idle.answered(
            Peer("answered", requests=requests, idle_since=idle_since, record=record)
        )


@pytest.fixture
def server():
    return Server()


def test_the_newest_rested_connection_is_taken_first(server):
    server.proven()
    for number in range(3):
        server.ended(str(number), number * MS)
    assert [server.take(20 * MS) for _ in range(4)] == ["2", "1", "0", None]


def test_used_connections_go_before_unused_of_which_the_oldest_is_the_last(server):
    server.proven()
    for number, name in enumerate(("oldest", "older", "newer")):
        server.opened(name, number * MS)
    server.ended("used", 3 * MS)
    assert [server.take(20 * MS) for _ in range(4)] == ["used", "older", "newer", "oldest"]


def test_the_first_rest_is_long_and_the_next_one_short(server):
    server.ended("a", 0)
    assert server.take(LONG_REST_NS - 1) is None
    assert server.take(LONG_REST_NS) == "a"
    server.ended("b", S)
    assert server.take(S + REST_NS - 1) is None
    assert server.take(S + REST_NS) == "b"


def test_a_connection_that_rests_is_not_counted_as_ready(server):
    server.ended("used", 0)
    server.opened("unused", 0)
    assert server.idle.ready(LONG_REST_NS - 1) == 1
    assert server.idle.rest_left_s(0) == pytest.approx(0.25)
    assert server.idle.ready(LONG_REST_NS) == 2
    assert server.idle.rest_left_s(LONG_REST_NS) == 0


def test_connections_expire_after_a_second_while_limit_unknown(server):
    server.proven()
    server.ended("a", 0)
    assert server.take(FIRST_LIMIT_NS) is None
    assert server.take(FIRST_LIMIT_NS - 1) == "a"


def test_unused_ones_are_too_old_after_a_second(server):
    server.opened("a", 0)
    server.idle.retire(FIRST_LIMIT_NS - 1)
    assert len(server.idle) == 1
    server.idle.retire(FIRST_LIMIT_NS)
    server.idle.close_old(8)
    assert server.closed == ["a"]


def test_unused_ones_are_used_for_as_long_as_one_that_was_opened_before_them_lasts(server):
    """One is safe if it was opened more than the margin, 60 ms, after the oldest that is still
    open.
    """
    server.answered(0, 5 * MS)
    first = server.opened("first", 0)
    server.opened("soon after", 60 * MS)
    server.opened("later", 61 * MS)
    server.opened("last", 122 * MS)
    server.idle.begin(S)
    assert server.take(9 * S) == "later"
    assert [each.name for each in server.idle.old] == ["soon after"]
    first.closed_by_peer = True
    assert server.take(9 * S) is None  # nothing shows that the server keeps them any longer


def test_unused_ones_age_as_by_satellite_until_a_response_has_begun(server):
    """Before, 0 ms was assumed, and at the first response all spare connections could be too old
    at once.
    """
    for name, opened_ns in (("first", 0), ("soon after", 650 * MS), ("later", 651 * MS)):
        server.opened(name, opened_ns)
    server.idle.begin(S)
    assert server.idle.ready_for_longer(9 * S) == 1
    server.answered(9 * S, 9_005 * MS)
    assert server.idle.ready_for_longer(9_005 * MS) == 2


def test_those_that_are_left_show_how_long_unused_ones_last_where_the_first_was_closed(server):
    server.answered(0, 5 * MS)
    server.opened("first", 0).closed_by_peer = True
    server.opened("second", 100 * MS)
    server.opened("third", 200 * MS)
    server.idle.retire(9 * S)
    assert server.take(9 * S) == "third"


def test_unused_ones_age_from_when_the_requests_begin(server):
    server.opened("a", 0)
    server.idle.begin(5 * S)
    server.idle.retire(5 * S + FIRST_LIMIT_NS - 1)
    assert server.take(5 * S + FIRST_LIMIT_NS - 1) == "a"


def test_a_closed_idle_connection_teaches_the_limit(server):
    server.proven()
    lost = server.ended("lost", 0)
    server.idle.lost(lost, 5 * S)
    assert (server.idle.limit_ns, server.closed) == (5 * S, ["lost"])
    server.answered(0, 20 * MS)  # a round trip of 20 ms: the margin is 90 ms
    server.ended("a", 0)
    server.ended("b", 0)
    assert server.take(4_910 * MS) is None
    assert server.take(4_909 * MS) == "b"
    server.idle.retire(4_910 * MS)
    server.idle.close_old(8)
    assert server.closed == ["lost", "a"]


def test_a_late_first_byte_costs_half_of_the_limit_at_most(server):
    server.proven()
    server.idle.lost(server.ended("lost", 0), 5 * S)
    server.answered(0, 10 * S)
    server.ended("a", 0)
    assert server.take(2_500 * MS) is None
    assert server.take(2_499 * MS) == "a"


def test_an_announced_limit_is_a_limit(server):
    server.proven()
    server.ended("a", 0, announced_s=75)
    server.ended("b", 0)
    assert server.take(74_950 * MS) is None
    assert server.take(74_949 * MS) == "b"


def test_the_least_limit_counts(server):
    server.proven()
    server.ended("a", 0, announced_s=75)
    server.idle.lost(server.ended("lost", 0), 60 * S)
    assert server.idle.limit_ns == 60 * S


def test_a_single_connection_stays_open_to_learn_the_limit(server):
    server.proven()
    for number in range(3):
        server.ended(str(number), number)
    server.idle.ready(100 * MS)
    server.idle.retire(FIRST_LIMIT_NS + 10)
    server.idle.close_old(8)
    assert server.closed == ["1", "2"]
    server.ended("older", 20 * MS)
    assert server.take(11 * S) is None  # the one that stays shows 11 s, less the margin
    server.ended("younger", 100 * MS)
    assert server.take(11 * S) == "younger"


def test_the_one_that_stays_teaches_the_limit(server):
    server.proven()
    stays = server.ended("stays", 0)
    server.idle.ready(100 * MS)
    server.idle.retire(FIRST_LIMIT_NS)
    server.idle.lost(stays, 3 * S)
    assert (server.idle.limit_ns, list(server.idle)) == (3 * S, [])


@pytest.mark.parametrize(
    "look",
    [
        lambda idle: idle.retire(3_250 * MS),
        lambda idle: idle.ready_for_longer(3_200 * MS),
        lambda idle: idle.take(3_200 * MS),
    ],
    ids=["retire", "replace", "take"],
)
def test_limit_is_the_age_at_the_close_after_any_lookup(server, look):
    server.proven()
    stays = server.ended("stays", 0)
    server.idle.ready(100 * MS)
    server.idle.retire(FIRST_LIMIT_NS)
    server.ended("other", 2 * S)
    server.idle.ready(2_100 * MS)
    stays.closed_by_peer = True
    look(server.idle)
    assert server.idle.limit_ns is None
    server.idle.lost(stays, 3_200 * MS)
    assert server.idle.limit_ns == 3_200 * MS


def test_the_kernel_is_asked_before_one_is_used(server):
    server.proven()
    server.ended("older", 0)
    server.ended("closed", MS).closed_by_peer = True
    server.opened("unused", MS).closed_by_peer = True
    # A close after 0.8 s, sooner than the first limit: none is used again.
    assert server.take(800 * MS) is None
    assert not server.idle.reusable
    assert server.closed == ["closed", "unused"]


def test_a_server_that_closes_soon_is_asked_on_new_connections_alone(server):
    server.idle.lost(server.ended("lost", 0), MS)
    server.ended("used", 2 * MS)
    server.opened("unused", 2 * MS)
    assert not server.idle.reusable
    assert server.closed == ["lost", "used"]
    assert server.take(3 * MS) == "unused"


def test_close_at_an_age_others_outlived_sets_no_limit(server):
    server.answered(sent_ns=300 * MS, first_byte_ns=310 * MS, idle_since=0, requests=2)
    server.idle.lost(server.ended("restarted", 0), 200 * MS)
    assert server.idle.limit_ns is None
    server.idle.lost(server.ended("closed", 0), 2 * S)
    assert server.idle.limit_ns == 2 * S


def test_early_close_does_not_end_the_use_of_other_connections(server):
    server.proven()
    server.answered(sent_ns=20 * MS, first_byte_ns=30 * MS, idle_since=0, requests=2)
    server.idle.lost(server.ended("crashed", 0), 30 * MS)
    assert server.idle.reusable
    server.ended("a", 100 * MS)
    server.ended("b", 100 * MS)
    # Beyond the long rest through which one has lasted, less the margin.
    assert server.take(300 * MS) is None
    assert server.take(299 * MS) == "b"


def test_early_close_is_outweighed_by_lasting_connections(server):
    lost, _ = server.ended("lost", 0), server.ended("lasts", 0)
    server.idle.lost(lost, 100 * MS)
    assert not server.idle.reusable
    assert server.idle.ready(LONG_REST_NS + 50 * MS) == 1
    assert server.idle.reusable
    server.ended("a", S)
    assert server.take(S + LONG_REST_NS) is None  # lasted for 300 ms, less the margin
    assert server.take(S + LONG_REST_NS - 1) == "a"


def test_an_early_close_before_any_was_used_again_takes_the_proof_back(server):
    server.proven()
    lost = server.ended("lost", 0)
    server.idle.lost(lost, 10 * MS)
    assert not server.idle.reusable


def test_connections_near_the_limit_are_not_ready_for_longer(server):
    server.opened("old", 0)
    server.opened("young", 500 * MS)
    assert server.idle.ready_for_longer(900 * MS) == 1
    assert server.idle.ready(900 * MS) == 2


def test_old_ones_are_closed_a_few_at_a_time(server):
    for number in range(10):
        server.opened(str(number), 0)
    server.idle.retire(FIRST_LIMIT_NS)
    assert server.idle.ready(FIRST_LIMIT_NS) == 0
    assert server.idle.close_old(8)
    assert len(server.closed) == 8
    assert not server.idle.close_old(8)


def test_a_lost_request_teaches_the_limit_where_it_was_not_the_first(server):
    record = SimpleNamespace(sent=900 * MS, first_byte=0)
    server.idle.lost_request(Peer("new", requests=1, record=record))
    assert server.idle.limit_ns is None
    server.idle.lost_request(Peer("used", requests=2, record=record))
    assert server.idle.limit_ns == 900 * MS


def test_close_of_an_unused_connection_sets_no_limit(server):
    server.idle.lost(server.opened("unused", 0), MS)
    assert (server.idle.limit_ns, server.idle.reusable) == (None, True)


def test_connection_without_keep_alive_is_closed(server):
    server.idle.add(Peer("announced", keep_alive=False), 0)
    assert server.closed == ["announced"]


def test_all_are_closed_in_the_end(server):
    server.proven()
    server.ended("stays", 0)
    server.idle.ready(100 * MS)
    server.idle.retire(FIRST_LIMIT_NS)
    server.ended("resting", FIRST_LIMIT_NS)
    server.opened("unused", FIRST_LIMIT_NS)
    server.idle.close_all()
    assert sorted(server.closed) == ["resting", "stays", "unused"]
    assert list(server.idle) == []
