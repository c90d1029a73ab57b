"""The meaning of each latency of a request, in numbers that can be checked by hand."""

from tests.helpers.run_facts import MS, answered, measured, per_event
from tests.helpers.snapshot_ms import about, only, values

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


def test_reasoning_only_answer_has_no_ttfo():
    snapshot = measured([answered(tokens=[], reasoning=[20, 30])])
    assert snapshot.histograms["ttfo_due"].count == snapshot.histograms["ttfo_sent"].count == 0
    assert only(snapshot, "ttft_due") == 20


# -- TPOT


def test_tpot_is_the_time_after_the_first_token_per_token_after_it():
    assert only(measured([answered(tokens=[20, 30, 50, 80])]), "tpot") == 20


def test_tpot_counts_the_tokens_that_usage_counts_where_events_bring_several():
    snapshot = measured([answered(tokens=[20, 40, 60], counts={"completion_tokens": 9})])
    assert only(snapshot, "tpot") == 5  # 40 ms for 8 tokens


def test_a_reply_of_one_token_has_no_tpot():
    assert measured([answered(tokens=[20])]).histograms["tpot"].count == 0
    assert (
        measured([answered(tokens=[20], counts={"completion_tokens": 1})]).histograms["tpot"].count
        == 0
    )


def test_a_reply_whose_tokens_all_came_in_one_event_has_no_tpot():
    assert (
        measured([answered(tokens=[20], counts={"completion_tokens": 64})]).histograms["tpot"].count
        == 0
    )


def test_a_reply_of_one_token_in_two_events_has_no_tpot():
    assert (
        measured([answered(tokens=[20, 30], counts={"completion_tokens": 1})])
        .histograms["tpot"]
        .count
        == 0
    )


def test_tpot_weighted_by_tokens_is_the_sum_of_times_over_the_sum_of_tokens():
    long, tiny = answered(0, tokens=[i * 10 for i in range(1, 102)]), answered(1, tokens=[20, 120])
    counters = measured([long, tiny]).counters
    # The mean of requests is 55 ms.
    assert (counters["decode_ns"], counters["decode_tokens"]) == (1100 * MS, 101)


def test_replies_without_tpot_add_no_decode_time_or_tokens():
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
    assert [counters[f"{kind}_events"] for kind in ("token", "content", "reasoning", "other")] == [
        4,
        1,
        2,
        1,
    ]


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


def test_latencies_that_the_stamps_do_not_bear_out_are_counted():
    record, other = answered(0, tokens=[20, 30]), answered(1, tokens=[20, 30])
    record.last_token += MS
    assert measured([record, other]).counters["unequal"] == 1
