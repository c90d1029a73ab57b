"""The result: `vllm bench serve`'s keys and types at the top, loadgen's numbers under one key."""

import math
from datetime import datetime
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from loadgen.checks import Check
from loadgen.config.output import parse_percentiles
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.metrics.snapshot import DISTRIBUTIONS
from loadgen.report import to_json
from loadgen.report.result import RunResult
from tests.helpers.result_schema import problems
from tests.helpers.run_facts import (
    answered,
    due_at,
    failed,
    measured,
    per_event,
    result,
    steady,
    unsent,
)

# The keys of a result that `vllm bench serve --save-result` wrote, in its order, and the types of
# their values; its client in Rust adds max_model_len and input_throughput.
VLLM = {
    "date": str,
    "endpoint_type": str,
    "backend": str,
    "label": type(None),
    "model_id": str,
    "tokenizer_id": str,
    "num_prompts": int,
    "max_model_len": type(None),
    "request_rate": str,
    "burstiness": float,
    "max_concurrency": int,
    "duration": float,
    "completed": int,
    "failed": int,
    "total_input_tokens": int,
    "total_output_tokens": int,
    "request_throughput": float,
    "request_goodput": type(None),
    "input_throughput": float,
    "output_throughput": float,
    "total_token_throughput": float,
    "max_output_tokens_per_s": float,
    "max_concurrent_requests": int,
    "rtfx": float,
} | {
    f"{statistic}_{metric}_ms": float
    for metric in ("ttft", "tpot", "itl", "e2el")
    for statistic in ("mean", "median", "std", "p50", "p90", "p99")
}
VLLM_RS = {"steady_state": type(None)}  # after them; what only the client in Rust has
# What --save-detailed adds, after total_token_throughput.
VLLM_DETAILED = {
    "input_lens": int,
    "output_lens": int,
    "ttfts": float,
    "itls": list,
    "latencies": float,
    "start_times": float,
    "queue_times": float,
    "generated_texts": str,
    "errors": str,
}

AS_VLLM = RunSettings(max_concurrency=4, backend="openai-chat", metric_percentiles="50,90,99")
RUN = [steady(i, due=i * 100, ttft=20 + i, gap=10, n=5) for i in range(24)]


# -- vLLM's keys


def test_the_keys_are_vllms_in_their_order_and_then_loadgens_own():
    made = result(RUN, AS_VLLM)
    assert list(made) == [*VLLM, *VLLM_RS, "loadgen"]
    assert {key: type(made[key]) for key in VLLM} == VLLM


def test_p90_is_always_there_as_in_the_client_in_rust() -> None:
    keys = list(result(RUN, RunSettings(metric_percentiles="99.9,50")))
    assert [key for key in keys if key.endswith("_ttft_ms")] == [
        f"{name}_ttft_ms" for name in ("mean", "median", "std", "p99.9", "p50", "p90")
    ]


@pytest.mark.parametrize(
    ("strategy", "reached"),
    [("linear", {2.0: 0, 3: 2, 4: 4, 5: 6, 6: 8}), ("exponential", {2.0: 0, 3: 3, 4: 5, 5: 6})],
)
def test_a_ramp_has_vllms_keys_of_it(strategy: Any, reached: dict[float, int]) -> None:
    settings = RunSettings(ramp_up_strategy=strategy, ramp_up_start_rps=2.0, ramp_up_end_rps=6.5)
    made = result(
        [steady(0), steady(1, due=8000)], settings, schedule=due_at(0, 8000, duration=9000)
    )
    assert (made["ramp_up_strategy"], made["ramp_up_start_rps"], made["ramp_up_end_rps"]) == (
        strategy,
        2.0,
        6.5,
    )
    began = datetime.strptime(made["date"], "%Y%m%d-%H%M%S")  # noqa: DTZ007 - local time
    at = {
        each["rps"]: datetime.fromisoformat(each["timestamp"]) - began
        for each in made["rps_change_events"]
    }
    assert {rate: round(since.total_seconds()) for rate, since in at.items()} == reached
    assert problems(made) == []
    assert RunResult.from_dict(made).to_dict() == made


def test_a_ramp_that_ended_early_has_the_rates_that_it_reached() -> None:
    settings = RunSettings(ramp_up_strategy="linear", ramp_up_start_rps=2.0, ramp_up_end_rps=6.5)
    made = result(
        [steady(0), steady(1, due=2500)], settings, schedule=due_at(0, 2500, 8000, duration=9000)
    )
    assert [each["rps"] for each in made["rps_change_events"]] == [2.0, 3]


def test_details_add_vllms_lists_with_an_entry_per_request():
    made = result([*RUN, failed(24)], AS_VLLM, detailed=True)
    assert [key for key in made if key not in VLLM] == [*VLLM_DETAILED, *VLLM_RS, "loadgen"]
    for key, kind in VLLM_DETAILED.items():
        assert len(made[key]) == 25
        assert {type(value) for value in made[key]} == {kind}, key


def test_details_have_what_vllm_says_of_its_times_under_vllms_keys():
    """As `vllm bench serve` 0.33: seconds, null where it did not say, no key where it never
    did. What it names the time to first token is its prefill.
    """
    timed, silent, other = steady(1), steady(0), steady(2)
    timed.add_times({"by": "vllm", "queue": 1_500_000, "prefill": 20_000_000})
    other.add_times({"by": "envoy", "queue": 7})
    made = result([timed, silent, other], detailed=True)
    assert made["server_queue_times"] == [None, 0.0015, None]
    assert made["server_ttfts"] == [None, 0.02, None]
    assert made["loadgen"]["server_times"] == {"envoy": 1, "vllm": 1}
    assert problems(made) == []
    assert RunResult.from_dict(made).to_dict() == made
    assert (
        not {"server_queue_times", "server_ttfts"} & result([silent, other], detailed=True).keys()
    )


def test_details_are_in_the_order_of_the_schedule():
    made = result([steady(1, ttft=40), steady(0, ttft=30)], detailed=True)
    assert made["ttfts"] == [pytest.approx(0.03), pytest.approx(0.04)]


def test_vllms_latencies_are_from_sent_and_itl_is_per_event():
    made = result([answered(due=0, sent=5, tokens=[25, 45], counts={"completion_tokens": 9})])
    assert made["mean_ttft_ms"] == 20
    assert made["mean_e2el_ms"] == 40
    assert made["mean_itl_ms"] == 20
    assert made["mean_tpot_ms"] == 2.5


def test_throughput_is_over_the_time_from_first_send_to_last_byte():
    told = {"prompt_tokens": 30, "completion_tokens": 10}
    made = result(
        [
            answered(0, tokens=[100], counts=told),
            answered(1, sent=50, tokens=[500], closed=2000, counts=told),
        ]
    )
    assert made["duration"] == 2.0
    assert made["request_throughput"] == 1.0
    assert made["output_throughput"] == 10.0
    assert made["total_token_throughput"] == 40.0


def test_failed_excludes_cancelled_requests():
    records = [steady(0), failed(1), unsent(2), failed(3, Outcome.CANCELLED)]
    made = result(records, RunSettings(), scheduled=5)
    assert (made["num_prompts"], made["completed"], made["failed"]) == (5, 1, 2)
    assert (made["loadgen"]["error_rate"], made["loadgen"]["client_error_rate"]) == (2 / 3, 0)
    assert made["loadgen"]["cancelled"] == {"never_sent": 0, "in_flight": 1}


def test_client_errors_have_a_rate_of_their_own():
    records = [steady(0), failed(1), *(unsent(i, Outcome.CLIENT_ERROR) for i in (2, 3))]
    own = result(records)["loadgen"]
    assert (own["error_rate"], own["client_error_rate"]) == (0.25, 0.5)


def test_turns_after_one_that_failed_count_as_failed():
    never_due = failed(2, Outcome.CANCELLED, ready=-5_000_000)  # the stamp is 0: never
    assert result([steady(0), failed(1), never_due])["loadgen"]["error_rate"] == 2 / 3


def test_goodput_is_from_sent_in_vllms_key_and_on_the_chosen_clock_in_loadgens():
    late = [answered(i, due=0, sent=500, tokens=[520, 1500]) for i in range(3)]
    made = result(
        measured([*late, failed(3)], limits={"ttft": 10**8}), RunSettings(goodput=("ttft:100",))
    )
    # 3 of them in 1.5 s, from the failure's send to the last byte
    assert made["request_goodput"] == 2.0
    assert made["loadgen"]["rates"]["goodput_requests_per_s"] == 0.0
    assert made["loadgen"]["rates"]["good_share"] == 0.0


def test_failures_are_in_the_denominator_of_the_good_share():
    made = result(
        measured([steady(0), failed(1), unsent(2), failed(3)], limits={"ttft": 10**9}),
        RunSettings(goodput=("ttft:1000",)),
    )
    assert made["loadgen"]["rates"]["good_share"] == 0.25


def test_a_finite_rate_is_a_number_and_an_infinite_one_a_word():
    assert result(RUN, RunSettings(request_rate=2.5))["request_rate"] == 2.5
    assert result(RUN, RunSettings(request_rate=5.0, burstiness=math.inf))["burstiness"] == "inf"


def test_metadata_cannot_replace_what_names_the_run():
    date = result(RUN, RunSettings())["date"]
    # Of records: a run refuses them.
    made = result(RUN, RunSettings(metadata=("date=2026/11/22", "model_id=other")))
    assert (made["date"], made["model_id"]) == (date, result(RUN, RunSettings())["model_id"])


def test_metadata_stands_among_vllms_keys_and_cannot_replace_what_was_measured():
    made = result(RUN, RunSettings(metadata=("gpu= H100 ", "note=a=b", "duration=1", "loadgen=x")))
    assert (made["gpu"], made["note"]) == ("H100", "a=b")
    assert made["duration"] > 1
    assert made["loadgen"]["schema"] == 1


def test_the_tokenizer_is_the_model_unless_given():
    assert result(RUN)["tokenizer_id"] == "org/tiny"
    assert result(RUN, RunSettings(tokenizer="other"))["tokenizer_id"] == "other"


# -- unmeasured


def test_unmeasured_values_are_null_not_zero():
    made = result([])
    for key in VLLM:
        if key.endswith(("_ms", "throughput")):
            assert made.get(key) is None, key
    own = made["loadgen"]
    assert own["error_rate"] is own["tpot_token_weighted_ms"] is None
    assert set(own["rates"].values()) == {None}
    assert own["tokens"]["output_counted_by"] == "n/a"
    for name in DISTRIBUTIONS:
        summary = own["latency_ms"][name]
        assert summary.pop("count") == 0
        assert set(summary.values()) == {None}, name


def test_replies_of_one_token_leave_tpot_and_itl_unmeasured():
    made = result([steady(n=1)])
    assert (made["mean_tpot_ms"], made["p99_tpot_ms"], made["mean_itl_ms"]) == (None, None, None)
    assert made["mean_ttft_ms"] == 20


def test_uncached_input_is_unmeasured_unless_the_server_counts_cached_tokens():
    assert result(RUN)["loadgen"]["rates"]["uncached_input_tokens_per_s"] is None
    told = {
        "prompt_tokens": 100,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    made = result([answered(tokens=[100], closed=500, counts=told)])
    assert made["loadgen"]["rates"]["uncached_input_tokens_per_s"] == 72.0


# -- loadgen's own


def test_latencies_are_summed_up_in_milliseconds_with_the_percentiles_asked():
    summary = result(RUN, RunSettings(metric_percentiles="25,99.9"))["loadgen"]["latency_ms"][
        "ttft_due"
    ]
    assert list(summary) == [
        "count",
        "mean",
        "std",
        "min",
        "max",
        "p25",
        "p50",
        "p90",
        "p99",
        "p99.9",
    ]
    assert (summary["count"], summary["mean"], summary["min"], summary["max"]) == (
        24,
        31.5,
        20.0,
        43.0,
    )
    assert summary["p50"] == pytest.approx(31.5, rel=1e-3)


def test_token_weighted_tpot_is_time_over_tokens():
    records = [answered(0, tokens=[i * 10 for i in range(1, 102)]), answered(1, tokens=[20, 120])]
    made = result(records)
    assert made["loadgen"]["tpot_token_weighted_ms"] == pytest.approx(1100 / 101)
    assert made["mean_tpot_ms"] == 55.0


@pytest.mark.parametrize(
    ("records", "counted_by"),
    [
        ([answered(tokens=[20], counts={"completion_tokens": 1})], "usage"),
        ([answered(tokens=[20])], "events"),
        (
            [answered(0, tokens=[20]), answered(1, tokens=[20], counts={"completion_tokens": 1})],
            "usage and events",
        ),
        ([failed()], "n/a"),
    ],
)
def test_the_source_of_the_token_count_is_named(records, counted_by):
    assert result(records)["loadgen"]["tokens"]["output_counted_by"] == counted_by


def test_limits_are_judged_on_the_chosen_clock():
    late = [answered(due=0, ready=500, sent=500, tokens=[520, 530])]  # it waited for a slot
    for clock, value, met in (("due", 520.0, False), ("sent", 20.0, True)):
        (row,) = result(late, RunSettings(slo="ttft_max<100ms", latency_from=clock))["loadgen"][
            "slo"
        ]
        assert (row["value"], row["met"]) == (value, met)


def test_limits_on_gaps_are_on_those_between_tokens_or_on_those_between_events():
    rows = result([per_event((20, 1), (40, 5))], RunSettings(slo="itl_max<6ms,icl_max<6ms"))[
        "loadgen"
    ]["slo"]
    itl, icl, failures = rows
    assert (failures["limit"], failures["met"]) == ("error_rate<1%", True)
    assert [(row["value"], row["met"]) for row in (itl, icl)] == [(5.0, True), (20.0, False)]


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("ttft_mean<1s", 31.5),
        ("ttft_max<1s", 43.0),
        ("ttfo_p0<1s", 20.0),
        ("e2el_max<1s", 83.0),
        ("tpot_mean<1s", 10.0),
        ("itl_median<1s", 10.0),
        ("icl_p99<1s", 10.0),
        ("error_rate<50%", 0.0),
    ],
)
def test_every_metric_and_statistic_of_a_limit_is_looked_up(limit, value):
    row, *_ = result(RUN, RunSettings(slo=limit))["loadgen"]["slo"]
    assert row["value"] == pytest.approx(value, rel=1e-3)
    assert row["met"] is True


@pytest.mark.parametrize(
    ("limit", "beyond"),
    [
        ("ttft_p99<1s", True),
        ("ttft_p80<1s", False),
        ("e2el_p81<1s", True),
        ("tpot_max<1s", True),
        ("tpot_p80<1s", False),
        ("ttft_mean<1s", False),
        ("icl_p99<1s", False),
    ],
)
def test_a_request_that_failed_is_beyond_every_limit(limit, beyond):
    records = [*(steady(n) for n in range(8)), failed(8), unsent(9), failed(10, Outcome.CANCELLED)]
    row, *more = result(records, RunSettings(slo=limit))["loadgen"]["slo"]
    assert (row["beyond"], row["met"]) == (beyond, not beyond)
    # error_rate<1%, where failures have no such latency
    assert all(each["met"] is False for each in more)


def test_a_percentile_below_the_failures_is_that_of_all_requests():
    records = [*(steady(n, ttft=10 + n) for n in range(8)), failed(8), failed(9)]
    row, *_ = result(records, RunSettings(slo="ttft_p50<1s"))["loadgen"]["slo"]
    assert row["value"] == pytest.approx(14.5, rel=1e-3)


def test_single_failure_of_a_hundred_keeps_the_p99():
    records = [*(steady(n) for n in range(99)), failed(99)]
    row, *_ = result(records, RunSettings(slo="ttft_p99<1s"))["loadgen"]["slo"]
    assert (row["value"], row["met"]) == (pytest.approx(20, rel=1e-3), True)


def test_the_verdict_follows_from_the_checks_which_are_all_kept():
    checks = [
        Check("x", True, "1", "2", "do", group="A"),
        Check("y", False, "1", "2", "do", group="B"),
    ]
    own = result(RUN, checks=iter(checks))["loadgen"]
    assert own["verdict"] == "SUSPECT"
    assert own["checks"] == [check.to_dict() for check in checks]


def test_histograms_can_be_read_back_and_merged():
    snapshot = measured(RUN)
    kept = result(snapshot)["loadgen"]["histograms"]
    assert {name: Histogram.from_dict(data) for name, data in kept.items()} == snapshot.histograms


def test_a_distribution_is_a_histogram_of_hdrhistogram():
    snapshot = measured(RUN)
    histogram = RunResult.from_dict(result(snapshot)).histogram("ttft_due")
    assert isinstance(histogram, HdrHistogram)
    assert histogram.get_total_count() == snapshot.histograms["ttft_due"].count
    assert histogram.get_max_value() == pytest.approx(snapshot.histograms["ttft_due"].max, rel=1e-3)


def test_the_result_is_one_line_of_json_without_nan():
    for records in (RUN, [], [failed(0, Outcome.STATUS, detail="a\nb")]):
        text = to_json(result(records))
        assert "\n" not in text
        assert "NaN" not in text
        assert "Infinity" not in text


def test_percentiles_are_read_in_the_order_given():
    assert parse_percentiles("99,50,99.9") == [99.0, 50.0, 99.9]
