"""A condition that ends a run is a metric of an SLO, or a number of errors, beyond a value; all else is refused."""

import re
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.slo import StopCondition
from loadgen.errors import BadInput


def test_a_condition_holds_where_its_limit_is_not_met() -> None:
    above, reached = StopCondition.parse("ttft_p99 > 2s over 10s, error_rate>=5%")
    assert (above.text, above.over_s, above.limit.threshold) == ("ttft_p99>2s over 10s", 10.0, 2000.0)
    assert (above.limit.met_by(2000.0), above.limit.met_by(2000.1)) == (True, False)
    assert (reached.text, reached.over_s) == ("error_rate>=5%", None)
    assert (reached.limit.met_by(0.049), reached.limit.met_by(0.05)) == (True, False)


def test_errors_are_counted() -> None:
    (condition,) = StopCondition.parse("errors>=100")
    assert (condition.limit.met_by(99), condition.limit.met_by(100)) == (True, False)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("ttft_p99>1s", 100), ("ttft_p99.9>1s", 1000), ("e2el_p90>1s", 10), ("tpot_median>1s", 2)),
        *(("icl_mean>1s", 1), ("e2el_max>1s", 1), ("error_rate>1%", 30), ("errors>1", 0)),
    ],
)
def test_so_many_values_are_needed_to_judge_it(text: str, count: int) -> None:
    assert StopCondition.parse(text)[0].min_values == count


@pytest.mark.parametrize(
    "text",
    [
        *("", "ttft_p99", "ttft_p99<2s", "ttft>2s", "tfft_p99>2s", "ttft_p99>x", "ttft_p99>2h", "error_rate>200%"),
        *("errors>1.5", "errors>5%", "ttft_p99>2s over", "ttft_p99>2s over 0s", "ttft_p99>2s over x", "errors>1,"),
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
    [("ttft_p99>2s", 2345.6, "2346 ms"), ("error_rate>5%", 0.0625, "6.25%"), ("errors>=100 over 5s", 120, "120")],
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
        ("ttft_p99>2s over 11s", {"rate_profile": "5@10s"}, "looks back 11 s, and the run sends for 10"),
        ("ttft_p99>2s over 21s", {"num_prompts": 100, "request_rate": 5.0}, "the run sends for 20 s"),
        ("errors>100", {"num_prompts": 100}, "never holds in a run of 100 requests"),
        ("errors>=101", {"num_prompts": 100}, "never holds in a run of 100 requests"),
        ("error_rate>5%", {"num_prompts": 29}, "is judged from 30 requests on, and the run has 29"),
        ("ttft_p99.9>1s", {"num_prompts": 999}, "is judged from 1000 requests on, and the run has 999"),
        ("error_rate>100%", {}, "no rate is above 100%"),
    ],
)
def test_a_condition_that_can_never_hold_is_refused(condition: str, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=f"^--stop-when: '{re.escape(condition)}' .*{says}"):
        RunSettings(base_url="http://127.0.0.1:1", stop_when=condition, **changes).checked()


@pytest.mark.parametrize(
    ("condition", "changes"),
    [
        ("ttft_p99>2s over 10s", {"duration": 10.0, "request_rate": 5.0}),
        ("ttft_p99>2s over 21s", {"num_prompts": 100, "request_rate": 5.0, "max_concurrency": 1}),  # it may take longer
        ("ttft_p99>2s over 10m", {"num_prompts": 100}),
        ("errors>=100,errors>99", {"num_prompts": 100}),
        ("icl_p99.9>1s", {"num_prompts": 5}),  # an answer has many gaps
        ("error_rate>=100%", {"num_prompts": 30}),
        ("ttft_p99>1s", {"num_prompts": -1}),
    ],
)
def test_a_condition_that_may_hold_is_accepted(condition: str, changes: dict[str, Any]) -> None:
    RunSettings(base_url="http://127.0.0.1:1", stop_when=condition, **changes).checked()
