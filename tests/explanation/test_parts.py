"""Parts of each request add up to its time from due to the first token, to the nanosecond."""

from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.explanation.explainer import explain
from loadgen.explanation.parts import NAMES, Line, Parts
from loadgen.explanation.request_columns import RequestColumns
from loadgen.metrics.records.json_lines import record_from_line
from loadgen.report.result.explanation import Explanation
from tests.helpers.planted_records import MS, START_NS, Answer, records, served

TIMES = st.integers(0, 10**12)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    due, cap, connect, lag, ttft = (draw(TIMES) for _ in range(5))
    sent = due + cap + connect + lag
    gaps = draw(st.lists(st.integers(0, 10**10), max_size=20))
    tokens = [sent + ttft]
    for gap in gaps:
        tokens.append(tokens[-1] + gap)
    return Answer(
        due,
        sent,
        draw(st.integers(0, 10**6)),
        tuple(tokens),
        connect=connect,
        cap=cap,
        target=draw(st.integers(0, 2)),
        together=draw(st.integers(1, 4)),
    )


@given(st.lists(answers(), min_size=1, max_size=60), st.floats(0, 1e4), st.floats(0, 10))
def test_parts_add_up_to_the_ns(drawn: list[Answer], token_ms: float, slope_ms: float) -> None:
    requests = RequestColumns.of(records(drawn))
    line = Line(3.0, slope_ms, is_known=True)
    parts = Parts.by_stamps(requests, line, token_ms)
    assert (parts.total == requests.first - requests.due).all()
    assert parts.ns.dtype == np.int64
    assert (parts.ns[NAMES.index("outside") :] >= 0).all()


@given(st.lists(answers(), max_size=80))
def test_any_records_are_explained(drawn: list[Answer]) -> None:
    explanation = explain(records(drawn), None)
    assert (explanation is None) == (not drawn)
    if explanation is not None:
        assert len(explanation.causes) <= 3
        total_ms = np.mean([answer.tokens[0] - answer.due for answer in drawn]) / MS
        assert sum(explanation.mean_ms.values()) == pytest.approx(total_ms, abs=1e-3)


def test_the_way_takes_a_round_trip_at_least() -> None:
    requests = RequestColumns.of(records(served(max_num_seqs=3, outside_ms=30.0)))
    far = structs.replace(requests, round_trip=np.full(len(requests), 30 * MS))
    line = Line(12.0, 0.02, is_known=True)
    near_ms, far_ms = (Parts.by_stamps(each, line, 10.0).mean_ms() for each in (requests, far))
    assert near_ms["outside"] == pytest.approx(2, abs=0.01)
    assert far_ms["outside"] == pytest.approx(30, abs=0.01)
    assert sum(near_ms.values()) == pytest.approx(sum(far_ms.values()))


def test_each_part_is_what_was_planted() -> None:
    explanation = explain(records(served(outside_ms=40.0)), None)
    assert explanation is not None
    assert explanation.mean_ms["outside"] == pytest.approx(40, abs=2)
    assert explanation.mean_ms["prompt"] == pytest.approx(10 + 0.02 * 288, abs=1)
    assert explanation.mean_ms["cap"] == 0
    assert explanation.part_kinds["cap"] == "exact"
    assert explanation.part_kinds["queue"] == "estimate"


def test_bands_are_of_requests_and_their_parts_add_up() -> None:
    planted = served(count=200)
    explanation = explain(records(planted), None)
    assert explanation is not None
    times_ms = sorted((answer.tokens[0] - answer.due) / MS for answer in planted)
    assert {name: band.requests for name, band in explanation.bands.items()} == {
        "p10": 40,
        "p50": 40,
        "p90": 20,
        "p99": 4,
    }
    assert explanation.bands["p99"].total_ms == pytest.approx(np.mean(times_ms[-4:]), abs=1e-6)
    assert explanation.bands["p10"].total_ms == pytest.approx(np.mean(times_ms[:40]), abs=1e-6)


def test_requests_without_token_times_are_counted_and_explain_nothing() -> None:
    (record,) = records(served(count=1))
    record.is_whole = True
    assert explain([record], None) is None
    kept = records(served(count=3))
    kept[0].is_whole = True
    kept[1].results = 1  # an embedding
    explanation = explain(kept, None)
    assert explanation is not None
    assert (explanation.requests, explanation.others) == (1, 2)


def said(record: Record, **times: int | str) -> Record:
    """A record whose server has said times of it."""
    line = orjson.loads(record_line(record, START_NS)) | {"server_times": times}
    return record_from_line(line, START_NS)


def test_the_word_of_the_server_takes_the_place_of_an_estimate() -> None:
    planted = [
        said(record, by="vllm", queue=2 * MS, prefill=9 * MS)
        for record in records(served(outside_ms=40.0))
    ]
    explanation = explain(planted, None)
    assert explanation is not None
    mean_ms = explanation.mean_ms
    assert (mean_ms["queue"], mean_ms["prompt"]) == (pytest.approx(2), pytest.approx(9))
    times = [(record.first_token - record.due) / MS for record in planted]
    assert mean_ms["outside"] == pytest.approx(np.mean(times) - 0.05 - 11, abs=1e-3)
    kinds = explanation.part_kinds
    assert (kinds["queue"], kinds["prompt"], kinds["outside"]) == ("server",) * 3


def test_llamacpp_waits_until_it_sends_its_headers() -> None:
    def waiting(answers: list[Answer]) -> Explanation:
        planted = [
            said(
                replace(answer, first_byte=answer.tokens[0] - 9 * MS).record(index),
                by="llamacpp",
                prefill=9 * MS,
            )
            for index, answer in enumerate(answers)
        ]
        explanation = explain(planted, None)
        assert explanation is not None
        assert explanation.part_kinds["queue"] == "server"
        return explanation

    assert waiting(served(max_num_seqs=3)).causes[0].name == "queue-slots"
    far = waiting(served(outside_ms=120, rate=3))
    assert far.mean_ms["outside"] == pytest.approx(120, rel=0.1)
    assert [cause.name for cause in far.causes] == ["front"]


def test_a_server_that_says_more_than_there_was_is_not_believed() -> None:
    planted = [
        said(record, by="vllm", queue=0, prefill=10**12) for record in records(served(count=60))
    ]
    explanation = explain(planted, None)
    assert explanation is not None
    assert explanation.contradicted == 60
    assert explanation.part_kinds["prompt"] == "estimate"


def test_a_request_of_which_the_server_says_too_much_is_split_by_its_stamps() -> None:
    planted = [
        said(record, by="vllm", queue=0, prefill=9 * MS if index % 30 else 10**12)
        for index, record in enumerate(records(served(count=150)))
    ]
    # Rounded to a ms, more than there was.
    ttft = planted[1].first_token - planted[1].sent
    planted[1] = said(planted[1], by="vllm", queue=0, prefill=ttft + MS // 2)
    explanation = explain(planted, None)
    assert explanation is not None
    assert (explanation.contradicted, explanation.part_kinds["prompt"]) == (5, "server")
    assert all(ms >= 0 for band in explanation.bands.values() for ms in band.parts_ms.values())
    assert explanation.mean_ms["prompt"] < 20


def test_requests_that_all_wait_long_by_the_word_of_the_server_do_wait() -> None:
    planted = []
    for index, answer in enumerate(served(max_num_seqs=3, rate=30)):
        sent = answer.tokens[0] - 500 * MS
        record = replace(answer, due=sent, sent=sent).record(index)
        planted.append(said(record, by="vllm", queue=480 * MS, prefill=12 * MS))
    explanation = explain(planted, None)
    assert explanation is not None
    assert explanation.causes[0].name == "queue-slots"


def test_tokens_of_the_first_event_do_not_make_the_model_faster() -> None:
    answers = served(answers=(16, 48), stream_us=0, prompt_us=0)
    planted = [replace(answer, tokens=answer.tokens[3::4], together=4) for answer in answers]
    explanation = explain(records(planted), None)
    assert explanation is not None
    assert explanation.mean_ms["prompt"] == pytest.approx(10, rel=0.05)
    assert explanation.unexplained < 0.05


def test_times_of_the_server_in_another_unit_are_not_believed() -> None:
    planted = [
        said(record, by="vllm", queue=MS // 1000, prefill=12 * MS // 1000)
        for record in records(served(max_num_seqs=3))
    ]
    explanation = explain(planted, None)
    assert explanation is not None
    assert explanation.causes[0].name == "queue-slots"
    assert explanation.part_kinds["queue"] == "estimate"
