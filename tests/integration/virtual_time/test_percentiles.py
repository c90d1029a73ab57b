"""Latencies of streams whose plan is known: percentiles within the histogram's width, means
exactly.
"""

from collections.abc import Callable

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.testing.memory_servers import planned
from loadgen.workload.arrivals import Schedule
from tests.helpers.virtual_runs import MS, Run, carried_out

COUNT, RATE = 2_000, 100.0
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
WIDTH = 1e-3
PLANS = ("constant", "lognormal", "bimodal")
Plan = list[np.ndarray]


def constant(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.full(count, 10.0)


def lognormal(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.lognormal(np.log(10), 0.7, count)


def bimodal(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(rng.random(count) < 0.97, rng.normal(10, 1, count), rng.normal(90, 5, count))


def plan(draw: Callable[[np.random.Generator, int], np.ndarray]) -> Plan:
    """When the tokens of each request come, ns after it: five times a gap until the first, then
    one every gap, ms.
    """
    rng = np.random.default_rng([1, *b"plan"])
    lengths = rng.integers(2, 60, COUNT)
    return [
        np.rint(np.cumsum(draw(rng, n) * np.r_[5, np.ones(n - 1)]) * MS).astype(np.int64)
        for n in lengths
    ]


@pytest.fixture(scope="module", params=[constant, lognormal, bimodal])
def measured(request: pytest.FixtureRequest) -> tuple[Plan, Run]:
    tokens_ns = plan(request.param)
    settings = RunSettings(request_rate=RATE, num_prompts=COUNT, metric_percentiles="50,90,99,99.9")
    server = planned([tokens.tolist() for tokens in tokens_ns].__getitem__)
    return tokens_ns, carried_out(server, Schedule.from_settings(settings, 1), settings)


def truth_ms(tokens_ns: Plan) -> dict[str, np.ndarray]:
    """The latencies of a plan by their definitions, ms."""
    return {
        "ttft": np.array([tokens[0] for tokens in tokens_ns]) / MS,
        "itl": np.concatenate([np.diff(tokens) for tokens in tokens_ns]) / MS,
        "tpot": np.array([(tokens[-1] - tokens[0]) / (len(tokens) - 1) for tokens in tokens_ns])
        / MS,
        "e2el": np.array([tokens[-1] for tokens in tokens_ns]) / MS,
    }


@pytest.mark.parametrize("metric", ["ttft", "itl", "tpot", "e2el"])
def test_percentiles_are_the_plans(measured: tuple[Plan, Run], metric: str) -> None:
    tokens_ns, run = measured
    truth, result = truth_ms(tokens_ns)[metric], run.result
    for p in PERCENTILES:
        assert result[f"p{p:g}_{metric}_ms"] == pytest.approx(np.percentile(truth, p), rel=WIDTH)
    assert result[f"median_{metric}_ms"] == pytest.approx(np.median(truth), rel=WIDTH)


@pytest.mark.parametrize("metric", ["ttft", "itl", "tpot", "e2el"])
def test_means_and_deviations_are_the_plans_exactly(
    measured: tuple[Plan, Run], metric: str
) -> None:
    tokens_ns, run = measured
    truth = truth_ms(tokens_ns)[metric]
    whole_ns = 1 / MS  # a TPOT is cut to whole nanoseconds, the others are
    assert run.result[f"mean_{metric}_ms"] == pytest.approx(truth.mean(), rel=1e-12, abs=whole_ns)
    assert run.result[f"std_{metric}_ms"] == pytest.approx(truth.std(), rel=1e-9, abs=whole_ns)


def test_the_mean_tpot_is_exact_to_the_last_nanosecond(measured: tuple[Plan, Run]) -> None:
    tokens_ns, run = measured
    tpot = run.snapshot.histograms["tpot"]
    assert tpot.total == sum(
        int(tokens[-1] - tokens[0]) // (len(tokens) - 1) for tokens in tokens_ns
    )
    assert tpot.count == COUNT
    decode_ns = sum(int(tokens[-1] - tokens[0]) for tokens in tokens_ns)
    gaps = sum(len(tokens) - 1 for tokens in tokens_ns)
    assert run.own["tpot_token_weighted_ms"] == pytest.approx(decode_ns / gaps / MS, rel=1e-12)


def test_tokens_and_throughput_are_the_plans(measured: tuple[Plan, Run]) -> None:
    tokens_ns, run = measured
    sent_ns = run.schedule.due_ns
    ends_ns = sent_ns + np.array([tokens[-1] for tokens in tokens_ns])
    seconds = (ends_ns.max() - sent_ns[0]) / 1e9
    tokens = sum(len(tokens) for tokens in tokens_ns)
    assert run.result["total_output_tokens"] == tokens
    assert run.result["duration"] == pytest.approx(seconds, rel=1e-12)
    assert run.result["output_throughput"] == pytest.approx(tokens / seconds, rel=1e-12)
    assert run.result["request_throughput"] == pytest.approx(COUNT / seconds, rel=1e-12)
    changes = sorted([(at, 1) for at in sent_ns.tolist()] + [(at, -1) for at in ends_ns.tolist()])
    assert run.result["max_concurrent_requests"] == max(
        np.cumsum([change for _, change in changes])
    )
    assert run.own["verdict"] == "VALID"
