"""The definitions of each tool, on streams that can be computed by hand; times in ms."""

import numpy as np
import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.lab.tools.emulate.comparison import TOOLS
from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.guidellm import concurrency, merged, rates
from loadgen.lab.tools.emulate.tool import UNKNOWN
from loadgen.testing.replies import DONE, delta, event, usage
from tests.helpers.recorded_streams import record_of, rows_of, run_of
from tests.helpers.run_facts import failed

ROLE = delta(role="assistant", content="")
WORD, THOUGHT, OLD = delta(content="a"), delta(reasoning="a"), delta(reasoning_content="a")
END = delta("stop", content="")
ASKED = {"percentile_metrics": "ttft,tpot,itl,e2el", "metric_percentiles": "99"}


def shown(
    name: str, *records: Record, chat: bool = True, **settings: object
) -> dict[str, float | None]:
    tool = TOOLS[name]
    rows = rows_of(tool, run_of(records, chat, **{**ASKED, **settings}), frozenset(tool.rules))
    return {row.label: row.value for row in rows}


def answer() -> Record:
    """Due at 0, sent at 5; role at 20, words at 30, 40 and 60, the finish at 65, usage at 85,
    [DONE] at 95.
    """
    tail = [(65, END), (85, usage(prompt_tokens=11, completion_tokens=3)), (95, DONE)]
    return record_of(0, [(20, ROLE), (30, WORD), (40, WORD), (60, WORD), *tail], sent=5, closed=100)


# From the first word to the finish, whose content is "".
@pytest.mark.parametrize(
    ("name", "ttft", "tpot", "e2el"),
    [
        ("vllm-0.11", 15, (80 - 15) / 2, 80),  # from the role to usage
        ("vllm-0.32", 15, (60 - 15) / 2, 60),  # from the role to the finish
        ("vllm-rs", 15, (60 - 15) / 2, 60),  # as 0.32
        ("vllm-0.33", 25, (60 - 25) / 2, 60),
    ],
)
def test_vllm_counts_from_sent_and_by_chunks(
    name: str, ttft: float, tpot: float, e2el: float
) -> None:
    rows = shown(name, answer())
    assert rows["Mean TTFT (ms):"] == pytest.approx(ttft)
    assert rows["Mean TPOT (ms):"] == pytest.approx(tpot)
    assert rows["Mean E2EL (ms):"] == pytest.approx(e2el)


def test_vllm_0_11_gaps_and_peak_are_of_chunks() -> None:
    rows = shown("vllm-0.11", answer())
    assert rows["Mean ITL (ms):"] == pytest.approx(np.mean([10, 10, 20, 5]))
    assert rows["Peak output token throughput (tok/s):"] == 5
    assert rows["Total input tokens:"] == 9  # as planned; the server counted 11


def test_rust_client_counts_chunks_that_usage_does_not() -> None:
    """Usage counts wherever it stands; without it the role and the finish are tokens, and
    nothing at all is one.
    """
    unsaid = record_of(0, [(20, ROLE), (30, WORD), (40, WORD), (65, END), (95, DONE)], closed=100)
    early = record_of(
        1, [(20, ROLE), (30, usage(prompt_tokens=11, completion_tokens=30)), (40, WORD), (65, END)]
    )
    nothing = record_of(2, [(95, DONE)])
    rows = shown("vllm-rs", unsaid, early, nothing)
    assert rows["Successful requests:"] == 3
    assert rows["Total generated tokens:"] == 4 + 30 + 1
    assert rows["Total input tokens:"] == 27  # as planned; the server counted 11
    assert rows["Mean TTFT (ms):"] == pytest.approx((20 + 20 + 0) / 3)
    assert rows["Mean TPOT (ms):"] == pytest.approx((45 / 3 + 45 / 29) / 2)


def test_rust_client_prints_p90_too() -> None:
    rows = shown("vllm-rs", answer(), metric_percentiles="50,99")
    assert [label for label in rows if "ITL" in label] == [
        f"{x} ITL (ms):" for x in ("Mean", "Median", "P50", "P99", "P90")
    ]


def test_steady_state_of_the_rust_client_exceeds_what_is_possible() -> None:
    """One token a request and one request at once, 100 ms each: 10 tokens/s; role, token and
    finish count as three.
    """
    records = []
    for index in range(10):
        due, used = 100 * index, usage(prompt_tokens=9, completion_tokens=1)
        stream = [(due + 50, ROLE), (due + 51, WORD), (due + 60, END), (due + 99, used)]
        records.append(record_of(index, stream, due=due))
    rows = shown("vllm-rs", *records, max_concurrency=1)
    assert rows["Output token throughput (tok/s):"] == pytest.approx(10 / 0.999)
    assert rows["SS Output token throughput (tok/s):"] == pytest.approx(29 / 0.960)
    assert not any(
        label.startswith("SS ") for label in shown("vllm-rs", *records, max_concurrency=2)
    )
    assert not any(
        label.startswith("SS ")
        for label in shown("vllm-rs", *records, max_concurrency=1, request_rate=9.0)
    )
    assert not any(
        label.startswith("SS ") for label in shown("vllm-0.33", *records, max_concurrency=1)
    )


def test_sglang_spans_first_text_to_last_line() -> None:
    rows = shown("sglang", answer())
    assert rows["Mean TTFT (ms):"] == pytest.approx(25)
    assert rows["Mean E2E Latency (ms):"] == pytest.approx(90)
    assert rows["Mean TPOT (ms):"] == pytest.approx((90 - 25) / 2)
    assert rows["Mean ITL (ms):"] == pytest.approx(15)


def test_sglang_without_usage_counts_the_requested_length() -> None:
    record = record_of(0, [(20, WORD), (30, WORD), (40, END), (41, DONE)], planned=(9, 8))
    assert shown("sglang", record)["Total generated tokens:"] == 8


def test_sglang_completions_ignore_the_usage_chunk() -> None:
    word, end = (
        event(choices=[{"index": 0, "text": "a"}]),
        event(choices=[{"text": "", "finish_reason": "length"}]),
    )
    record = record_of(
        0, [(20, word), (30, word), (31, end), (50, usage(completion_tokens=2))], planned=(9, 2)
    )
    rows = shown("sglang", record, chat=False)
    assert rows["Successful requests:"] == 1
    assert rows["Mean E2E Latency (ms):"] == pytest.approx(31)


def test_clock_of_every_tool_includes_connecting() -> None:
    record = record_of(
        0,
        [(40, WORD), (50, WORD), (60, END), (61, usage(completion_tokens=2))],
        sent=20,
        connect=12,
    )
    for name, row in (
        ("vllm-0.33", "Mean TTFT (ms):"),
        ("vllm-rs", "Mean TTFT (ms):"),
        ("sglang", "Mean TTFT (ms):"),
    ):
        assert shown(name, record)[row] == pytest.approx(32)
    assert shown("aiperf", record)["Time to First Token (ms) avg"] == pytest.approx(32)


def test_reasoning_field_decides_what_is_a_token() -> None:
    tail = [(60, delta("stop")), (61, usage(completion_tokens=3))]
    old = record_of(0, [(20, OLD), (30, OLD), (50, WORD), *tail])
    new = record_of(0, [(20, THOUGHT), (30, THOUGHT), (50, WORD), *tail])
    assert shown("vllm-0.33", old)["Mean TTFT (ms):"] == pytest.approx(50)
    assert shown("vllm-0.33", new)["Mean TTFT (ms):"] == pytest.approx(20)
    assert shown("benchmark-runner", old)["Mean TTFT (ms):"] == pytest.approx(20)
    assert shown("benchmark-runner", new)["Mean TTFT (ms):"] == pytest.approx(50)


def test_benchmark_runner_sees_only_the_role_of_reasoning() -> None:
    """TPOT is TTFT by the tokens of usage, ITL 0, and all tokens are there at once: 2000 of them
    in half of 25 ms.
    """
    events = [
        (20, ROLE),
        *((30 + n, THOUGHT) for n in range(50)),
        (90, delta("length", reasoning="x")),
    ]
    one = record_of(0, [*events, (91, usage(completion_tokens=2000))])
    late = record_of(1, [(45, ROLE), (90, delta("stop")), (91, usage(completion_tokens=0))])
    rows = shown("benchmark-runner", one, late)
    assert rows["Median TPOT (ms):"] == pytest.approx(20 / 2000)
    assert rows["Median ITL (ms):"] == 0
    assert rows["Peak output token throughput (tok/s):"] == pytest.approx(2000 / 0.0125)


def test_aiperf_divides_by_tokens_after_the_first() -> None:
    rows = shown("aiperf", answer())
    assert rows["Time to Second Token (ms) avg"] == pytest.approx(10)
    assert rows["Request Latency (ms) avg"] == pytest.approx(55)
    assert rows["Inter Token Latency (ms) avg"] == pytest.approx(15)
    assert rows["Output Token Throughput (tokens/sec)"] == pytest.approx(3 / 0.055)


def test_whole_second_counts_more_than_a_moment() -> None:
    """Requests from 0 to 100 and 500 to 600 are never at once, but share a second."""

    def short(index: int, at: float) -> Record:
        end = [(at + 100, delta("stop")), (at + 100, usage(completion_tokens=1))]
        return record_of(index, [(at + 50, WORD), *end], due=at)

    assert shown("vllm-0.32", short(0, 0), short(1, 500))["Peak concurrent requests:"] == 2
    assert shown("benchmark-runner", short(0, 0), short(1, 500))["Peak concurrent requests:"] == 1


def test_cut_and_failed_streams_are_successes_to_tools() -> None:
    cut = record_of(0, [(20, WORD), (30, WORD)])
    erred = record_of(1, [(20, WORD), (30, event(error={"message": "no"}))])
    assert (cut.outcome, erred.outcome) == (Outcome.TRUNCATED, Outcome.STREAM_ERROR)
    for name in ("vllm-0.11", "vllm-0.33", "vllm-rs", "sglang", "benchmark-runner"):
        assert shown(name, cut, erred)["Successful requests:"] == 2
    assert shown("aiperf", cut, erred)["Request Count (requests)"] == 2
    assert (
        shown("vllm-0.33", failed(0, Outcome.TRUNCATED), failed(1, Outcome.STATUS))[
            "Failed requests:"
        ]
        == 2
    )


@pytest.mark.parametrize("name", TOOLS)
def test_abandoned_requests_are_left_out_with_a_note(name: str) -> None:
    run, tool = run_of([answer(), failed(1, Outcome.STALLED)], **ASKED), TOOLS[name]
    rows = {row.label: row for row in rows_of(tool, run, frozenset(tool.rules))}
    count = rows.get("Successful requests:") or rows["Request Count (requests)"]
    assert (count.value, count.notes) == (1, (UNKNOWN,))
    assert "Failed requests:" not in rows or rows["Failed requests:"].value == 0


def test_several_targets_are_one_run() -> None:
    other = answer()
    other.target = 1
    urls = ("http://a:1", "http://b:1")
    assert shown("vllm-0.33", answer(), other, base_url=urls)["Successful requests:"] == 2


def test_events_within_a_tenth_of_a_ms_are_merged() -> None:
    at, weights = merged(
        np.array([0.00015, 0.0, 0.00005, 0.0001, 1.0]), np.array([3.0, 1.0, 2.0, 4.0, 1.0])
    )
    assert at.tolist() == [0.0, 0.00015, 1.0]
    assert weights.tolist() == [7.0, 3.0, 1.0]


def test_rate_is_weight_over_half_the_time_to_neighbours() -> None:
    found = rates(np.array([0.0, 1.0, 4.0]), np.array([1.0, 6.0, 3.0]))
    assert found is not None
    assert found.values.tolist() == [1 / 0.5, 6 / 2.0, 3 / 1.5]
    assert found.mean == pytest.approx(10 / 4)
    assert found.max == 3.0
    assert rates(np.array([1.0, 1.0]), np.array([1.0, 1.0])) is None


def test_concurrency_between_two_times() -> None:
    found = concurrency(np.array([0.0, 1.0]), np.array([2.0, 3.0]), 0.0, 3.0)
    assert found is not None
    assert (found.mean, found.max) == (pytest.approx(4 / 3), 2.0)
    assert concurrency(np.array([]), np.array([]), 0.0, 1.0) is None


def test_percentile_is_interpolated_or_observed() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    assert Distribution(values).percentile(75) == 2.5
    assert Distribution(values, weights).percentile(50) == np.percentile([1, 1, 2, 3], 50)
    assert Distribution(values, weights, steps=True).percentile(50) == 1.0
    assert Distribution(values, weights).mean == pytest.approx(7 / 4)
    assert Distribution(np.array([])).percentile(50) is None
