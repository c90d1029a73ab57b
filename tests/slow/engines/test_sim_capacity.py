"""The capacity equations against the scheduler in virtual time, with the bounds of
engines/sim/EQUATIONS.md.
"""

import statistics
from typing import Any

import pytest

from loadgen.engines.sim.capacity import capacity_per_s, forecast
from loadgen.engines.sim.scheduler import Scheduler, Sequence
from loadgen.engines.sim.settings import SimSettings
from tests.helpers.sim_steps import MS, poisson, steps

H100, FP8, TP2 = "h100-qwen3-8b", {"quantization": "fp8"}, {"tensor_parallel_size": 2}
# Settings, tokens of prompt and of answer: prompts of an eighth of a step or less.
DEPLOYMENTS: list[tuple[dict[str, Any], int, int]] = [
    ({}, 1024, 128),
    ({"profile": H100}, 1024, 128),
    ({"profile": H100}, 330, 200),
    ({"profile": H100, **FP8}, 1024, 128),
    ({"profile": H100, **TP2}, 1024, 128),
    ({"profile": "h200-qwen3-32b", **TP2}, 330, 200),
]
# At capacity slots or the size of steps are the limit here, and there the cache.
FULL: list[tuple[dict[str, Any], int, int]] = [
    ({}, 1024, 128),
    ({"profile": H100, "max_num_seqs": 16}, 1024, 128),
    ({"profile": H100, "max_num_seqs": 256}, 330, 200),
    ({"profile": "h200-qwen3-32b", **TP2}, 330, 200),
]
SHORT_OF_CACHE: list[tuple[dict[str, Any], int, int]] = [
    ({"profile": H100}, 1024, 128),
    ({"profile": H100, **FP8}, 1024, 128),
    ({"profile": H100, "num_kv_tokens": 41_000}, 330, 200),
    ({"profile": "h100-qwen3-14b"}, 32_000, 100),
    ({"profile": "a100-qwen3-32b", **FP8}, 2000, 100),
]


class Measured:
    """What requests met: times in ms, of the middle half of them."""

    def __init__(
        self, settings: SimSettings, rate: float, count: int, prompt: int, output: int
    ) -> None:
        engine: Scheduler[Sequence] = Scheduler(settings.limits, settings.costs)
        first: dict[Sequence, int] = {}
        last: dict[Sequence, int] = {}
        arrivals = poisson(settings, rate, count, prompt, output)
        for step, progress in steps(engine, arrivals):
            first |= dict.fromkeys(progress.started, step.end_ns)
            last |= dict.fromkeys(progress.finished, step.end_ns)
        middle = arrivals[count // 4 : 3 * count // 4]
        self.ttft_ms = settings.frontend_ms + statistics.fmean(
            (first[it] - it.ready_ns) / MS for it in middle
        )
        self.tpot_ms = statistics.fmean((last[it] - first[it]) / (output - 1) / MS for it in middle)
        ends = sorted(last.values())[count // 4 : 3 * count // 4]
        self.per_s = (len(ends) - 1) / (ends[-1] - ends[0]) * 1e9


# Share of capacity, requests, bound: at half of it arrivals alone move a mean of 12,000 by a
# hundredth.
@pytest.mark.parametrize(("load", "count", "within"), [(0.1, 2000, 0.01), (0.5, 12_000, 0.04)])
@pytest.mark.parametrize(("given", "prompt", "output"), DEPLOYMENTS)
def test_latencies_are_those_of_the_equations(
    given: dict[str, Any], prompt: int, output: int, load: float, count: int, within: float
) -> None:
    settings = SimSettings.of(**given)
    rate = load * capacity_per_s(settings, prompt, output)
    measured = Measured(settings, rate, count, prompt, output)
    expected = forecast(settings, rate, prompt, output)
    assert measured.ttft_ms == pytest.approx(expected.ttft_ms, rel=within)
    assert measured.tpot_ms == pytest.approx(expected.tpot_ms, rel=within)


def share(given: dict[str, Any], prompt: int, output: int) -> float:
    """What is done under 1.3 times the capacity, as a share of it."""
    settings = SimSettings.of(**given)
    capacity = capacity_per_s(settings, prompt, output)
    together = min(settings.max_num_seqs, settings.num_kv_tokens // (prompt + output))
    # All that start together end together: many such rounds, or where the middle half begins would
    # decide.
    return Measured(settings, 1.3 * capacity, 30 * together, prompt, output).per_s / capacity


@pytest.mark.parametrize(("given", "prompt", "output"), FULL)
def test_under_too_much_it_does_what_the_equations_say(
    given: dict[str, Any], prompt: int, output: int
) -> None:
    assert share(given, prompt, output) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(("given", "prompt", "output"), SHORT_OF_CACHE)
def test_short_cache_lowers_capacity_by_recomputation(
    given: dict[str, Any], prompt: int, output: int
) -> None:
    assert 0.75 < share(given, prompt, output) < 1.02


def test_several_cores_do_several_times_as_much() -> None:
    one, three = (SimSettings(data_parallel_size=number) for number in (1, 3))
    assert capacity_per_s(three, 1024, 128) == pytest.approx(3 * capacity_per_s(one, 1024, 128))
    assert forecast(three, 3000, 1024, 128).tpot_ms == pytest.approx(
        forecast(one, 1000, 1024, 128).tpot_ms
    )


def test_a_lone_request_takes_what_its_steps_take() -> None:
    settings = SimSettings.of(profile=H100)
    expected, costs = forecast(settings, 1e-6, 1024, 128), settings.costs
    first_ns = costs.duration_ns(1024, 0, 0, 1024 * 1025 / 2)
    assert expected.ttft_ms == pytest.approx(settings.frontend_ms + first_ns / MS, rel=1e-3)
    assert expected.tpot_ms == pytest.approx(costs.duration_ns(0, 1, 1024 + 64) / MS, rel=1e-3)


def test_load_outside_the_equations_is_refused() -> None:
    settings = SimSettings.of(profile=H100)
    with pytest.raises(ValueError, match="does not fit into a step"):
        forecast(settings, 1, 8193, 10)
    with pytest.raises(ValueError, match="more than can be prefilled"):
        forecast(settings, 100, 1024, 128)
