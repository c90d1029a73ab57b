"""Level verdict: whether all runs at a level together meet the SLO, with bounds of the limited values."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from loadgen.analysis.search.algorithm import Run
from loadgen.analysis.search.levels import LevelRun
from loadgen.analysis.search.ratio_sample import RatioSample
from loadgen.config import slo
from loadgen.core.histogram import Histogram
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result.series import BoundedLimit, LoadLevel


def judge_level(level_runs: Sequence[LevelRun], limits: Sequence[slo.Limit], clock: str) -> LoadLevel:
    """Judge the runs at a level together.

    Args:
        level_runs: The runs, one at least, all at one level.
        limits: Of the SLO, one for each criterion of the runs.
        clock: "due" or "sent", from which latencies are counted.
    """
    counted = [each for each in level_runs if each.run.inconclusive is None]
    runs = [each.run for each in counted if each.run.samples]
    pooled: Run | None = reduce(add, runs) if runs else None
    failed = next((each for each in counted if each.run.failed), None)
    why = failed.why if failed else None if counted else level_runs[-1].why
    snapshots = [each.result.snapshot for each in counted or level_runs[-1:]]
    return LoadLevel(
        level=level_runs[0].level,
        met=False if failed else pooled.met() if pooled else None,
        runs=len(counted),
        why=why,
        slo=[_bounded(limit, number, pooled, snapshots, clock) for number, limit in enumerate(limits)],
    )


def _bounded(
    limit: slo.Limit, number: int, pooled: Run | None, snapshots: Sequence[Snapshot], clock: str
) -> BoundedLimit:
    sample, in_flight = (pooled.samples[number], pooled.in_flight) if pooled else (None, 0.0)
    found = (
        _rates(sample, in_flight) if limit.metric == "error" else _latencies(limit, sample, in_flight, snapshots, clock)
    )
    value, low, high = (None if each is None or math.isinf(each) else each for each in found)
    met = sample.met(in_flight) if sample else None
    return BoundedLimit(limit=limit.text, value=value, low=low, high=high, met=met)


def _rates(sample: RatioSample | None, in_flight: float) -> tuple[float | None, float | None, float | None]:
    bounds = sample.bounds(in_flight) if sample else None
    if sample is None or sample.value is None or bounds is None:
        return None, None, None
    return 1 - sample.value, max(0.0, 1 - bounds[1]), min(1.0, 1 - bounds[0])


def _latencies(
    limit: slo.Limit, sample: RatioSample | None, in_flight: float, snapshots: Sequence[Snapshot], clock: str
) -> tuple[float | None, float | None, float | None]:
    """Return the value of a latency, ms, and its bounds; infinite where they lie among requests that failed."""
    name = slo.distribution(limit.metric, clock)
    failed = 0 if limit.metric in slo.GAPS else sum(each.failures.failed for each in snapshots)

    def pooled(histograms: Callable[[Snapshot], dict[str, Histogram]]) -> Histogram:
        return reduce(add, (histograms(each)[name] for each in snapshots))

    value = statistic_ms(pooled(lambda each: each.histograms), limit.statistic, failed)
    if sample is not None and value is not None and sample.is_mean:
        return value, *(sample.bounds(in_flight) or (None, None))
    shares = sample.deciding_shares(in_flight) if sample is not None and value is not None else None
    if shares is None:
        return value, None, None
    least, most = shares
    low = statistic_ms(pooled(lambda each: each.lower), f"p{100 * max(0.0, least)}", failed)
    high = statistic_ms(pooled(lambda each: each.upper), f"p{100 * most}", failed) if most <= 1 else None
    return value, low, high
