"""What goodput makes of an SLO, and how finely and with how many requests it is looked for."""

import pytest

from loadgen.errors import BadInput
from loadgen.tuning.spec.limits import Effort, joint
from tests.helpers.study_files import as_yaml, read


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
def test_limits_at_a_percentile_are_what_that_share_of_requests_must_meet(
    text: str, limited: list[str], attainment: float
) -> None:
    found = joint(text)
    assert [limit.metric for limit in found.each] == limited
    assert found.attainment == pytest.approx(attainment)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ttft_mean<500ms", "a mean is not a share of requests; write ttft_p99"),
        ("ttft_max<500ms", "no number of requests shows a maximum; write ttft_p99"),
        ("ttft_p0<500ms", "it is met by any request; write ttft_p99"),
        ("itl_p99<50ms", "it limits gaps, and a request has many of them; limit tpot or e2el"),
        ("icl_p99<50ms", "it limits gaps, and a request has many of them; limit tpot or e2el"),
        ("error_rate<=0", "no number of requests shows that; write error_rate<1%"),
        ("error_rate<=100%", "no number of requests shows that; write error_rate<1%"),
        ("ttft_p99<1s,tpot_p95<50ms", "limits at p95 and p99, and goodput has one share; give all latencies the same"),
        (
            "ttft_p95<1s,error_rate<1%",
            "'error_rate<1%' is stricter than the percentile 95; give latencies the percentile 99",
        ),
    ],
)
def test_what_no_share_of_requests_says_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        joint(text)
    assert why in str(refused.value)


def test_a_study_that_says_so_is_refused_where_it_stands(tmp_path) -> None:
    objective = {"workload": "short", "metric": "goodput", "slo": "ttft_mean<500ms"}
    with pytest.raises(
        BadInput, match=r"study.yaml:\d+: objective: 'ttft_mean<500ms' is not a limit for goodput: a mean"
    ):
        read(tmp_path, as_yaml(objective=objective))
    assert read(tmp_path, as_yaml(objective=objective | {"metric": "e2e_p50"})).study.objective.slo


@pytest.mark.parametrize(("text", "enough"), [("ttft_p99<1s", 786), ("ttft_p95<1s", 151), ("ttft_median<1s", 100)])
def test_a_run_has_twice_the_requests_that_can_show_the_share(text: str, enough: int) -> None:
    """If all n of them are good, Wilson's bound is n / (n + 1.992**2)."""
    limits = joint(text)
    assert limits.enough == enough
    half = enough / 2
    assert half / (half + 1.992**2) >= limits.attainment - 1e-4


@pytest.mark.parametrize(
    ("least_effect", "resolution", "runs"),
    [(0.0, 0.01, (9, 22)), (0.01, 0.01, (9, 22)), (0.02, 0.02, (8, 20)), (0.05, 0.05, (6, 16)), (0.2, 0.05, (6, 16))],
)
def test_the_search_is_as_fine_as_the_effect_that_is_looked_for(
    least_effect: float, resolution: float, runs: tuple[int, int]
) -> None:
    effort = Effort.for_effect(least_effect)
    assert effort.resolution == resolution
    assert (effort.min_runs, effort.max_runs) == runs
    gap = 2.0
    for _ in range(effort.halvings):
        gap **= 0.5
    assert gap <= 1 + resolution < gap**2
