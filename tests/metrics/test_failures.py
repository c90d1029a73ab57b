"""A server is gone only if every worker's connection attempts were refused for five seconds."""

import pytest

from loadgen.metrics.failures import Reachability, ReachabilityTracker
from loadgen.metrics.progress import Progress
from tests.helpers.run_facts import START, S


def refused(first_s: float, last_s: float, answered_s: float = 0.0) -> Reachability:
    return Reachability(answered_s, first_s, last_s, "refused")


@pytest.mark.parametrize(("last_s", "gone"), [(8.0, False), (8.9, True), (20.0, True)])
def test_five_seconds_of_refusals_are_a_server_gone(last_s: float, gone: bool) -> None:
    assert refused(3.9, last_s).gone is gone


def test_worker_that_never_connected_does_not_affect_others() -> None:
    assert not Reachability(answered_s=3.0).gone
    assert (refused(3.9, 9) + Reachability()).gone
    assert (Reachability(3.0) + refused(3.9, 9)) == refused(3.9, 9, answered_s=3.0)


def test_a_sign_of_life_anywhere_ends_the_refusals() -> None:
    assert refused(3.9, 9) + Reachability(answered_s=9.5) == Reachability(9.5)
    assert (refused(3.9, 9) + Reachability(answered_s=8)).refused_s == 8


def test_earliest_refusal_of_several_workers_counts() -> None:
    both = refused(4.5, 9) + refused(3.9, 8.5)
    assert (both.refused_s, both.last_s) == (3.9, 9)


def test_a_listener_counts_from_the_start_of_the_clock() -> None:
    tracker = ReachabilityTracker()
    tracker.refused(START - S, "before the clock")
    assert tracker.reachability(START).refused_s is None
    tracker.refused(START + 2 * S, "later")
    assert tracker.reachability(START) == Reachability(0, 0, 2, "later")
    tracker.answered(START + S)  # stamped before the last refusal, and so after the first
    assert tracker.reachability(START) == Reachability(1, 1, 2, "later")
    tracker.answered(START + 3 * S)
    assert tracker.reachability(START) == Reachability(3)


def test_a_run_has_no_answer_where_every_target_is_gone() -> None:
    alive, gone, later = Reachability(answered_s=9), refused(1, 9), refused(3.9, 9)
    assert Progress("running").no_answer is None
    assert Progress("running", contacts=(gone, alive)).no_answer is None
    assert Progress("running", contacts=(gone, later)).no_answer == later


def test_the_contacts_of_workers_add_up_by_target() -> None:
    one = Progress("running", contacts=(refused(1, 9), Reachability(2)))
    other = Progress("running", contacts=(Reachability(), refused(3, 9)))
    assert Progress.together([one, other]).contacts == (refused(1, 9), refused(3, 9, answered_s=2))
    assert Progress.together([one, Progress("ready")]).contacts == one.contacts
