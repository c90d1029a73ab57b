"""Sending checks fail where the client did not send what the schedule asked at its time."""

import math
from array import array

import numpy as np
import pytest

from loadgen.checks import sending
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.recorder import Recorder
from loadgen.workload.arrivals import Flat, Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.helpers.check_states import failed_checks
from tests.helpers.run_facts import MS, START, answered, due_at, measured, run_data, steady, unsent

TTFT_MS = 40.0


def sent_at(schedule, sent_ns, *, ttft_ms=TTFT_MS):
    """The snapshot of a run of `schedule` whose requests were sent at these times, ns from the
    start.
    """
    recorder = Recorder(START, schedule.count)
    for index, (due, sent) in enumerate(zip(schedule.due_ns.tolist(), sent_ns, strict=True)):
        sent_ms = int(sent) / MS
        recorder.add(
            steady(index, due=due / MS, sent=sent_ms, ttft=sent_ms - due / MS + ttft_ms, n=1)
        )
    return recorder.snapshot()


OPEN, CLOSED = RunSettings(request_rate=100.0), RunSettings(max_concurrency=4)


def of(snapshot, schedule, settings=OPEN, *, disturbance=""):
    """The checks by name."""
    checks = sending(run_data(snapshot, settings, schedule, client={"disturbance": disturbance}))
    return {check.name: check for check in checks}


# -- schedules that were met


def test_a_schedule_met_to_the_nanosecond_is_green():
    for schedule in (Schedule.constant(1000, 2000), Schedule.poisson(1000, 2000, seed=1)):
        checks = of(sent_at(schedule, schedule.due_ns), schedule)
        assert failed_checks(checks) == []
        assert all(check.ok for check in checks.values())


@pytest.mark.integration
@pytest.mark.parametrize("rate", [100, 1000, 5000])
@pytest.mark.parametrize("burstiness", [1, math.inf])
def test_jitter_of_40_us_passes_also_with_equal_gaps(rate, burstiness):
    schedule = Schedule.draw(Flat(rate), count=2000, burstiness=burstiness, seed=1)
    sent = schedule.due_ns + np.random.default_rng(3).integers(0, 40_000, schedule.count)
    assert failed_checks(of(sent_at(schedule, sent), schedule)) == []


# -- gaps


def test_sends_on_a_grid_of_a_millisecond_at_1000_a_second_are_red():
    schedule = Schedule.poisson(1000, 2000, seed=1)
    on_the_grid = -(-schedule.due_ns // MS) * MS
    checks = of(sent_at(schedule, on_the_grid), schedule)
    assert failed_checks(checks) == ["gaps off schedule"]
    assert checks["gaps off schedule"].value.startswith("0.")


def test_sends_bunched_by_a_stalling_loop_are_red():
    schedule = Schedule.constant(1000, 2000)
    checks = of(sent_at(schedule, -(-schedule.due_ns // (10 * MS)) * 10 * MS), schedule)
    assert "gaps off schedule" in failed_checks(checks)
    assert "requests sent late" in failed_checks(checks)


def test_a_constant_schedule_sent_at_random_is_red():
    schedule, other = Schedule.constant(1000, 2000), Schedule.poisson(1000, 2000, seed=1)
    assert "gaps off schedule" in failed_checks(of(sent_at(other, other.due_ns), schedule))


# -- the rate


@pytest.mark.parametrize(
    ("stretch", "expected"), [(1.0, True), (1.004, True), (1.01, False), (0.99, False)]
)
def test_a_rate_off_by_a_percent_is_red(stretch, expected):
    schedule = Schedule.constant(100, 1000)
    check = of(sent_at(schedule, schedule.due_ns * stretch), schedule)["rate off schedule"]
    assert check.ok is expected
    assert check.limit == "0.5%"


def test_the_rate_that_was_achieved_is_said():
    schedule = Schedule.constant(100, 1001)
    check = of(sent_at(schedule, schedule.due_ns * 1.25), schedule)["rate off schedule"]
    assert check.value == "20% off the schedule's 100 req/s: 80 req/s"


def test_requests_that_were_never_sent_are_left_out_of_the_rate():
    schedule = Schedule.constant(100, 400)
    records = [steady(i, due=i * 10, n=1) if i % 4 else unsent(i, due=i * 10) for i in range(400)]
    assert of(measured(records), schedule)["rate off schedule"].ok is True


def test_records_in_order_of_end_are_judged_by_schedule():
    schedule = Schedule.constant(100, 200)
    assert (
        failed_checks(
            of(measured(steady(i, due=i * 10, n=1) for i in reversed(range(200))), schedule)
        )
        == []
    )


# -- requests sent late


@pytest.mark.parametrize(("rate", "limit"), [(1000, "5 ms"), (20, "5 ms"), (5, "20 ms")])
def test_send_is_late_beyond_5_ms_and_a_tenth_of_the_mean_gap(rate, limit):
    schedule = Schedule.constant(rate, 100)
    check = of(sent_at(schedule, schedule.due_ns), schedule)["requests sent late"]
    assert check.value.startswith(f"0% of the requests sent more than {limit} late (")
    assert check.limit == "1%"


def test_slow_answers_excuse_no_late_send():
    schedule = Schedule.constant(25, 200)
    sent = schedule.due_ns + np.where(np.arange(200) % 2, 40 * MS, 0)
    check = of(sent_at(schedule, sent, ttft_ms=1500), schedule)["requests sent late"]
    assert check.ok is False


@pytest.mark.parametrize(("late", "expected"), [(2, True), (3, False)])
def test_more_than_a_hundredth_of_late_sends_is_red(late, expected):
    schedule = Schedule.constant(100, 200)
    sent = schedule.due_ns + np.where(np.arange(200) < late, 6 * MS, 0)
    check = of(sent_at(schedule, sent), schedule)["requests sent late"]
    assert check.ok is expected
    assert check.value.startswith(
        f"{late / 2:g}% of the requests sent more than 5 ms late (lag p99 "
    )


def test_wait_for_a_connection_is_a_late_send_and_names_the_flag():
    records = [steady(i, due=i * 10, connect=6 if i < 3 else 0, ttft=45, n=20) for i in range(200)]
    check = of(measured(records), Schedule.constant(100, 200))["requests sent late"]
    assert check.ok is False
    assert check.value == "1.5% of the requests sent more than 5 ms late: 3 waited for a connection"
    assert check.advice.endswith("--warm-connections 24")  # the most in flight at once


def test_the_counts_of_late_sends_add_up_to_their_share():
    for_connection = [steady(i, due=i * 10, connect=6, ttft=45, n=20) for i in range(3)]
    for_client = [steady(i, due=i * 10, sent=i * 10 + 6, ttft=45, n=20) for i in range(3, 5)]
    others = [steady(i, due=i * 10, ttft=45, n=20) for i in range(5, 200)]
    check = of(measured([*for_connection, *for_client, *others]), Schedule.constant(100, 200))[
        "requests sent late"
    ]
    counts = "3 waited for a connection, 2 for the client"
    assert check.value == f"2.5% of the requests sent more than 5 ms late: {counts}"


@pytest.mark.parametrize(
    ("opened", "advised"), [(0, 24), (23, 24), (24, 48), (47, 48), (48, 96), (96, 192)]
)
def test_more_connections_are_advised_than_were_opened(opened, advised):
    snapshot = measured(
        steady(i, due=i * 10, connect=6 if i < 3 else 0, ttft=45, n=20) for i in range(200)
    )
    snapshot.counters["warm_connections"] = opened
    check = of(snapshot, Schedule.constant(100, 200))["requests sent late"]
    assert check.advice.endswith(f"--warm-connections {advised}")


def test_connection_per_request_is_no_late_send():
    records = [steady(i, due=i * 10, connect=6, ttft=45, n=2) for i in range(200)]
    run = run_data(
        measured(records), OPEN, Schedule.constant(100, 200), client={"connections_reused": False}
    )
    assert next(check for check in sending(run) if check.name == "requests sent late").ok


def test_wait_for_a_slot_is_no_late_send():
    records = [steady(i, due=i * 10, ready=i * 10 + 500, ttft=600, n=1) for i in range(200)]
    assert of(measured(records), Schedule.constant(100, 200))["requests sent late"].ok is True


def test_late_sends_do_not_apply_without_sent_requests():
    check = of(measured([unsent()]), due_at(0))["requests sent late"]
    assert (check.ok, check.value) == (None, "n/a")


# -- early, unsent


def test_a_request_sent_early_is_red():
    schedule = due_at(10)
    assert failed_checks(of(measured([steady(due=10, sent=9.9, n=1)]), schedule)) == ["early sends"]
    assert failed_checks(of(measured([steady(due=10, sent=9.96, n=1)]), schedule)) == []


def test_a_request_that_we_failed_to_send_is_red():
    checks = of(measured([steady(0), unsent(1, Outcome.CLIENT_ERROR)]), due_at(0, 0))
    assert failed_checks(checks) == ["requests unsent"]
    assert checks["requests unsent"].value == "1 of 2 requests failed by the client"


def test_cancelled_requests_only_fail_the_check_on_early_end():
    snapshot = measured([steady(0), unsent(1, Outcome.CANCELLED)], partial="interrupted")
    checks = of(snapshot, due_at(0, 0))
    assert failed_checks(checks) == ["run cut short"]
    assert (
        checks["run cut short"].value
        == "requests: 1 cut off, as the run was ended early: interrupted"
    )
    assert checks["run cut short"].advice == "the numbers describe only the time before"


def test_run_that_a_search_ended_is_not_cut_short():
    snapshot = measured(
        [steady(0), unsent(1, Outcome.CANCELLED)],
        partial="ended by the search: 17 of 1000 are beyond",
    )
    check = of(snapshot, due_at(0, 0))["run cut short"]
    assert (check.ok, check.limit) == (None, "ended by the search")


def test_run_that_ended_as_the_server_did_advises_to_read_its_log():
    snapshot = measured(
        [steady(0), unsent(1, Outcome.CANCELLED)], partial="the server stopped answering at 2.3 s"
    )
    assert "read its log" in of(snapshot, due_at(0, 0))["run cut short"].advice


@pytest.mark.parametrize(
    ("ended_ms", "partial", "ok"), [(900, True, False), (1100, True, True), (900, False, True)]
)
def test_closed_loop_that_ends_before_its_duration_is_cut_short(ended_ms, partial, ok):
    """As where the server was killed: what was in flight has failed, and nothing more was due."""
    settings = RunSettings(max_concurrency=1, duration=1.0)
    why = "the server stopped answering at 0.4 s" if partial else None
    snapshot = measured([steady(0), steady(1, due=ended_ms - 20, ttft=20, n=1)], partial=why)
    check = of(snapshot, Schedule.burst(1000), settings)["run cut short"]
    assert check.ok is ok
    assert check.value == ("requests: 0 cut off" if ok else f"the run was ended early: {why}")


def test_a_turn_after_one_that_failed_was_not_cut_short():
    never_due = unsent(1, Outcome.CANCELLED)
    never_due.ready = 0
    assert of(measured([steady(0), never_due]), due_at(0, 0))["run cut short"].ok


def test_a_request_that_the_server_refused_is_not_our_fault():
    assert of(measured([steady(0), unsent(1, Outcome.REFUSED)]), due_at(0, 0))["requests unsent"].ok


# -- where the schedule is not what decides


def test_closed_loop_does_not_judge_rate_and_gaps():
    schedule = Schedule.burst(200)
    checks = of(sent_at(schedule, np.arange(200) * 20 * MS), schedule, CLOSED)
    for name in ("rate off schedule", "gaps off schedule"):
        assert (checks[name].ok, checks[name].value) == (None, "n/a")
        assert checks[name].limit == "the cap held requests back"


def test_a_cap_is_an_excuse_only_where_it_held_something_back():
    schedule = due_at(*(i * 10 for i in range(200)))
    late = [answered(i, due=i * 10, sent=i * 11, tokens=[i * 11 + 20]) for i in range(200)]
    held = [
        answered(i, due=i * 10, ready=i * 11, sent=i * 11, tokens=[i * 11 + 20]) for i in range(200)
    ]
    assert of(measured(late), schedule)["rate off schedule"].ok is False
    capped = OPEN.replace(max_concurrency=4)
    assert of(measured(late), schedule, capped)["rate off schedule"].ok is False
    assert of(measured(held), schedule, capped)["rate off schedule"].ok is None


def test_a_burst_has_no_rate_and_says_so():
    schedule = Schedule.burst(200)
    checks = of(sent_at(schedule, np.arange(200) * 1000), schedule)
    for name in ("rate off schedule", "gaps off schedule"):
        assert checks[name].ok is None
        assert checks[name].limit == "all requests are due at once"


def test_fewer_than_100_requests_are_too_few_for_rate_and_gaps():
    for count, expected in ((99, None), (100, True)):
        schedule = Schedule.constant(100, count)
        checks = of(sent_at(schedule, schedule.due_ns), schedule)
        assert checks["rate off schedule"].ok is checks["gaps off schedule"].ok is expected
    assert checks["gaps off schedule"].value == "0 between the distributions of gaps"


# -- advice


def test_advice_names_what_else_was_busy():
    schedule = Schedule.constant(100, 200)
    late = sent_at(schedule, schedule.due_ns + 50 * MS)
    checks = of(late, schedule, disturbance="other processes used 1.5 of 2 cores")
    assert checks["requests sent late"].advice.endswith("(other processes used 1.5 of 2 cores)")
    assert "(" not in of(late, schedule)["requests sent late"].advice


def test_a_server_on_this_machine_is_named_among_what_was_busy():
    schedule = Schedule.constant(100, 200)
    late = sent_at(schedule, schedule.due_ns + 50 * MS)
    for url, said in (("http://localhost:8000", True), ("http://gpu-7:8000", False)):
        checks = of(
            late,
            schedule,
            OPEN.replace(base_url=url),
            disturbance="other processes used 1.5 of 2 cores",
        )
        assert ("the server" in checks["requests sent late"].advice) == said


@pytest.mark.parametrize(
    ("settings", "schedule", "helps", "does_not"),
    [
        (RunSettings(), Schedule.burst(200), "--max-concurrency, or give a rate", "lower the rate"),
        (
            RunSettings(max_concurrency=64),
            Schedule.burst(200),
            "lower --max-concurrency",
            "the rate",
        ),
        (
            RunSettings(max_concurrency=2),
            Schedule.burst(200),
            "timers are late",
            "--max-concurrency",
        ),
        (RunSettings(request_rate=10.0), Schedule.constant(10, 200), "timers are late", "rate"),
        (
            RunSettings(request_rate=100.0),
            Schedule.constant(100, 200),
            "lower the rate",
            "--max-concurrency",
        ),
    ],
)
def test_advice_against_lag_is_of_what_the_run_can_change(settings, schedule, helps, does_not):
    advice = of(sent_at(schedule, schedule.due_ns + 50 * MS), schedule, settings)[
        "requests sent late"
    ].advice
    assert helps in advice
    assert does_not not in advice


def test_every_check_has_one_line_value_limit_and_advice():
    for schedule in (Schedule.constant(100, 200), Schedule.burst(1)):
        for check in of(sent_at(schedule, schedule.due_ns), schedule).values():
            for text in (check.value, check.limit, check.advice):
                assert text
                assert "\n" not in text


def test_an_hour_of_requests_is_judged_without_losing_its_digits():
    schedule = due_at(*(i * 36_000 for i in range(100)), duration=3_600_000)
    checks = of(measured(steady(i, due=i * 36_000, n=1) for i in range(100)), schedule)
    assert checks["rate off schedule"].value == (
        "0% off the schedule's 0.02778 req/s: 0.02778 req/s"
    )
    assert failed_checks(checks) == []


# -- the token of a session


@pytest.mark.parametrize(("missing", "ok"), [(0, True), (3, False)])
def test_later_turns_without_the_token_of_their_session_are_named(missing, ok):
    schedule = Schedule(array("q", [0, FOLLOWS, FOLLOWS, FOLLOWS]), 10**9)
    recorder = Recorder(START, 4)
    recorder.counters["turns_without_token"] = missing
    check = of(recorder.snapshot(), schedule, OPEN.replace(session_token="x-token"))[
        "session token missing"
    ]
    assert check.ok is ok
    assert check.value == f"{missing} of 3 later turns of sessions had no x-token to send back"


def test_runs_without_a_token_or_without_sessions_have_no_such_check():
    schedule, alone = Schedule(array("q", [0, FOLLOWS]), 10**9), Schedule(array("q", [0, 5]), 10**9)
    snapshot = Recorder(START, 2).snapshot()
    assert "session token missing" not in of(snapshot, schedule)
    assert "session token missing" not in of(snapshot, alone, OPEN.replace(session_token="x-token"))
