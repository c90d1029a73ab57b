"""How the tokens of prompts and answers are counted, and from which source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.response_bytes import event
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    answered,
    chunk,
    measured,
    per_event,
    planned,
    read,
)
from tests.helpers.snapshot_ms import only


def test_output_tokens_are_the_servers_count_where_it_gives_one_else_events():
    snapshot = measured(
        [
            answered(0, tokens=[20, 30], counts={"completion_tokens": 7}),
            answered(1, tokens=[20, 30, 40]),
        ]
    )
    counters = snapshot.counters
    assert counters["output_tokens"] == 7 + 3
    assert (counters["usage_requests"], counters["event_requests"]) == (1, 1)


def test_a_count_of_no_tokens_beside_one_that_was_seen_is_none():
    counters = measured([answered(tokens=[20], counts={"completion_tokens": 0})]).counters
    assert (counters["output_tokens"], counters["usage_requests"], counters["event_requests"]) == (
        1,
        0,
        1,
    )


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
def test_input_is_as_planned_by_prediction_else_by_plan(predicted, counted, expected):
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
    assert (snapshot.counters["input_tokens"], snapshot.counters["planned_input_tokens"]) == (
        12,
        10,
    )
    assert snapshot.details.input_lens == [12]


def test_input_tokens_are_the_servers_count_where_it_gives_one_else_the_plans():
    told = answered(0, tokens=[20], counts={"prompt_tokens": 14, "completion_tokens": 1})
    counters = measured([told, answered(1, tokens=[20])]).counters
    assert counters["input_tokens"] == 14 + 10
    assert counters["planned_input_tokens"] == 10 + 10
    assert (counters["input_counted"], counters["input_as_planned"]) == (1, 0)


def test_prompts_that_the_server_counts_as_planned_are_counted():
    counters = measured(
        [answered(tokens=[20], counts={"prompt_tokens": 10, "completion_tokens": 1})]
    ).counters
    assert (counters["input_counted"], counters["input_as_planned"]) == (1, 1)


def test_cached_tokens_are_known_only_where_the_server_tells():
    told = {
        "prompt_tokens": 10,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    counters = measured([answered(0, tokens=[20], counts=told), answered(1, tokens=[20])]).counters
    assert (counters["cached_tokens"], counters["cached_counted"]) == (8, 1)


def test_tokens_stand_in_the_hundredth_in_which_they_came():
    snapshot = measured([answered(tokens=[29.9, 30, 39.5])])
    assert {
        hundredth: count for hundredth, count in enumerate(snapshot.bins.tolist()) if count
    } == {2: 1, 3: 2}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(1, 100))
def test_the_tokens_over_time_add_up_to_the_tokens_counted(moments, count):
    snapshot = measured(
        [answered(tokens=sorted(m + 1 for m in moments), counts={"completion_tokens": count})]
    )
    assert snapshot.bins.sum() == snapshot.counters["output_tokens"] == count


def test_tokens_that_come_long_after_the_start_have_their_place_too():
    snapshot = measured([answered(due=3_600_000, tokens=[3_600_020])])
    assert (len(snapshot.bins), snapshot.bins[-1]) == (360_003, 1)


# -- events of several tokens, and none that says how many


def test_token_counts_per_event_are_counted_by_their_source():
    snapshot = measured([per_event((20, 2), (40, 3)), answered(1)])
    assert (snapshot.counters["usage_per_event"], snapshot.counters["ids_per_event"]) == (1, 0)


def test_an_answer_counted_by_token_ids_has_their_sum_of_tokens():
    body = b"".join(
        event(
            choices=[
                {"index": 0, "delta": {"content": "x"}, "token_ids": ids, "finish_reason": finish}
            ]
        )
        for ids, finish in (([1, 2], None), ([3], "stop"))
    )
    snapshot = measured([read(planned(tokens=(10, 3)), CHUNKED + chunk(body) + LAST_CHUNK)])
    counters = snapshot.counters
    assert (counters["id_requests"], counters["event_requests"], counters["output_tokens"]) == (
        1,
        0,
        3,
    )
    assert counters["output_as_planned"] == 1


def test_a_tokenizer_counts_where_the_server_does_not():
    record = answered(0, tokens=[20, 40, 60])
    record.tokenized = 9
    snapshot = measured([record])
    counters = snapshot.counters
    assert (
        counters["tokenizer_requests"],
        counters["event_requests"],
        counters["output_tokens"],
    ) == (1, 0, 9)
    assert only(snapshot, "tpot") == 5  # 40 ms for 8 tokens
    assert snapshot.bins.sum() == 9
