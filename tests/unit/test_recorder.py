"""What every number of a request means, in numbers that can be checked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.outcomes import Outcome
from loadgen.recorder import Recorder, phase
from loadgen.snapshot import LATENCIES, WAITS
from loadgen.wire import Record
from tests.unit.making import (
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
from tests.wire.bytes_of import delta, event


def values(snapshot, name):
    """The values of a histogram, ms: exact while no two share a bucket, as minimum and maximum always are."""
    histogram = snapshot.histograms[name]
    return [(low + high) / 2 / MS for low, high, count in histogram for _ in range(count)]


def only(snapshot, name):
    """The one value of a histogram, ms."""
    histogram = snapshot.histograms[name]
    assert (histogram.count, histogram.min) == (1, histogram.max)
    return histogram.min / MS


def about(*ms):
    return pytest.approx(ms, rel=1e-3)


# -- from due and from sent


def test_ttft_is_the_first_token_from_due_and_from_sent():
    snapshot = measured([answered(due=100, sent=103, tokens=[150, 160])])
    assert only(snapshot, "ttft_due") == 50
    assert only(snapshot, "ttft_sent") == 47


def test_e2el_ends_with_the_last_token_and_not_with_the_end_of_the_response():
    snapshot = measured([answered(due=100, sent=103, tokens=[150, 160], closed=500)])
    assert only(snapshot, "e2el_due") == 60
    assert only(snapshot, "e2el_sent") == 57


def test_ttfo_is_the_first_token_of_the_answer_after_any_reasoning():
    snapshot = measured([answered(due=0, sent=2, reasoning=[20, 30], tokens=[70, 80])])
    assert only(snapshot, "ttft_due") == 20
    assert only(snapshot, "ttfo_due") == 70
    assert only(snapshot, "ttfo_sent") == 68


def test_ttfo_is_ttft_without_reasoning():
    snapshot = measured([answered(sent=1, tokens=[20, 30])])
    assert only(snapshot, "ttfo_due") == only(snapshot, "ttft_due") == 20


def test_an_answer_of_nothing_but_reasoning_has_no_ttfo():
    snapshot = measured([answered(tokens=[], reasoning=[20, 30])])
    assert snapshot.histograms["ttfo_due"].count == snapshot.histograms["ttfo_sent"].count == 0
    assert only(snapshot, "ttft_due") == 20


# -- when what was sent and closed


def test_when_each_was_sent_and_closed_is_kept_whatever_their_number(monkeypatch):
    monkeypatch.setattr("loadgen.recorder._BLOCK", 3 * 4)
    snapshot = measured([answered(index=i, sent=i, tokens=[i + 10, i + 20], closed=i + 30) for i in range(10)])
    assert snapshot.index.tolist() == list(range(10))
    assert (snapshot.sent / MS).tolist() == list(range(10))
    assert (snapshot.closed / MS).tolist() == list(range(30, 40))


# -- TPOT


def test_tpot_is_the_time_after_the_first_token_per_token_after_it():
    assert only(measured([answered(tokens=[20, 30, 50, 80])]), "tpot") == 20


def test_tpot_counts_the_tokens_that_usage_counts_where_events_bring_several():
    snapshot = measured([answered(tokens=[20, 40, 60], counts={"completion_tokens": 9})])
    assert only(snapshot, "tpot") == 5  # 40 ms for 8 tokens


def test_a_reply_of_one_token_has_no_tpot():
    assert measured([answered(tokens=[20])]).histograms["tpot"].count == 0
    assert measured([answered(tokens=[20], counts={"completion_tokens": 1})]).histograms["tpot"].count == 0


def test_a_reply_whose_tokens_all_came_in_one_event_has_no_tpot():
    assert measured([answered(tokens=[20], counts={"completion_tokens": 64})]).histograms["tpot"].count == 0


def test_a_reply_of_one_token_in_two_events_has_no_tpot():
    assert measured([answered(tokens=[20, 30], counts={"completion_tokens": 1})]).histograms["tpot"].count == 0


def test_tpot_weighted_by_tokens_is_the_sum_of_times_over_the_sum_of_tokens():
    long, tiny = answered(0, tokens=[i * 10 for i in range(1, 102)]), answered(1, tokens=[20, 120])
    counters = measured([long, tiny]).counters
    assert (counters["decode_ns"], counters["decode_tokens"]) == (1100 * MS, 101)  # the mean of requests is 55 ms


def test_replies_without_tpot_weigh_nothing_in_it():
    counters = measured([answered(tokens=[20], counts={"completion_tokens": 64})]).counters
    assert (counters["decode_ns"], counters["decode_tokens"]) == (0, 0)


# -- gaps between events


def test_the_gaps_between_events_are_kept_as_they_came():
    assert values(measured([answered(tokens=[20, 30, 50])]), "icl") == about(10, 20)


def test_tokens_counted_beyond_the_events_are_reported_and_stretch_no_gap():
    snapshot = measured([answered(tokens=[20, 40, 60], counts={"completion_tokens": 12})])
    assert values(snapshot, "icl") == about(20, 20)
    assert snapshot.counters["unseen_tokens"] == 9


def test_events_in_one_segment_are_gaps_of_zero():
    snapshot = measured([answered(tokens=[20, 20, 20])])
    assert values(snapshot, "icl") == [0, 0]


def test_a_single_event_has_no_gap():
    snapshot = measured([answered(tokens=[20], counts={"completion_tokens": 5})])
    assert snapshot.histograms["icl"].count == 0


def test_gaps_of_reasoning_and_tool_calls_count_as_those_of_the_answer_do():
    snapshot = measured([answered(reasoning=[20, 25], tokens=[35], tools=[55])])
    assert values(snapshot, "icl") == about(5, 10, 20)
    counters = snapshot.counters
    assert [counters[f"{kind}_events"] for kind in ("token", "content", "reasoning", "other")] == [4, 1, 2, 1]


# -- how tokens are counted


def test_output_tokens_are_the_servers_count_where_it_gives_one_else_events():
    snapshot = measured(
        [answered(0, tokens=[20, 30], counts={"completion_tokens": 7}), answered(1, tokens=[20, 30, 40])]
    )
    counters = snapshot.counters
    assert counters["output_tokens"] == 7 + 3
    assert (counters["usage_requests"], counters["event_requests"]) == (1, 1)


def test_a_count_of_no_tokens_beside_one_that_was_seen_is_none():
    counters = measured([answered(tokens=[20], counts={"completion_tokens": 0})]).counters
    assert (counters["output_tokens"], counters["usage_requests"], counters["event_requests"]) == (1, 0, 1)


def test_tokens_that_usage_counts_and_the_stream_never_showed_are_unseen():
    counters = measured([answered(tokens=[20, 30], counts={"completion_tokens": 5})]).counters
    assert (counters["unseen_tokens"], counters["surplus_events"]) == (3, 0)


def test_events_beyond_the_tokens_that_usage_counts_are_surplus():
    counters = measured([answered(tokens=[20, 30, 40], counts={"completion_tokens": 2})]).counters
    assert (counters["unseen_tokens"], counters["surplus_events"]) == (0, 1)


def test_unseen_and_surplus_do_not_make_up_for_each_other():
    more = answered(0, tokens=[20], counts={"completion_tokens": 3})
    fewer = answered(1, tokens=[20, 30, 40], counts={"completion_tokens": 1})
    counters = measured([more, fewer]).counters
    assert (counters["unseen_tokens"], counters["surplus_events"]) == (2, 2)


@pytest.mark.parametrize(
    ("predicted", "counted", "expected"),
    [(12, 12, (1, 0)), (12, 14, (0, 2)), (12, 10, (0, -2)), (-1, 14, (0, 4)), (-1, 10, (1, 0))],
)
def test_input_is_as_planned_where_the_server_counts_what_was_predicted_else_what_was_planned(
    predicted, counted, expected
):
    record = answered(counts={"prompt_tokens": counted, "completion_tokens": 3})
    record.server_tokens = predicted
    counters = measured([record]).counters
    assert (counters["input_as_planned"], counters["unexpected_input_tokens"]) == expected
    assert counters["input_predicted"] == (predicted >= 0)
    assert counters["predicted_server_input_tokens"] == max(predicted, 0)
    assert counters["input_tokens"] == counted


def test_where_the_server_does_not_count_input_it_is_taken_as_predicted():
    record = answered()
    record.server_tokens = 12
    snapshot = measured([record], detailed=True)
    assert (snapshot.counters["input_tokens"], snapshot.counters["planned_input_tokens"]) == (12, 10)
    assert snapshot.details.input_lens == [12]


def test_input_tokens_are_the_servers_count_where_it_gives_one_else_the_plans():
    told = answered(0, tokens=[20], counts={"prompt_tokens": 14, "completion_tokens": 1})
    counters = measured([told, answered(1, tokens=[20])]).counters
    assert counters["input_tokens"] == 14 + 10
    assert counters["planned_input_tokens"] == 10 + 10
    assert (counters["input_counted"], counters["input_as_planned"]) == (1, 0)


def test_prompts_that_the_server_counts_as_planned_are_counted():
    counters = measured([answered(tokens=[20], counts={"prompt_tokens": 10, "completion_tokens": 1})]).counters
    assert (counters["input_counted"], counters["input_as_planned"]) == (1, 1)


def test_cached_tokens_are_known_only_where_the_server_tells():
    told = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}
    counters = measured([answered(0, tokens=[20], counts=told), answered(1, tokens=[20])]).counters
    assert (counters["cached_tokens"], counters["cached_counted"]) == (8, 1)


def test_tokens_stand_in_the_hundredth_in_which_they_came():
    snapshot = measured([answered(tokens=[29.9, 30, 39.5])])
    assert {hundredth: count for hundredth, count in enumerate(snapshot.bins.tolist()) if count} == {2: 1, 3: 2}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(1, 100))
def test_the_tokens_over_time_add_up_to_the_tokens_counted(moments, count):
    snapshot = measured([answered(tokens=sorted(m + 1 for m in moments), counts={"completion_tokens": count})])
    assert snapshot.bins.sum() == snapshot.counters["output_tokens"] == count


def test_tokens_that_come_long_after_the_start_have_their_place_too():
    snapshot = measured([answered(due=3_600_000, tokens=[3_600_020])])
    assert (len(snapshot.bins), snapshot.bins[-1]) == (360_003, 1)


# -- what stands between due and sent


def test_lag_is_what_is_left_of_the_way_from_due_to_sent_without_slot_and_connecting():
    snapshot = measured([answered(due=100, ready=130, connect=15, sent=147, tokens=[200])])
    assert only(snapshot, "pool_wait") == 30
    assert only(snapshot, "connect") == 15
    assert only(snapshot, "lag") == 2
    assert only(snapshot, "ttft_due") == 100  # the latency from due holds all three


def test_a_request_sent_at_once_waited_for_nothing():
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
    ("stamp", "ms"), [("due", 11), ("first_byte", 5), ("first_token", 19), ("last_token", 100), ("closed", 30)]
)
def test_stamps_out_of_order_are_counted(stamp, ms):
    record = answered(due=10, tokens=[20, 40], closed=50)
    setattr(record, stamp, at(ms))
    assert measured([record]).counters["disordered"] == 1


def test_stamps_in_order_or_absent_are_in_order():
    records = [answered(0), failed(1, Outcome.REFUSED), failed(2, Outcome.STATUS), failed(3, Outcome.EMPTY), unsent(4)]
    assert measured(records).counters["disordered"] == 0


# -- failures


FAILURES = [
    *(failed(0, outcome) for outcome in Outcome if outcome not in (Outcome.OK, Outcome.DROPPED)),
    *(
        unsent(0, outcome)
        for outcome in (Outcome.DNS_ERROR, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR, Outcome.DROPPED)
    ),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda record: f"{record.outcome}{'' if record.sent else ', unsent'}")
def test_a_failure_is_in_no_latency_and_in_no_sum_of_tokens(failure):
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
    records = [answered(0), failed(1, Outcome.STATUS), failed(2, Outcome.STATUS), failed(3, Outcome.TRUNCATED)]
    missing = read(planned(4), b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    assert measured([*records, missing]).outcomes == {"ok": 1, "status(404)": 1, "status(503)": 2, "truncated": 1}


def test_of_each_class_but_ok_the_first_three_of_the_schedule_are_kept_as_examples():
    records = [failed(i, Outcome.STATUS, detail=f"busy {i}") for i in (9, 4, 7, 1, 8)]
    examples = measured([answered(0), *records, unsent(5)]).examples
    assert [(e["index"], e["detail"]) for e in examples["status(503)"]] == [(1, "busy 1"), (4, "busy 4"), (7, "busy 7")]
    assert [(e["index"], e["phase"]) for e in examples["dns_error"]] == [(5, "connecting")]
    assert "ok" not in examples


@pytest.mark.parametrize("outcome", [Outcome.STATUS, Outcome.STREAM_ERROR])
def test_a_body_kept_as_an_example_is_bounded(outcome):
    (example,) = measured([failed(0, outcome, detail="x" * 100_000)]).examples.popitem()[1]
    assert 100 < len(example["detail"]) <= 1024


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(0), "scheduled"),
        (unsent(), "connecting"),
        (failed(0, Outcome.REFUSED), "waiting"),
        (read(planned(), b"HTTP/1.1 2"), "head"),
        (failed(0, Outcome.EMPTY), "first token"),
        (failed(0, Outcome.TRUNCATED), "streaming"),
    ],
)
def test_the_phase_says_how_far_a_request_got(record, expected):
    assert phase(record) == expected


def test_requests_that_were_never_sent_because_the_run_stopped_are_accounted_for():
    recorder = Recorder(START, 10)
    recorder.add(answered())
    recorder.add_never_sent(9, Outcome.CANCELLED, "interrupted")
    snapshot = recorder.snapshot("interrupted")
    assert snapshot.outcomes == {"cancelled": 9, "ok": 1}
    assert (snapshot.ended, recorder.ended, snapshot.partial) == (10, 10, "interrupted")
    assert snapshot.examples["cancelled"] == [{"index": 1, "phase": "scheduled", "detail": "interrupted"}]


@pytest.mark.parametrize("in_flight", [1, 2, 3, 4])
def test_what_was_never_sent_and_what_was_cut_off_make_the_same_examples_whichever_is_counted_first(in_flight):
    cut_off = [failed(index, Outcome.CANCELLED, detail="interrupted") for index in range(in_flight)]
    live, from_records = Recorder(START, 10), Recorder(START, 10)
    live.add_never_sent(10 - in_flight, Outcome.CANCELLED, "interrupted")
    for record in cut_off:
        live.add(record)
        from_records.add(record)
    from_records.add_never_sent(10 - in_flight, Outcome.CANCELLED, "interrupted")
    examples = live.snapshot().examples["cancelled"]
    assert from_records.snapshot().examples["cancelled"] == examples
    assert [example["index"] for example in examples] == [*range(min(in_flight + 1, 3))]


def test_stopping_after_all_was_sent_adds_no_class():
    recorder = Recorder(START, 1)
    recorder.add(answered())
    recorder.add_never_sent(0, Outcome.CANCELLED, "interrupted")
    assert recorder.snapshot().outcomes == {"ok": 1}


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


def test_goodput_counts_from_due_or_from_sent_as_asked_and_always_also_from_sent():
    late = answered(due=0, sent=30, tokens=[60])
    for from_due, good in ((True, 0), (False, 1)):
        counters = measured([late], limits={"ttft": 50 * MS}, from_due=from_due).counters
        assert (counters["good"], counters["good_sent"]) == (good, 1)


def test_without_limits_nothing_is_called_good():
    assert measured([answered()]).counters["good"] == 0


# -- details, and what is handed on


def test_details_are_the_lengths_and_latencies_of_each_request_in_seconds_from_sent():
    told = {"prompt_tokens": 12, "completion_tokens": 3}
    details = measured([answered(due=0, sent=5, tokens=[20, 30, 50], counts=told)], detailed=True).details
    assert (details.input_lens, details.output_lens) == ([12], [3])
    assert details.ttfts == [pytest.approx(0.015)]
    assert details.itls == [pytest.approx([0.01, 0.02])]
    assert details.start_times == [START / 1e9 + 0.005]
    assert details.errors == [""]


def test_details_of_a_failure_say_why_and_hold_no_latency():
    details = measured([failed(0, Outcome.TRUNCATED, detail="reset")], detailed=True).details
    assert (details.output_lens, details.ttfts, details.itls) == ([0], [0.0], [[]])
    assert details.errors[0].startswith("truncated: ")


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
    assert len(before.examples["stream_error"]) == len(before.details.errors) == len(before.index) == 1


# -- events of several tokens


def test_tpot_leaves_out_all_tokens_of_the_first_event():
    snapshot = measured([per_event((20, 3), (40, 4), (60, 5))])
    assert only(snapshot, "tpot") == 20  # 40 ms for the 2 tokens after the first event
    assert only(snapshot, "tpot_n1") == 10  # for the 4 after the first token
    assert snapshot.counters["decode_tokens"] == 2
    assert snapshot.counters["unequal"] == 0


def test_itl_is_per_token_and_icl_per_event():
    snapshot = measured([per_event((20, 1), (40, 5), (50, 6))])
    assert values(snapshot, "icl") == about(10, 20)
    assert values(snapshot, "itl") == about(5, 5, 5, 5, 10)
    assert snapshot.counters["imputed_gaps"] == 4


def test_what_said_how_many_tokens_each_event_bore_is_counted():
    snapshot = measured([per_event((20, 2), (40, 3)), answered(1)])
    assert (snapshot.counters["usage_per_event"], snapshot.counters["ids_per_event"]) == (1, 0)


def test_an_answer_counted_by_token_ids_has_their_sum_of_tokens():
    body = b"".join(
        event(choices=[{"index": 0, "delta": {"content": "x"}, "token_ids": ids, "finish_reason": finish}])
        for ids, finish in (([1, 2], None), ([3], "stop"))
    )
    snapshot = measured([read(planned(tokens=(10, 3)), CHUNKED + chunk(body) + LAST_CHUNK)])
    counters = snapshot.counters
    assert (counters["id_requests"], counters["event_requests"], counters["output_tokens"]) == (1, 0, 3)
    assert counters["output_as_planned"] == 1


def test_a_tokenizer_counts_where_the_server_does_not():
    record = answered(0, tokens=[20, 40, 60])
    record.tokenized = 9
    snapshot = measured([record])
    counters = snapshot.counters
    assert (counters["tokenizer_requests"], counters["event_requests"], counters["output_tokens"]) == (1, 0, 9)
    assert only(snapshot, "tpot") == 5  # 40 ms for 8 tokens
    assert snapshot.bins.sum() == 9


def test_finish_reasons_are_counted_and_too_many_of_them_together():
    assert measured([answered(0), answered(1)]).finishes == {"stop": 2}
    many = [read(planned(n), CHUNKED + chunk(delta(f"reason {n}", content="x")) + LAST_CHUNK) for n in range(25)]
    finishes = measured(many).finishes
    assert (finishes["other"], len(finishes), sum(finishes.values())) == (5, 21, 25)


def test_a_request_that_was_given_up_bounds_its_latency_from_below():
    given_up = failed(0, Outcome.STALLED, due=0)
    assert only(measured([given_up]), "unfinished") == 30
    assert measured([failed(0, Outcome.TRUNCATED)]).histograms["unfinished"].count == 0
