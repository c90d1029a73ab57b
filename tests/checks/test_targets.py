"""Checks of several targets: did each get its share, and are they alike?"""

import random
from array import array

import pytest

from loadgen.checks import accounting, sufficiency
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics import parted_recorder
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.helpers.run_facts import START, due_at, failed, run_data, steady

URLS = ("http://a:1", "http://b:1")
IN_TURN = RunSettings(base_url=URLS, balance="round-robin")
LEAST = RunSettings(base_url=URLS, balance="least-outstanding")


def judged(records, name, settings=IN_TURN, follows=()):
    """The check of that name of a run that had these (target, record), each due as its record
    says, or following.
    """
    recorder = parted_recorder.recorder_for(settings, START, len(records))
    due = []
    for target, record in records:
        record.target = target
        recorder.add(record)
        due.append((record.due - START) / 1e6)
    schedule = due_at(*due)
    due_ns = array(
        "q", [FOLLOWS if index in follows else at for index, at in enumerate(schedule.due)]
    )
    seen = run_data(recorder.snapshot(), settings, Schedule(due_ns, schedule.duration_ns))
    found = [check for check in [*accounting(seen), *sufficiency(seen)] if check.name == name]
    return found[0] if found else None


def in_turn(count, record):
    return [(index % 2, record(index)) for index in range(count)]


def test_target_checks_are_absent_for_a_single_target():
    records = [(0, steady(index, due=index)) for index in range(20)]
    settings = RunSettings(base_url=URLS[0])
    for name in (
        "targets out of turn",
        "balance not kept",
        "targets fail unevenly",
        "slower targets",
    ):
        assert judged(records, name, settings) is None


# -- shares


def test_requests_in_turn_are_as_they_should_be():
    check = judged(in_turn(20, lambda index: steady(index, due=index)), "targets out of turn")
    assert check.ok
    assert check.value == "0 of 10 + 10 requests out of turn"


def test_request_at_the_wrong_target_is_found():
    records = in_turn(20, lambda index: steady(index, due=index))
    records[7] = (0, records[7][1])
    check = judged(records, "targets out of turn")
    assert check.ok is False
    assert check.value == "1 of 11 + 9 requests out of turn"


def test_equal_shares_out_of_turn_are_found_too():
    records = [
        (1 - target, record)
        for target, record in in_turn(20, lambda index: steady(index, due=index))
    ]
    assert judged(records, "targets out of turn").ok is False


def held(index, target, sent, closed):
    """A request that is in flight so long, in ms."""
    return target, steady(index, due=sent, ttft=1, gap=0, n=2, closed=closed)


def test_the_fewest_in_flight_first_is_judged_at_the_moment_of_sending():
    good = [held(0, 0, 0, 100), held(1, 1, 1, 10), held(2, 1, 20, 30), held(3, 1, 40, 50)]
    assert judged(good, "balance not kept", LEAST).ok
    wrong = [held(0, 0, 0, 100), held(1, 0, 1, 90), held(2, 0, 2, 80), held(3, 1, 40, 50)]
    check = judged(wrong, "balance not kept", LEAST)
    assert check.ok is False
    assert check.value.startswith("25% of the requests (1 of 4) were sent where ")
    assert judged(wrong, "targets out of turn", LEAST) is None


def test_further_turn_stays_at_the_target_of_its_session():
    records = [
        held(0, 0, 0, 10),
        held(1, 1, 1, 5),
        held(2, 1, 6, 9),
        held(3, 0, 7, 90),
        held(4, 0, 8, 90),
    ]
    records += [held(5, 0, 20, 30)]
    assert judged(records, "balance not kept", LEAST, follows={5}).ok
    assert judged(records, "balance not kept", LEAST).ok is False


# -- failures


def failing(count, *failed_by):
    """A run in turn in which so many of each target's requests fail."""
    left = list(failed_by)

    def made(index):
        target = index % 2
        left[target] -= 1
        return (
            failed(index, Outcome.STATUS, due=index)
            if left[target] >= 0
            else steady(index, due=index)
        )

    return in_turn(count, made)


@pytest.mark.parametrize("failures", [(0, 0), (1, 0), (3, 2), (0, 5), (100, 100), (50, 62)])
def test_failures_that_chance_explains_are_none_of_a_target(failures):
    assert judged(failing(200, *failures), "targets fail unevenly").ok


@pytest.mark.parametrize(
    ("failures", "named", "chance"),
    [
        ((0, 100), "http://b:1", "0%"),
        ((12, 0), "http://a:1", "0.0172%"),
        ((40, 75), "http://b:1", "0%"),
    ],
)
def test_a_target_that_fails_more_than_chance_allows_is_named(failures, named, chance):
    check = judged(failing(200, *failures), "targets fail unevenly")
    assert check.ok is False
    seen = f"{named} failed {max(failures)} of 100, {sum(failures)} of all 200 failed"
    assert check.value == f"{chance} likely by chance: {seen}"
    assert check.limit == "at least 0.5% (one of 2 alike is below it in 1% of runs)"


def test_target_checks_count_only_if_a_decision_rests_on_run():
    assert not judged(failing(200, 0, 99), "targets fail unevenly").counts
    assert judged(failing(200, 0, 99), "targets fail unevenly", IN_TURN.replace(strict=True)).counts


def test_target_that_serves_no_request_counts():
    assert judged(failing(200, 0, 100), "targets fail unevenly").counts
    assert not judged(failing(200, 100, 100), "targets fail unevenly").counts, (
        "that is what all of them do"
    )


# -- speed


def paced(count, *factors, seed=0, n=3):
    """A run in turn whose answers take a lognormal time, so many times as long at each target."""
    draw = random.Random(seed)

    def made(index):
        return steady(
            index, due=10 * index, ttft=factors[index % 2] * draw.lognormvariate(3, 0.5), gap=1, n=n
        )

    return in_turn(count, made)


def queued(count, load, seed):
    """A run in turn against two queues that are alike, one server each: M/M/1."""
    draw = random.Random(seed)
    due, free, records = 0.0, [0.0, 0.0], []
    for index in range(count):
        due += draw.expovariate(1)
        target = index % 2
        free[target] = max(due, free[target]) + draw.expovariate(1 / (2 * load))
        records.append((target, steady(index, due=due, ttft=free[target] - due, n=1)))
    return records


def test_targets_of_one_speed_are_alike():
    assert judged(paced(400, 1, 1), "slower targets").ok


@pytest.mark.parametrize(("factors", "named"), [((1, 1.6), "http://b:1"), ((2, 1), "http://a:1")])
def test_a_target_that_is_slower_all_along_is_named_with_how_much(factors, named):
    check = judged(paced(1000, *factors), "slower targets")
    assert check.ok is False
    assert check.value.startswith(f"{named} took longer than the others in 10 of 10 stretches, ")


def test_a_difference_that_the_values_do_not_bear_out_is_none():
    assert judged(paced(200, 1, 1.1), "slower targets").ok


def test_a_difference_that_is_sure_but_small_is_none():
    records = in_turn(
        400, lambda index: steady(index, due=10 * index, ttft=20 + 0.4 * (index % 2), gap=10, n=3)
    )
    check = judged(records, "slower targets")
    assert check.ok
    assert check.value.startswith(
        "http://b:1 took longer than the others in 10 of 10 stretches, 1.01 times"
    )


@pytest.mark.integration
def test_queues_that_are_alike_are_not_told_apart_by_how_they_remember():
    assert [judged(queued(400, 0.8, seed), "slower targets").ok for seed in range(12)] == [
        True
    ] * 12


def test_a_target_that_fails_at_once_makes_no_other_slow():
    check = judged(failing(200, 0, 100), "slower targets")
    assert (check.ok, check.limit) == (None, "the targets do not fail alike")


@pytest.mark.parametrize("count", [0, 8, 98])
def test_few_answers_leave_target_speed_unjudged(count):
    records = in_turn(count, lambda index: steady(index, due=index)) or [(0, steady(0))]
    assert judged(records, "slower targets").ok is None
