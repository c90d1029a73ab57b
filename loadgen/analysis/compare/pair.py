"""Pair: a side beside the baseline, and what each metric of the two differs by."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from loadgen.analysis.compare import interval
from loadgen.analysis.compare.interval import Interval
from loadgen.analysis.compare.latency_values import ROUNDING
from loadgen.analysis.compare.metrics import STATISTICS, Metric, named
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.row import Row, change
from loadgen.analysis.compare.sample import Sample
from loadgen.analysis.compare.side import LEAST_STARTS, Side
from loadgen.util.arrays import Floats
from loadgen.util.number_format import percent

MOST_ERRORS = 0.01  # of requests: beyond it, latencies are those of a choice of them


class Pair:
    """A side beside the baseline.

    Args:
        base: The baseline.
        other: The side.
        noise: What starts of one thing differ by, if that was kept.
        samples: Reads the runs of a side of which there are records; called only where something rests on them.
    """

    def __init__(
        self, base: Side, other: Side, noise: NoiseFile | None, samples: Callable[[Side], Sequence[Sample]]
    ) -> None:
        self._base, self._other, self._noise, self._samples = base, other, noise, samples

    @property
    def survivors(self) -> str:
        """Why latencies are not of the same requests on both sides, in words; empty where they are."""
        rates = [side.error_rate for side in (self._base, self._other)]
        if rates[0] is None or rates[1] is None or abs(rates[1] - rates[0]) <= MOST_ERRORS:
            return ""
        one, other = (percent(rate, 1) for rate in rates)
        return f"{one} of the requests of {self._base.name} did not succeed, {other} of those of {self._other.name}"

    @cached_property
    def block(self) -> int | None:
        """How long blocks must be for every run of both; None where some have no records."""
        samples = [*self._samples(self._base), *self._samples(self._other)]
        if len(samples) < len(self._base.starts) + len(self._other.starts):
            return None
        return max(sample.enough for sample in samples)

    def row(self, metric: Metric) -> Row | None:
        """What a metric differs by; None where a run has no value."""
        one, two = self._base.levels(metric), self._other.levels(metric)
        if one is None or two is None:
            return None
        first, second = (float(levels.mean() if metric.is_share else np.exp(levels.mean())) for levels in (one, two))
        if not (np.isfinite(one).all() and np.isfinite(two).all()):  # logarithms, of which one is that of 0
            told = second / first - 1 if first else None if second else 0.0
            return Row(metric, first, second, told, 0.0, None, "a value is 0")
        resolutions = self._base.resolution(metric), self._other.resolution(metric)
        found = self._interval(metric, one, two, interval.rounding(*resolutions))
        if isinstance(found, Interval) and found.low == found.high:
            found = "nothing of it was seen to vary"  # no error in a run does not show that there never is one
        sure, why = (None, found) if isinstance(found, str) else (found, "")
        told = change(float(two.mean() - one.mean()), metric)
        return Row(metric, first, second, told, max(resolutions), sure, why)

    def repeated(self, metric: Metric) -> Metric | None:
        """What a metric is the same as in every run, or in another unit a fixed multiple of; None where of nothing.

        A latency is the same as another where all STATISTICS of it are.
        """
        alike = [metric] if metric.latency is None else [named(f"{metric.latency[0]}_{each}") for each in STATISTICS]
        return named(metric.repeats) if all(each is not None and self._is_multiple(each) for each in alike) else None

    def _is_multiple(self, metric: Metric) -> bool:
        """Whether it is such a multiple of the metric that it may repeat."""
        first = named(metric.repeats)
        if first is None:
            return False
        times: list[float] = []  # of the first, in each run; logarithms
        for side in (self._base, self._other):
            one, many = side.levels(first), side.levels(metric)
            if one is None or many is None or not (np.isfinite(one).all() and np.isfinite(many).all()):
                return False
            times += (many - one).tolist()
        fixed = 0.0 if metric.unit == first.unit else times[0]
        return all(abs(each - fixed) <= ROUNDING for each in times)

    def _interval(self, metric: Metric, one: Floats, two: Floats, rounding: float) -> Interval | str:
        """Of the difference of the levels of both, or why there is none."""
        kept = None if self._noise is None else self._noise.each.get(metric.name)
        if kept is not None or min(len(one), len(two)) >= LEAST_STARTS:
            return interval.by_starts(one, two, kept, rounding)
        if not metric.ours:
            return f"the server's own words need {LEAST_STARTS} starts of each"
        if self.block is None:
            return self._no_records()
        samples = self._samples(self._base), self._samples(self._other)
        why = next((why for each in samples for sample in each if (why := sample.why_not(self.block))), None)
        if why is not None:
            return why
        found = interval.within(*samples, metric, float(two.mean() - one.mean()), self.block, rounding)
        return "of too few values" if found is None else found

    def _no_records(self) -> str:
        kept = [start.kept for side in (self._base, self._other) for start in side.starts if start.records is None]
        names = [name for name in kept if name is not None]
        if len(names) == len(kept):
            return f"name the records instead of the result: {', '.join(names)}"
        return "keep --records"
