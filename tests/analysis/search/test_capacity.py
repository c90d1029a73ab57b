"""Capacity: a level is beyond it when more load brings no more work."""

import pytest

from loadgen.analysis.search.search_bounds import ThroughputGain, misses_rate
from loadgen.config.settings import RunSettings
from loadgen.runner.run_result import Result
from tests.helpers import saved_json
from tests.helpers.run_facts import answered, measured, result


def served(
    rate: float, capacity: float, count: int = 1000, takes_ms: float = 50, tokens: int = 3
) -> Result:
    """A run whose server answers `capacity` requests per second at most, one after the other has
    waited its turn.
    """
    records, free = [], 0.0
    for index in range(count):
        due = 1e3 * index / rate
        free = max(due, free) + 1e3 / capacity
        end = free + takes_ms
        records.append(
            answered(index, due=due, tokens=[end - tokens + 1 + each for each in range(tokens)])
        )
    snapshot = measured(records)
    settings = RunSettings(request_rate=rate, num_prompts=count)
    return saved_json.with_snapshot(result(snapshot, settings), snapshot)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("takes_ms", [5, 500, 5000])
def test_rate_below_the_capacity_is_served(share: float, takes_ms: float) -> None:
    assert misses_rate(100 * share, served(100 * share, 100, takes_ms=takes_ms)) is None


@pytest.mark.parametrize("share", [1.05, 1.5, 4])
@pytest.mark.parametrize("takes_ms", [5, 500])
def test_rate_above_the_capacity_is_not(share: float, takes_ms: float) -> None:
    why = misses_rate(100 * share, served(100 * share, 100, takes_ms=takes_ms))
    assert why is not None
    assert float(why.removeprefix("only ").partition("%")[0]) == pytest.approx(
        100 / share, rel=0.02
    )


def test_run_that_ends_before_the_first_answer_tells_nothing() -> None:
    assert misses_rate(100, served(100, 100, count=3, takes_ms=5000)) is None


def throughput(tokens_per_s: float) -> Result:
    """A run with this many output tokens per second."""
    snapshot = measured([answered(0, tokens=[1e3 * (i + 1) / tokens_per_s for i in range(100)])])
    return saved_json.with_snapshot(result(snapshot), snapshot)


def test_twice_the_requests_must_bring_five_percent() -> None:
    gain = ThroughputGain()
    assert gain(8, throughput(1000)) is None
    assert gain(16, throughput(1060)) is None
    assert gain(32, throughput(1100)) is not None


def test_smaller_steps_must_bring_less() -> None:
    gain = ThroughputGain()
    gain(16, throughput(1000))
    assert gain(20, throughput(1020)) is None
    assert gain(21, throughput(1020)) is not None


def test_levels_beyond_the_capacity_are_no_measure_for_others() -> None:
    gain = ThroughputGain()
    gain(8, throughput(1000))
    assert gain(32, throughput(900)) is not None
    assert gain(64, throughput(1200)) is None  # 20 % for three doublings


def test_lower_level_is_never_compared_with_a_higher_one() -> None:
    gain = ThroughputGain()
    gain(32, throughput(1000))
    assert gain(16, throughput(500)) is None
