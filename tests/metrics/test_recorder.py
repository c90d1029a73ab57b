"""What the recorder counts beside latencies and tokens: waits, failures, goodput, details."""

import weakref

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.request_rows import CANCELLED, FAILED
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.snapshot import LATENCIES, WAITS
from tests.helpers.response_bytes import delta
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    MS,
    START,
    answered,
    at,
    chunk,
    failed,
    measured,
    per_event,
    planned,
    read,
    steady,
    unsent,
)
from tests.helpers.snapshot_ms import only

# -- when what was sent and closed


def test_when_each_was_sent_and_closed_is_kept():
    snapshot = measured(
        [answered(index=i, sent=i, tokens=[i + 10, i + 20], closed=i + 30) for i in range(10)]
    )
    assert snapshot.index.tolist() == list(range(10))
    assert (snapshot.sent / MS).tolist() == list(range(10))
    assert (snapshot.closed / MS).tolist() == list(range(30, 40))


@pytest.mark.parametrize(("from_due", "ttft", "e2el"), [(True, 25, 45), (False, 20, 40)])
def test_latencies_of_each_request_are_kept_on_the_clock_asked(from_due, ttft, e2el):
    records = [
        answered(due=100, sent=105, tokens=[125, 145]),
        failed(1),
        failed(2, Outcome.CANCELLED),
    ]
    snapshot = measured(records, from_due=from_due)
    assert snapshot.ttft.tolist() == [ttft * MS, FAILED, CANCELLED]
    assert snapshot.e2el.tolist() == [e2el * MS, FAILED, CANCELLED]
    assert snapshot.failed.tolist() == [snapshot.closed[1]]


# -- what stands between due and sent


def test_lag_excludes_the_wait_for_a_slot_and_connecting():
    snapshot = measured([answered(due=100, ready=130, connect=15, sent=147, tokens=[200])])
    assert only(snapshot, "pool_wait") == 30
    assert only(snapshot, "connect") == 15
    assert only(snapshot, "lag") == 2
    assert only(snapshot, "ttft_due") == 100  # the latency from due holds all three


def test_request_sent_at_once_has_no_wait():
    snapshot = measured([answered(due=100, tokens=[200])])
    assert [only(snapshot, name) for name in ("lag", "pool_wait", "connect")] == [0, 0, 0]
    assert snapshot.counters["late_connections"] == 0


def test_a_connection_opened_while_the_clock_runs_is_counted():
    assert measured([answered(connect=5)]).counters["late_connections"] == 1


@pytest.mark.parametrize(("early_us", "counted"), [(1, 0), (50, 0), (51, 1), (2000, 1)])
def test_a_request_sent_more_than_50_us_early_is_counted(early_us, counted):
    snapshot = measured([answered(due=100, sent=100 - early_us / 1000, tokens=[200])])
    assert snapshot.counters["early"] == counted
    assert only(snapshot, "lag") == 0
    assert snapshot.counters["disordered"] == 0


@pytest.mark.parametrize(
    ("stamp", "ms"),
    [("due", 11), ("first_byte", 5), ("first_token", 19), ("last_token", 100), ("closed", 30)],
)
def test_stamps_out_of_order_are_counted(stamp, ms):
    record = answered(due=10, tokens=[20, 40], closed=50)
    setattr(record, stamp, at(ms))
    assert measured([record]).counters["disordered"] == 1


def test_stamps_in_order_or_absent_are_in_order():
    records = [
        answered(0),
        failed(1, Outcome.REFUSED),
        failed(2, Outcome.STATUS),
        failed(3, Outcome.EMPTY),
        unsent(4),
    ]
    assert measured(records).counters["disordered"] == 0


# -- failures


FAILURES = [
    *(failed(0, outcome) for outcome in Outcome if outcome is not Outcome.OK),
    *(
        unsent(0, outcome)
        for outcome in (Outcome.DNS_ERROR, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR)
    ),
]


@pytest.mark.parametrize(
    "failure", FAILURES, ids=lambda record: f"{record.outcome}{'' if record.sent else ', unsent'}"
)
def test_failure_adds_to_no_latency_and_no_sum_of_tokens(failure):
    good = answered(0, tokens=[20, 30])
    alone, beside = measured([good]), measured([good, failure])
    for name in LATENCIES:
        assert beside.histograms[name] == alone.histograms[name], name
    for name in (
        "output_tokens",
        "input_tokens",
        "token_events",
        "decode_ns",
        "decode_tokens",
        "planned_output_tokens",
    ):
        assert beside.counters[name] == alone.counters[name], name
    assert beside.bins.tolist() == alone.bins.tolist()
    assert (beside.ok, beside.ended) == (1, 2)


def test_the_tokens_of_failed_requests_are_counted_apart():
    assert measured([failed(0, Outcome.TRUNCATED)]).counters["lost_token_events"] == 2


def test_a_failure_that_was_sent_counts_in_the_waits():
    snapshot = measured([failed(0, Outcome.REFUSED, due=10, ready=12)])
    assert only(snapshot, "pool_wait") == 2


def test_a_request_that_was_never_sent_has_no_waits():
    snapshot = measured([unsent()])
    assert all(snapshot.histograms[name].count == 0 for name in WAITS)
    assert snapshot.sent.tolist() == [-1]


def test_outcomes_are_counted_by_class_with_the_status_spelled_out():
    records = [
        answered(0),
        failed(1, Outcome.STATUS),
        failed(2, Outcome.STATUS),
        failed(3, Outcome.TRUNCATED),
    ]
    missing = read(planned(4), b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    assert measured([*records, missing]).outcomes == {
        "ok": 1,
        "status(404)": 1,
        "status(503)": 2,
        "truncated": 1,
    }


def test_first_three_failures_of_each_class_are_examples():
    records = [failed(i, Outcome.STATUS, detail=f"busy {i}") for i in (9, 4, 7, 1, 8)]
    examples = measured([answered(0), *records, unsent(5)]).examples
    assert [(e["index"], e["detail"]) for e in examples["status(503)"]] == [
        (1, "busy 1"),
        (4, "busy 4"),
        (7, "busy 7"),
    ]
    assert [(e["index"], e["phase"]) for e in examples["dns_error"]] == [(5, "connecting")]
    assert "ok" not in examples


@pytest.mark.parametrize("outcome", [Outcome.STATUS, Outcome.STREAM_ERROR])
def test_a_body_kept_as_an_example_is_bounded(outcome):
    (example,) = measured([failed(0, outcome, detail="x" * 100_000)]).examples.popitem()[1]
    assert 100 < len(example["detail"]) <= 1024


def test_unsent_requests_of_a_stopped_run_are_counted():
    recorder = Recorder(START, 10)
    recorder.add(answered())
    recorder.add_never_sent(1, 9, Outcome.CANCELLED, "interrupted")
    snapshot = recorder.snapshot("interrupted")
    assert snapshot.outcomes == {"cancelled": 9, "ok": 1}
    assert (snapshot.ended, recorder.ended, snapshot.partial) == (10, 10, "interrupted")
    assert snapshot.examples["cancelled"] == [
        {"index": 1, "phase": "scheduled", "detail": "interrupted"}
    ]


@pytest.mark.parametrize("in_flight", [1, 2, 3, 4])
def test_examples_do_not_depend_on_the_order_of_counting(in_flight):
    cut_off = [failed(index, Outcome.CANCELLED, detail="interrupted") for index in range(in_flight)]
    live, from_records = Recorder(START, 10), Recorder(START, 10)
    live.add_never_sent(in_flight, 10 - in_flight, Outcome.CANCELLED, "interrupted")
    for record in cut_off:
        live.add(record)
        from_records.add(record)
    from_records.add_never_sent(in_flight, 10 - in_flight, Outcome.CANCELLED, "interrupted")
    examples = live.snapshot().examples["cancelled"]
    assert from_records.snapshot().examples["cancelled"] == examples
    assert [example["index"] for example in examples] == [*range(min(in_flight + 1, 3))]


def test_stopping_after_all_was_sent_adds_no_class():
    recorder = Recorder(START, 1)
    recorder.add(answered())
    recorder.add_never_sent(0, 0, Outcome.CANCELLED, "interrupted")
    assert recorder.snapshot().outcomes == {"ok": 1}


def test_a_request_that_was_given_up_bounds_its_latency_from_below():
    given_up = failed(0, Outcome.STALLED, due=0)
    assert only(measured([given_up]), "unfinished") == 30
    assert measured([failed(0, Outcome.TRUNCATED)]).histograms["unfinished"].count == 0


# -- goodput


LIMITS = {"ttft": 50 * MS, "tpot": 10 * MS, "e2el": 100 * MS}


@pytest.mark.parametrize(
    ("record", "good"),
    [
        (steady(ttft=50, gap=10, n=6), True),  # each limit just met
        (steady(ttft=51, gap=1, n=2), False),
        (steady(ttft=10, gap=11, n=2), False),
        (steady(ttft=50, gap=9, n=7), False),
        (steady(ttft=50, n=1), True),  # one token has no TPOT and is judged on the rest
        (steady(ttft=51, n=1), False),
        (failed(0, Outcome.TRUNCATED), False),
    ],
)
def test_a_good_request_ended_well_within_every_limit(record, good):
    assert measured([record], limits=LIMITS).counters["good"] == good


def test_goodput_counts_from_due_or_sent_and_always_from_sent():
    late = answered(due=0, sent=30, tokens=[60])
    for from_due, good in ((True, 0), (False, 1)):
        counters = measured([late], limits={"ttft": 50 * MS}, from_due=from_due).counters
        assert (counters["good"], counters["good_sent"]) == (good, 1)


def test_goodput_as_vllm_means_it_judges_tpot_as_vllm_divides():
    """The first event bears 5 tokens: 40 ms are 20 for each of the 2 after it, and 6.7 for each
    but one of 7.
    """
    record = per_event((20, 5), (40, 6), (60, 7))
    counters = measured([record], limits={"tpot": 15 * MS}).counters
    assert (counters["good"], counters["good_sent"]) == (0, 1)


def test_a_limit_of_goodput_may_be_beyond_any_time():
    assert measured([answered()], limits={"ttft": 10**30}).counters["good"] == 1


def test_goodput_is_zero_without_limits():
    assert measured([answered()]).counters["good"] == 0


# -- details, and what is handed on


def test_details_hold_lengths_and_latencies_in_seconds():
    told = {"prompt_tokens": 12, "completion_tokens": 3}
    details = measured(
        [answered(due=0, sent=5, tokens=[20, 30, 50], counts=told)], detailed=True
    ).details
    assert (details.input_lens, details.output_lens) == ([12], [3])
    assert details.ttfts == [pytest.approx(0.015)]
    assert details.itls == [pytest.approx([0.01, 0.02])]
    assert details.start_times == [START / 1e9 + 0.005]
    assert details.errors == [""]


def test_details_have_the_text_of_the_answer():
    record = planned()
    record.keeps_answer = True
    read(
        record,
        CHUNKED + chunk(delta(content="good ") + delta(content="day") + delta("stop")) + LAST_CHUNK,
    )
    assert measured([record], detailed=True).details.generated_texts == ["good day"]


def test_details_of_a_failure_say_why_and_hold_no_latency():
    details = measured([failed(0, Outcome.TRUNCATED, detail="reset")], detailed=True).details
    assert (details.output_lens, details.ttfts, details.itls) == ([0], [0.0], [[]])
    assert details.generated_texts == [""]
    assert details.errors[0].startswith("truncated: ")


def test_details_of_a_status_name_it_as_the_outcomes_do():
    snapshot = measured([failed(0, Outcome.STATUS, detail="busy")], detailed=True)
    assert snapshot.outcomes == {"status(503)": 1}
    assert snapshot.details.errors == ["status(503): busy"]


def test_details_are_kept_only_when_asked():
    assert measured([answered()]).details is None


def test_a_snapshot_does_not_change_when_the_recorder_goes_on():
    recorder = Recorder(START, 2, detailed=True)
    recorder.add(failed(0))
    before = recorder.snapshot()
    recorder.add(failed(1))
    recorder.add(answered(2))
    assert (before.ended, before.ok, before.counters["output_tokens"]) == (1, 0, 0)
    assert before.histograms["ttft_due"].count == 0
    assert (
        len(before.examples["stream_error"]) == len(before.details.errors) == len(before.index) == 1
    )


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (None, "stop"),
        (151645, "stop (token 151645)"),
        ("\n", 'stop ("\\n")'),
        (0, "stop (token 0)"),
    ],
)
def test_early_stops_are_counted_by_their_reason(stop, word):
    short, whole, uncounted = (
        answered(n, tokens=[20, 30], counts={"completion_tokens": 2}) for n in range(3)
    )
    short.output_tokens, whole.output_tokens = 5, 2
    short.matched_stop = stop
    uncounted = answered(2, tokens=[20, 30])
    uncounted.output_tokens = 5
    assert measured([short, whole, uncounted]).early_stops == {word: 1}


def test_finish_reasons_are_counted_and_too_many_of_them_together():
    assert measured([answered(0), answered(1)]).finishes == {"stop": 2}
    many = [
        read(planned(n), CHUNKED + chunk(delta(f"reason {n}", content="x")) + LAST_CHUNK)
        for n in range(25)
    ]
    finishes = measured(many).finishes
    assert (finishes["other"], len(finishes), sum(finishes.values())) == (5, 21, 25)


# -- when its memory is freed


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("detailed", [False, True])
def test_a_recorder_is_freed_with_its_last_name(detailed: bool) -> None:
    recorder = Recorder(START, 2, detailed=detailed)
    recorder.add(answered(0))
    recorder.add(failed(1))
    recorder.snapshot()
    last = weakref.ref(recorder)
    del recorder
    assert last() is None
