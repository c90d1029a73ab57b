"""Limits of an SLO: parsing, judging, and values that were not measured; conditions that end a
run.
"""

import math
import re
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.slo import (
    LATENCY_METRICS,
    StopCondition,
    distribution,
    judge,
    parse,
    parse_goodput,
    required_limits,
    split_name,
)
from loadgen.errors import BadInput
from loadgen.metrics.snapshot import LATENCIES


@pytest.mark.parametrize(
    ("text", "metric", "statistic", "inclusive", "most"),
    [
        ("ttft_p99<500ms", "ttft", "p99", False, 500),
        ("ttft_p99.9<=0.5s", "ttft", "p99.9", True, 500),
        ("itl_median<250us", "itl", "median", False, 0.25),
        ("icl_max<80", "icl", "max", False, 80),
        ("tpot_mean<12.5ms", "tpot", "mean", False, 12.5),
        ("ttfo_p50 < 1 s", "ttfo", "p50", False, 1000),
        ("e2el_p0<1ms", "e2el", "p0", False, 1),
        ("error_rate<1%", "error", "rate", False, 0.01),
        ("error_rate<=0.05", "error", "rate", True, 0.05),
        ("error_rate<=100%", "error", "rate", True, 1),
    ],
)
def test_a_limit_is_read_in_milliseconds_or_as_a_share(text, metric, statistic, inclusive, most):
    (limit,) = parse(text)
    assert (limit.metric, limit.statistic, limit.inclusive) == (metric, statistic, inclusive)
    assert limit.threshold == pytest.approx(most)
    assert limit.text == text


def test_a_limit_may_have_the_name_that_tables_show():
    (limit,) = parse("TTFT p99 < 500 ms")
    assert (limit.metric, limit.statistic, limit.threshold) == ("ttft", "p99", 500)


def test_limits_are_separated_by_commas():
    assert [limit.text for limit in parse("ttft_p99<1s, error_rate<1%")] == [
        "ttft_p99<1s",
        "error_rate<1%",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "speed_p99<5ms",
        "ttft<5ms",
        "ttft_p100<5ms",
        "ttft_p<5ms",
        "ttft_p99>5ms",
        "ttft_p99=5ms",
        "ttft_p99<",
        "ttft_p99<5min",
        "ttft_p99<1.2.3ms",
        "ttft_p99<.",
        "ttft_p99<-5ms",
        "ttft_p99<5%",
        "ttft_rate<5%",
        "error_p99<5ms",
        "error_rate<5ms",
        "error_rate<5",
        "error_rate<200%",
        "ttft_p99<5ms,",
        "ttft_p99<5ms;tpot_p99<5ms",
    ],
)
def test_invalid_limit_is_refused_in_one_line(text):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert caught.value.field == "--slo"
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "speed_p99<5ms",
            "unknown metric in {}; choose from ttft, ttfo, tpot, itl, icl, e2el, error_rate",
        ),
        (
            "speed<5ms",
            "unknown metric in {}; choose from ttft, ttfo, tpot, itl, icl, e2el, error_rate",
        ),
        (
            "ttft_best<5ms",
            "unknown statistic in {}; choose from p50, p90, p99, p99.9, ..., mean, median, max",
        ),
        ("ttft_p99<5min", "unknown unit in {}; choose from us, ms, s, or none for ms"),
        ("ttft_p99<5%", "unknown unit in {}; choose from us, ms, s, or none for ms"),
        ("error_rate<5ms", "unknown unit in {}; choose from %, or none for a share"),
    ],
)
def test_unknown_name_is_refused_with_the_known_ones(text, said):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert str(caught.value).startswith(f"--slo: {said.format(repr(text))}")


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("ttft_p99<500ms", 499.9, True),
        ("ttft_p99<500ms", 500.0, False),
        ("ttft_p99<=500ms", 500.0, True),
        ("ttft_p99<=500ms", 500.1, False),
        ("ttft_p99<500ms", None, False),
        ("error_rate<=0%", 0.0, True),
    ],
)
def test_limit_is_met_by_measured_values_within_it(text, value, met):
    (row,) = judge(parse(text), lambda metric, statistic: (value, None))
    assert row == {
        "limit": text,
        "value": value,
        "client_error_ms": None,
        "beyond": False,
        "met": met,
    }


@pytest.mark.parametrize(
    ("value", "met"), [(498.9, True), (499.1, None), (500.9, None), (501.1, False)]
)
def test_limit_within_the_client_error_is_neither_met_nor_missed(value, met):
    (row,) = judge(parse("ttft_p99<500ms"), lambda metric, statistic: (value, 1.0))
    assert (row["met"], row["client_error_ms"]) == (met, 1.0)


def test_value_among_failures_is_beyond_every_limit():
    (row,) = judge(parse("ttft_p99<500ms"), lambda metric, statistic: (math.inf, None))
    assert row == {
        "limit": "ttft_p99<500ms",
        "value": None,
        "client_error_ms": None,
        "beyond": True,
        "met": False,
    }


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("ttft_p50<1s", []),
        ("ttft_max<1s", []),
        ("tpot_mean<1s,error_rate<5%", []),
        ("tpot_mean<1s", ["error_rate<1%"]),
        ("itl_p99<50ms,icl_max<1s", ["error_rate<1%"]),
    ],
)
def test_failures_are_limited_unless_the_slo_does(text, more):
    assert [limit.text for limit in required_limits(text)] == [*text.split(","), *more]


def test_each_limit_is_judged_by_its_own_statistic():
    known = {("ttft", "p99"): 10.0, ("error", "rate"): 0.5}
    rows = judge(
        parse("ttft_p99<20ms,error_rate<1%"),
        lambda metric, statistic: (known[metric, statistic], None),
    )
    assert [(row["value"], row["met"]) for row in rows] == [(10.0, True), (0.5, False)]


@pytest.mark.parametrize(
    ("text", "percentile"),
    [
        ("ttft_p99.9<1s", 99.9),
        ("ttft_p5<1s", 5),
        ("ttft_median<1s", 50),
        ("ttft_mean<1s", None),
        ("ttft_max<1s", None),
        ("error_rate<1%", None),
    ],
)
def test_a_limit_knows_which_percentile_it_is_on(text, percentile):
    (limit,) = parse(text)
    assert limit.percentile == percentile


def test_limits_apply_to_the_chosen_clock_and_gap():
    assert [distribution(metric, "due") for metric in ("ttft", "ttfo", "e2el")] == [
        "ttft_due",
        "ttfo_due",
        "e2el_due",
    ]
    assert distribution("ttft", "sent") == "ttft_sent"
    assert [distribution(metric, "due") for metric in ("itl", "icl", "tpot")] == [
        "itl",
        "icl",
        "tpot",
    ]
    assert {distribution(metric, "sent") for metric in LATENCY_METRICS} <= set(LATENCIES)


def test_goodput_limits_are_milliseconds():
    assert parse_goodput(("ttft:200", "tpot:0.5", "e2el:5e3")) == {
        "ttft": 200_000_000,
        "tpot": 500_000,
        "e2el": 5_000_000_000,
    }
    assert parse_goodput(()) == {}


@pytest.mark.parametrize(
    "pair",
    [
        "ttft",
        "ttft:",
        "ttft:fast",
        "ttft:-1",
        "ttft:nan",
        "ttft:inf",
        "itl:5",
        ":5",
        "",
        "ttft=5",
        "ttft:1:2",
    ],
)
def test_invalid_goodput_limit_is_refused(pair):
    with pytest.raises(BadInput) as caught:
        parse_goodput(("tpot:50", pair))
    assert caught.value.field == "--goodput"
    assert repr(pair) in caught.value.problem


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ttft_p99.9", ("ttft", "p99.9")),
        ("icl_mean", ("icl", "mean")),
        ("error_rate", None),
        ("ttft", None),
        ("ttft_p101", None),
        ("lag_p99", None),
    ],
)
def test_a_latency_and_its_statistic_have_one_name(name, found):
    assert split_name(name) == found


def test_a_metric_without_a_statistic_is_told_which_to_add():
    with pytest.raises(BadInput) as refused:
        parse("ttft<500ms")
    assert refused.value.remedy == "write for example ttft_p99<500ms"


def test_a_condition_holds_where_its_limit_is_not_met() -> None:
    above, reached = StopCondition.parse("ttft_p99 > 2s over 10s, error_rate>=5%")
    assert (above.text, above.over_s, above.limit.threshold) == (
        "ttft_p99>2s over 10s",
        10.0,
        2000.0,
    )
    assert (above.limit.met_by(2000.0), above.limit.met_by(2000.1)) == (True, False)
    assert (reached.text, reached.over_s) == ("error_rate>=5%", None)
    assert (reached.limit.met_by(0.049), reached.limit.met_by(0.05)) == (True, False)


def test_errors_are_counted() -> None:
    (condition,) = StopCondition.parse("errors>=100")
    assert (condition.limit.met_by(99), condition.limit.met_by(100)) == (True, False)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(
            ("ttft_p99>1s", 100),
            ("ttft_p99.9>1s", 1000),
            ("e2el_p90>1s", 10),
            ("tpot_median>1s", 2),
        ),
        *(("icl_mean>1s", 1), ("e2el_max>1s", 1), ("error_rate>1%", 30), ("errors>1", 0)),
    ],
)
def test_so_many_values_are_needed_to_judge_it(text: str, count: int) -> None:
    assert StopCondition.parse(text)[0].min_values == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ttft_p99",
        "ttft_p99<2s",
        "ttft>2s",
        "tfft_p99>2s",
        "ttft_p99>x",
        "ttft_p99>2h",
        "error_rate>200%",
        "errors>1.5",
        "errors>5%",
        "ttft_p99>2s over",
        "ttft_p99>2s over 0s",
        "ttft_p99>2s over x",
        "errors>1,",
        *("ttft_p99>2s over 100ms", "ttft_p99>>2s", "errors_p99>1"),
        *("errors>-1", "errors>=0", "ttft_p99>=0s"),
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--stop-when"):
        StopCondition.parse(text)


def test_times_of_tokens_are_refused_where_there_are_none() -> None:
    settings = RunSettings(backend="openai-embeddings", stop_when="ttft_p99>2s")
    with pytest.raises(BadInput, match="--stop-when"):
        settings.checked()
    assert settings.replace(stop_when="e2el_p99>2s").checked()


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("ttft_p99>2s", 2345.6, "2346 ms"),
        ("error_rate>5%", 0.0625, "6.25%"),
        ("errors>=100 over 5s", 120, "120"),
    ],
)
def test_a_value_is_shown_with_the_unit_of_its_limit(text: str, value: float, shown: str) -> None:
    assert StopCondition.parse(text)[0].with_unit(value) == shown


@pytest.mark.parametrize(
    ("condition", "changes", "says"),
    [
        (
            "ttft_p99>2s over 11s",
            {"duration": 10.0, "request_rate": 5.0},
            "looks back 11 s, and the run sends for 10",
        ),
        (
            "ttft_p99>2s over 11s",
            {"rate_profile": "5@10s"},
            "looks back 11 s, and the run sends for 10",
        ),
        (
            "ttft_p99>2s over 21s",
            {"num_prompts": 100, "request_rate": 5.0},
            "the run sends for 20 s",
        ),
        ("errors>100", {"num_prompts": 100}, "never holds in a run of 100 requests"),
        ("errors>=101", {"num_prompts": 100}, "never holds in a run of 100 requests"),
        ("error_rate>5%", {"num_prompts": 29}, "is judged from 30 requests on, and the run has 29"),
        (
            "ttft_p99.9>1s",
            {"num_prompts": 999},
            "is judged from 1000 requests on, and the run has 999",
        ),
        ("error_rate>100%", {}, "no rate is above 100%"),
    ],
)
def test_a_condition_that_can_never_hold_is_refused(
    condition: str, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=f"^--stop-when: '{re.escape(condition)}' .*{says}"):
        RunSettings(base_url="http://127.0.0.1:1", stop_when=condition, **changes).checked()


@pytest.mark.parametrize(
    ("condition", "changes"),
    [
        ("ttft_p99>2s over 10s", {"duration": 10.0, "request_rate": 5.0}),
        # it may take longer
        ("ttft_p99>2s over 21s", {"num_prompts": 100, "request_rate": 5.0, "max_concurrency": 1}),
        ("ttft_p99>2s over 10m", {"num_prompts": 100}),
        ("errors>=100,errors>99", {"num_prompts": 100}),
        ("icl_p99.9>1s", {"num_prompts": 5}),  # an answer has many gaps
        ("error_rate>=100%", {"num_prompts": 30}),
        ("ttft_p99>1s", {"num_prompts": -1}),
    ],
)
def test_a_condition_that_may_hold_is_accepted(condition: str, changes: dict[str, Any]) -> None:
    RunSettings(base_url="http://127.0.0.1:1", stop_when=condition, **changes).checked()
