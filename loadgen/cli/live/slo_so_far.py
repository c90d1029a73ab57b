"""The SLO of a run that goes on: what each limit shows so far."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from loadgen.config import slo
from loadgen.config.slo import GAPS, Limit
from loadgen.core.sketch import Sketch
from loadgen.metrics.failures import Failures
from loadgen.metrics.progress import Progress
from loadgen.stats.percentile_confidence_interval import interval, least_samples


class State(StrEnum):
    """What a limit shows so far."""

    MET = "met so far"
    MISSED = "MISSED so far"
    CLOSE = "close to the limit"
    TOO_FEW = "too few"


@dataclass(frozen=True, slots=True)
class LimitSoFar:
    """A limit, and what the run shows of it.

    Attributes:
        value: In ms, or a share of 1; None: not measured; inf: it lies among failed requests.
        state: Met, missed, too close to the limit for a sketch to tell, or too few requests to tell.
        requests: How many requests it is taken from.
        needed: How many the statistic needs.
        scheduled: How many the run has; 0 if that is not known.
    """

    limit: Limit
    value: float | None
    state: State
    requests: int
    needed: int
    scheduled: int = 0

    @property
    def is_within(self) -> bool:
        """Whether the value is within the limit."""
        return self.value is not None and bool(self.limit.met_by(self.value))

    @property
    def when_sure(self) -> str:
        """After how many requests the value is sure; not at all if the run has fewer."""
        if 0 < self.scheduled < self.needed:
            return f"not sure: this run has {self.scheduled} of {self.needed} requests"
        return f"sure after {self.needed} requests"


class _Values:
    """The latencies of a distribution, with failed requests as infinite values; it can be read by rank."""

    def __init__(self, sketch: Sketch, failed: int) -> None:
        self._sketch, self.count = sketch, sketch.count + failed

    def value_at_rank(self, rank: int, /) -> float:
        """Return the latency in ms with this rank, ascending; inf is a failed request."""
        return self._sketch.value_at_rank(rank) / 1e6 if rank < self._sketch.count else math.inf

    def bucket_at_rank(self, rank: int) -> tuple[float, float]:
        """Return the bounds in ms of the latency with this rank."""
        if rank >= self._sketch.count:
            return math.inf, math.inf
        lowest, highest = self._sketch.bucket_at_rank(rank)
        return lowest / 1e6, highest / 1e6

    def percentile(self, p: float) -> float | None:
        """Return the `p`-th percentile in ms; None without values."""
        return self._between(p, self.value_at_rank) if self.count else None

    def percentile_bounds(self, p: float) -> tuple[float, float]:
        """Return between which values, in ms, the `p`-th percentile of the run's histogram lies; there is a value."""
        return (
            self._between(p, lambda rank: self.bucket_at_rank(rank)[0]),
            self._between(p, lambda rank: self.bucket_at_rank(rank)[1]),
        )

    def _between(self, p: float, value_at_rank: Callable[[int], float]) -> float:
        position = (self.count - 1) * p / 100
        rank = int(position)
        low, high = value_at_rank(rank), value_at_rank(min(rank + 1, self.count - 1))
        return low + (high - low) * (position - rank) if position > rank and high > low else low


class _LowestValues(_Values):
    """The same with the lowest value of each bucket, where a limit must surely be missed."""

    def value_at_rank(self, rank: int, /) -> float:
        """Return the lowest latency in ms that this rank may have."""
        return self.bucket_at_rank(rank)[0]


def slo_so_far(limits: str, progress: Progress) -> Iterator[LimitSoFar]:
    """Judge each limit of an SLO by what has ended so far, as the report judges a whole run.

    A percentile of too few requests is missed where its interval lies beyond the limit, and else too few.
    """
    # Turns that were never sent are among the cancelled, where `among` expects them.
    failures = Failures.among({"ok": progress.ok, **progress.failures}, progress.never_due)
    for limit in slo.required_limits(limits):
        yield _error_rate(limit, failures) if limit.metric == "error" else _latency(limit, progress, failures.failed)


def _error_rate(limit: Limit, failures: Failures) -> LimitSoFar:
    value = failures.server_rate
    return LimitSoFar(limit, value, _by_value(limit, value), failures.of, 1)


def _latency(limit: Limit, progress: Progress, failed: int) -> LimitSoFar:
    sketch: Sketch = getattr(progress, limit.metric)
    if limit.statistic == "mean":
        return LimitSoFar(limit, sketch.mean_ms, _by_value(limit, sketch.mean_ms), sketch.count, 1)
    failed = 0 if limit.metric in GAPS else failed
    values = _Values(sketch, failed)
    p = 100.0 if limit.percentile is None else limit.percentile
    value, needed = values.percentile(p), least_samples(p)
    requests = min(values.count, progress.e2el.count) if limit.metric in GAPS else values.count
    state = _by_value(limit, value)
    if value is not None and len(set(map(limit.met_by, values.percentile_bounds(p)))) > 1:
        state = State.CLOSE
    if requests < needed:
        low = None if limit.metric in GAPS or not requests else interval(_LowestValues(sketch, failed), p)[0]
        state = State.TOO_FEW if low is None or limit.met_by(low) else State.MISSED
    return LimitSoFar(limit, value, state, requests, needed, progress.scheduled)


def _by_value(limit: Limit, value: float | None) -> State:
    if value is None:
        return State.TOO_FEW
    return State.MET if limit.met_by(value) else State.MISSED
