"""Accounting checks fail when a request, a token or a process is missing."""

import pytest
from msgspec import structs

from loadgen.checks import Check, Verdict, accounting, verdict
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import DAY_NS, Histogram
from loadgen.core.outcome import Outcome
from loadgen.metrics.records.trailer import WorkerReport
from loadgen.metrics.snapshot import LATENCIES
from tests.helpers.check_states import failed_checks
from tests.helpers.run_facts import (
    answered,
    at,
    due_at,
    failed,
    measured,
    run_data,
    shard,
    steady,
    unsent,
)

RUN = [
    steady(0),
    answered(1, tokens=[20, 40], counts={"completion_tokens": 9}),
    answered(2, tokens=[], reasoning=[20]),
    failed(3, Outcome.STATUS),
    failed(4, Outcome.TRUNCATED),
    unsent(5),
]


def of(snapshot, **facts):
    """The checks by name."""
    checks = accounting(run_data(snapshot, **facts))
    return {check.name: check for check in checks}


def test_a_run_of_all_kinds_of_endings_is_green():
    assert failed_checks(of(measured(RUN), client={"engine_runs": True})) == []


def test_a_run_whose_tokens_a_tokenizer_has_counted_is_green():
    record = answered(0, tokens=[20, 40])
    record.tokenized = 7
    assert failed_checks(of(measured([record, answered(1)]))) == []


def test_a_run_without_a_success_is_green_its_books_are_in_order():
    assert failed_checks(of(measured([failed(0), unsent(1)]))) == []


@pytest.mark.parametrize(("unsent_requests", "accounted"), [(1, True), (2, False)])
def test_load_is_another_if_over_a_hundredth_was_not_sent(unsent_requests, accounted):
    sent = [steady(index) for index in range(100, 200 - unsent_requests)]
    failures = [unsent(index, Outcome.CLIENT_ERROR) for index in range(unsent_requests)]
    snapshot = measured([*failures, *sent])
    check = of(snapshot)["load not sent"]
    share = f"{unsent_requests}% of the requests ({unsent_requests} of 100)"
    assert check.value == f"{share} never sent by a fault of the client"
    assert "loadgen doctor" in check.advice
    assert check.ok is accounted


def test_merged_stripes_are_green():
    assert failed_checks(of(measured(RUN[:3]).merge(measured(RUN[3:])))) == []


@pytest.mark.parametrize(
    ("scheduled", "value"), [(7, "1 of 7 requests: 6 outcomes"), (5, "1 of 5 requests: 6 outcomes")]
)
def test_a_request_without_an_outcome_or_with_two_is_red(scheduled, value):
    checks = of(measured(RUN, scheduled=scheduled))
    assert failed_checks(checks) == ["requests not ended once"]
    assert checks["requests not ended once"].value == value
    assert "bug in loadgen" in checks["requests not ended once"].advice


def test_missing_outcomes_of_a_partial_run_are_not_called_a_bug():
    check = of(measured(RUN, scheduled=9, partial="interrupted"))["requests not ended once"]
    assert check.ok is False
    assert "ended early" in check.advice


@pytest.mark.parametrize("name", ["ttft_due", "e2el_sent", "icl", "lag", "pool_wait", "connect"])
def test_a_value_missing_from_a_histogram_is_red_and_says_which(name):
    snapshot = measured(RUN)
    count = snapshot.histograms[name].count
    broken = structs.replace(snapshot, histograms=snapshot.histograms | {name: Histogram()})
    checks = of(broken)
    assert failed_checks(checks) == ["histograms incomplete"]
    assert checks["histograms incomplete"].value == f"1 of 8 histograms: {name} 0 for {count}"


def test_a_value_too_many_is_red_too():
    snapshot = measured(RUN)
    snapshot.histograms["ttft_due"].record(1)
    assert failed_checks(of(snapshot)) == ["histograms incomplete"]


@pytest.mark.parametrize("name", [*LATENCIES, "lag", "pool_wait", "connect"])
def test_a_value_out_of_range_is_red_in_whatever_histogram(name):
    snapshot = measured(RUN)
    before = failed_checks(of(snapshot))
    snapshot.histograms[name].record(DAY_NS + 1)
    assert before == []
    assert "values out of range" in failed_checks(of(snapshot))


def test_a_latency_below_zero_is_out_of_range():
    record = answered(due=10, tokens=[20, 30])
    record.first_token = at(5)
    assert "values out of range" in failed_checks(of(measured([record])))


def test_stamps_out_of_order_are_red():
    record = answered(tokens=[20, 30], closed=40)
    record.closed = at(25)
    checks = of(measured([record]))
    assert failed_checks(checks) == ["stamps out of order"]
    assert checks["stamps out of order"].value == "1 of 1 record"


def test_a_request_that_ended_twice_in_place_of_another_is_red():
    checks = of(measured([steady(0), steady(0)]))
    assert failed_checks(checks) == ["requests not ended once"]
    assert (
        checks["requests not ended once"].value == "1 of 2 requests: 2 outcomes, 1 of them repeated"
    )


def test_gaps_between_tokens_are_counted_where_the_events_tell_all_tokens():
    whole = answered(tokens=[20, 30, 40], counts={"completion_tokens": 3})
    hidden = answered(tokens=[20, 30, 40], counts={"completion_tokens": 9})
    for record, expected in ((whole, ["histograms incomplete"]), (hidden, [])):
        snapshot = measured([record])
        assert failed_checks(of(snapshot)) == []
        assert (
            failed_checks(
                of(structs.replace(snapshot, histograms=snapshot.histograms | {"itl": Histogram()}))
            )
            == expected
        )


@pytest.mark.parametrize("name", ["usage_requests", "event_requests"])
def test_an_answer_whose_tokens_were_counted_in_no_way_or_in_two_is_red(name):
    snapshot = measured(RUN)
    counters = snapshot.counters | {name: snapshot.counters[name] + 1}
    assert failed_checks(of(structs.replace(snapshot, counters=counters))) == ["answers miscounted"]


def test_an_answer_without_a_finish_reason_in_the_books_is_red():
    checks = of(structs.replace(measured(RUN), finishes={"stop": 2}))
    assert failed_checks(checks) == ["answers miscounted"]
    assert (
        checks["answers miscounted"].value == "1 of 3 answers: 2 finish reasons and 3 token counts"
    )


def test_another_schedule_than_the_reports_is_red():
    assert failed_checks(of(measured(RUN), shards=[WorkerReport(schedule_sha256="another")])) == [
        "another schedule"
    ]


def test_an_engine_that_is_another_process_at_the_end_is_red():
    assert failed_checks(of(measured(RUN), client={"engine_runs": False})) == ["engine lost"]


def test_an_engine_that_was_not_launched_here_is_not_judged():
    assert of(measured(RUN), client={"engine_runs": None})["engine lost"].ok is None


def test_engine_state_is_unknown_if_the_run_did_not_end():
    started = {"engine": {"commands": ["sim"]}, "client": {"engine_runs": None}}
    check = of(measured(RUN), **started)["engine lost"]
    assert (check.ok, check.value) == (None, "the measuring process left no report")
    assert (
        of(measured(RUN), client={"engine_runs": None})["engine lost"].value == "not launched here"
    )


def test_worker_without_a_report_is_not_called_present():
    schedule = due_at(*[0] * len(RUN))
    shards = [shard(schedule), WorkerReport(number=1, schedule_sha256=schedule.sha256)]
    check = of(measured(RUN), schedule=schedule, shards=shards)["workers missing"]
    assert (check.ok, check.limit) == (None, "the measuring process left no report")


def test_every_check_has_one_line_value_limit_and_advice():
    for check in of(measured(RUN)).values():
        for text in (check.value, check.limit, check.advice):
            assert text
            assert "\n" not in text


# -- the verdict


def check(group, ok, counts=True):
    return Check("name", ok, "1", "2", "do this", counts, group=group)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([], Verdict.VALID),
        ([check("A", True), check("B", True)], Verdict.VALID),
        ([check("A", None), check("B", None)], Verdict.VALID),
        ([check("A", True), check("B", False)], Verdict.SUSPECT),
        ([check("A", False), check("B", True)], Verdict.INVALID),
        ([check("B", False), check("A", False)], Verdict.INVALID),
        ([check("A", True), check("D", False, counts=False)], Verdict.VALID),
        ([check("A", True), check("D", False, counts=True)], Verdict.SUSPECT),
    ],
)
def test_accounting_makes_a_run_invalid_any_other_check_that_counts_suspect(checks, expected):
    assert verdict(checks) is expected


def test_a_check_is_json_as_it_stands():
    assert check("B", None).to_dict() == {
        "group": "B",
        "name": "name",
        "ok": None,
        "value": "1",
        "limit": "2",
        "measured": None,
        "comparison": "<=",
        "allowed": None,
        "unit": "",
        "advice": "do this",
        "counts": True,
        "explains": False,
    }


def test_users_may_leave_who_were_drawn():
    settings = RunSettings(disconnect="100%@tokens=2")
    records = [failed(0, Outcome.DISCONNECTED), answered(1)]
    assert failed_checks(of(measured(records), settings=settings)) == []


@pytest.mark.parametrize("disconnect", [None, "0.000001%@tokens=2"])
def test_a_user_who_left_without_being_drawn_is_a_bug(disconnect):
    checks = of(
        measured([failed(0, Outcome.DISCONNECTED)]), settings=RunSettings(disconnect=disconnect)
    )
    assert checks["users left who were not drawn"].ok is False
    assert checks["users left who were not drawn"].value == "1 of 1 user who left"


def test_a_server_that_hung_fails():
    silence = {"since_s": 12.0, "for_s": 61.0}
    facts = {"silences": [silence, silence | {"hung": True}]}
    check = of(measured(RUN), facts=facts)["server hung"]
    assert (check.ok, check.value) == (False, "1 of 2 silences of all streams, up to 61.0 s")


def test_a_silence_of_a_server_that_went_on_passes():
    facts = {"silences": [{"since_s": 12.0, "for_s": 31.0}]}
    assert of(measured(RUN), facts=facts)["server hung"].ok
    assert "server hung" not in of(measured(RUN))
