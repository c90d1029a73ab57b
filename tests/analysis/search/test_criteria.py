"""Criteria of an SLO: separate limits, joint limits, and what requests show of them."""

import numpy as np
import pytest

from loadgen.analysis.search.criteria import (
    GapShare,
    MeanLimit,
    RequestShare,
    joint_criterion,
    separate_criteria,
)
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from tests.helpers import run_facts

ON = RunSettings()


def sample(text: str, *records):
    return separate_criteria(text)[0].sample(records, ON)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("ttft_p99<500ms", [RequestShare]),
        ("ttft_p99<500ms,tpot_p50<50ms,e2el_median<1s", [RequestShare, RequestShare, RequestShare]),
        ("error_rate<1%", [RequestShare]),
        ("itl_p99<50ms,error_rate<2%", [GapShare, RequestShare]),
        ("ttft_mean<500ms,ttfo_p95<1s", [MeanLimit, RequestShare]),
    ],
)
def test_each_limit_is_a_criterion(text, kinds):
    found = separate_criteria(text)
    assert [type(each) for each in found] == kinds
    assert [each.text for each in found] == text.split(",")


def test_percentile_is_a_share_of_requests():
    """That the p75 TTFT is below 25 ms is that three of four are."""
    records = [run_facts.steady(index, ttft=ttft) for index, ttft in enumerate((10, 20, 24, 400))]
    found = sample("ttft_p75<25ms", *records)
    assert found.numerator.tolist() == [1, 1, 1, 0]
    assert (found.value, found.threshold) == (0.75, 0.75)


def test_failed_request_meets_no_share():
    records = run_facts.answered(), run_facts.failed(outcome=Outcome.TRUNCATED)
    assert sample("ttft_p99<1s", *records).numerator.tolist() == [1, 0]
    assert sample("error_rate<1%", *records).numerator.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "part", "of"),
    [
        ("icl_p99<10ms", 0, 2),
        ("icl_p99<=10ms", 2, 2),
        ("itl_p50<10ms", 0, 2),
        ("icl_mean<5ms", 20.0, 2),
    ],
)
def test_gaps_are_summed_per_request(text, part, of):
    """An answer at 20, 30 and 40 ms has two gaps; one that failed has none that count."""
    found = sample(text, run_facts.answered(), run_facts.failed(outcome=Outcome.TRUNCATED))
    assert found.numerator.tolist() == [part, 0]
    assert found.denominator.tolist() == [of, 0]


@pytest.mark.parametrize("metric", ["ttft", "tpot", "e2el"])
def test_mean_is_over_requests_with_a_value(metric):
    one_token = run_facts.answered(tokens=[20])
    found = sample(
        f"{metric}_mean<1s",
        run_facts.answered(),
        one_token,
        run_facts.failed(outcome=Outcome.TRUNCATED),
    )
    assert found.denominator.tolist() == [1, 0 if metric == "tpot" else 1, 0]
    assert found.is_mean
    assert found.value == pytest.approx({"ttft": 20.0, "tpot": 10.0, "e2el": 30.0}[metric])


@pytest.mark.parametrize("text", ["ttft_mean<1s", "itl_p99<50ms,icl_mean<10ms"])
def test_error_rate_is_limited_by_default(text):
    assert [each.text for each in separate_criteria(text)] == [*text.split(","), "error_rate<1%"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ttft_max<1s", "'ttft_max<1s': no number of requests can show a maximum; write ttft_p99"),
        ("itl_max<1s", "'itl_max<1s': no number of requests can show a maximum; write itl_p99"),
        ("e2el_p0<1s", "'e2el_p0<1s': every request meets it; write e2el_p99"),
        (
            "error_rate<=0",
            "'error_rate<=0': no number of requests can show this; write error_rate<1%",
        ),
    ],
)
def test_undecidable_limit_is_refused(text, why):
    with pytest.raises(BadInput) as refused:
        separate_criteria(text)
    assert str(refused.value) == f"--slo: {why}"


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("ttft_p99<1s", 786),
        ("itl_p99<1s", 786),
        ("ttft_p95<1s", 151),
        ("ttft_p50<1s", 100),
        ("ttft_mean<1s", 100),
    ],
)
def test_min_requests_can_show_the_limit(text, enough):
    criterion = separate_criteria(text)[0]
    assert criterion.min_requests == enough
    all_good = [run_facts.steady(index, ttft=5) for index in range(enough)]
    assert criterion.sample(all_good, ON).met(1.0) is True


def test_sample_has_one_number_per_request():
    found = sample("itl_p99<50ms", *[run_facts.answered()] * 7)
    assert found.numerator.shape == found.denominator.shape == (7,)
    assert found.numerator.dtype == np.float64


def is_good(record, text, settings=ON):
    """Whether a request meets all limits together."""
    return RequestShare(
        text, tuple(limit for limit in slo.parse(text) if limit.percentile is not None), 0.99
    ).is_good(record, settings)


class TestIsGood:
    @pytest.mark.parametrize(
        ("text", "good"),
        [
            ("ttft_p99<21ms", True),
            ("ttft_p99<20ms", False),
            ("ttft_p99<=20ms", True),
            ("tpot_p99<=10ms", True),
            ("tpot_p99<10ms", False),
            ("e2el_p99<=40ms", True),
            ("e2el_p99<40ms", False),
            ("ttft_p99<30ms,e2el_p99<40ms", False),
            ("ttfo_p99<=20ms", True),
            ("error_rate<1%", True),
        ],
    )
    def test_answer_is_good_within_its_limits(self, text: str, good: bool) -> None:
        assert is_good(run_facts.answered(), text) is good

    def test_latencies_start_at_due_or_sent(self) -> None:
        late = run_facts.answered(ready=15)
        assert not is_good(late, "ttft_p99<10ms")
        assert is_good(late, "ttft_p99<10ms", RunSettings(latency_from="sent"))

    def test_failed_request_is_not_good(self) -> None:
        assert not is_good(run_facts.failed(outcome=Outcome.TRUNCATED), "error_rate<1%")

    def test_single_token_has_no_tpot(self) -> None:
        assert is_good(run_facts.answered(tokens=[20]), "tpot_p99<1us")

    def test_request_without_answer_has_no_ttfo(self) -> None:
        assert not is_good(run_facts.answered(tokens=[], reasoning=[20, 30]), "ttfo_p99<1s")


@pytest.mark.parametrize(
    ("text", "limited", "attainment"),
    [
        ("ttft_p99<500ms", ["ttft"], 0.99),
        ("ttft_p95<500ms,tpot_p95<50ms,e2el_p95<=10s", ["ttft", "tpot", "e2el"], 0.95),
        ("ttfo_median<1s", ["ttfo"], 0.5),
        ("e2el_p99.9<1s", ["e2el"], 0.999),
        ("ttft_p99<500ms,error_rate<1%", ["ttft"], 0.99),
        ("ttft_p99<500ms,error_rate<5%", ["ttft"], 0.99),
        ("error_rate<2%", [], 0.98),
    ],
)
def test_joint_limits_are_one_share_of_requests(
    text: str, limited: list[str], attainment: float
) -> None:
    found = joint_criterion(text)
    assert [limit.metric for limit in found.limits] == limited
    assert found.attainment == pytest.approx(attainment)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ttft_mean<500ms", "a mean is not a share of requests; write ttft_p99"),
        ("ttft_max<500ms", "no number of requests can show a maximum; write ttft_p99"),
        ("ttft_p0<500ms", "every request meets it; write ttft_p99"),
        ("itl_p99<50ms", "a request has many gaps; limit its tpot or its e2el"),
        ("icl_p99<50ms", "a request has many gaps; limit its tpot or its e2el"),
        ("error_rate<=0", "no number of requests can show this; write error_rate<1%"),
        ("error_rate<=100%", "no number of requests can show this; write error_rate<1%"),
        (
            "ttft_p99<1s,tpot_p95<50ms",
            "limits at p95 and p99, but goodput has a single share; give all latencies the same",
        ),
        (
            "ttft_p95<1s,error_rate<1%",
            "'error_rate<1%' is stricter than the percentile 95; give latencies the percentile 99",
        ),
    ],
)
def test_joint_limit_that_is_no_share_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        joint_criterion(text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("text", "enough"), [("ttft_p99<1s", 786), ("ttft_p95<1s", 151), ("ttft_median<1s", 100)]
)
def test_min_requests_are_twice_those_that_show_the_share(text: str, enough: int) -> None:
    """If all n of them are good, Wilson's bound is n / (n + 1.992**2)."""
    criterion = joint_criterion(text)
    assert criterion.min_requests == enough
    half = enough / 2
    assert half / (half + 1.992**2) >= criterion.attainment - 1e-4
