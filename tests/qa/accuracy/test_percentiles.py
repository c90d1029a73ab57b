"""Percentiles: what the run reports beside the same percentiles of what the server wrote."""

from collections.abc import Callable

import pytest

from bench.accuracy.judging import claims
from bench.accuracy.measuring import compared
from loadgen.checks.distortion import allowed_ms
from loadgen.testing.process import Process

TPOT_SHARE = 0.002
BOUND = "each within its client error and max(0.1 ms, 1 %), mean TPOT 0.2 %"
TOKENS = 20


@pytest.mark.parametrize(
    ("shape", "requests"),
    [
        pytest.param("constant", 4_000, marks=pytest.mark.accuracy),
        pytest.param("lognormal", 200),
        pytest.param("lognormal", 4_000, marks=pytest.mark.accuracy),
        pytest.param("bimodal", 4_000, marks=pytest.mark.accuracy),
    ],
)
async def test_figures_are_those_of_the_truth(
    metronome: Process, row: Callable[..., None], shape: str, requests: int
) -> None:
    plan = {"shape": shape, "first_ms": 50.0, "gap_ms": 10.0}
    run = await compared(
        metronome,
        tokens=TOKENS,
        plan=plan,
        request_rate=200,
        num_prompts=requests,
        metric_percentiles="50,90,95,99",
    )
    assert len(run.records) == requests
    figures = claims(run)
    share, worst = max(
        (claim.true_ms / min(claim.claimed_ms, allowed_ms(claim.value_ms)), claim)
        for claim in figures
    )
    tpot = next(claim for claim in figures if (claim.name, claim.statistic) == ("tpot", "mean"))
    tpot_error = tpot.true_ms / tpot.value_ms
    told = f"worst: {worst}, {share:.0%} of its bound; mean TPOT {tpot_error:.3%}"
    row(
        f"{shape}, {requests:,} requests of {TOKENS} tokens",
        told,
        BOUND,
        share <= 1 and tpot_error <= TPOT_SHARE,
    )
