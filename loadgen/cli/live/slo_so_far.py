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
        limit: The limit.
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
    """The latencies of a distribution by rank, with failed requests as infinite values.

    Args:
        sketch: The latencies.
        failed: How many requests failed.
        latency_ns: Returns the latency of a rank, ns: as near as the sketch has it, or a bound of its bucket.

    Attributes:
        count: How many values there are, with those of failed requests.
    """

    def __init__(self, sketch: Sketch, failed: int, latency_ns: Callable[[int], float]) -> None:
        self._latency_ns, self._latencies, self.count = latency_ns, sketch.count, sketch.count + failed

    def value_at_rank(self, rank: int, /) -> float:
        """Return the latency in ms with this rank, ascending; inf is a failed request."""
        return self._latency_ns(rank) / 1e6 if rank < self._latencies else math.inf

    def percentile(self, p: float) -> float | None:
        """Return the `p`-th percentile in ms; None without values."""
        if not self.count:
            return None
        position = (self.count - 1) * p / 100
        rank = int(position)
        low, high = self.value_at_rank(rank), self.value_at_rank(min(rank + 1, self.count - 1))
        return low + (high - low) * (position - rank) if position > rank and high > low else low


def slo_so_far(limits: str, progress: Progress) -> Iterator[LimitSoFar]:
    """Judge each limit of an SLO by what has ended so far, as the report judges a whole run.

    A percentile of too few requests is missed where its interval lies beyond the limit, and else too few.

    Args:
        limits: The SLO.
        progress: The latest progress.
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
    values = _Values(sketch, failed, sketch.value_at_rank)
    lowest = _Values(sketch, failed, lambda rank: sketch.bucket_at_rank(rank)[0])
    highest = _Values(sketch, failed, lambda rank: sketch.bucket_at_rank(rank)[1])
    p = 100.0 if limit.percentile is None else limit.percentile
    value, needed = values.percentile(p), least_samples(p)
    requests = min(values.count, progress.e2el.count) if limit.metric in GAPS else values.count
    state = _by_value(limit, value)
    if limit.met_by(lowest.percentile(p)) != limit.met_by(highest.percentile(p)):
        state = State.CLOSE
    if requests < needed:
        low = None if limit.metric in GAPS or not requests else interval(lowest, p)[0]  # it is surely missed
        state = State.TOO_FEW if low is None or limit.met_by(low) else State.MISSED
    return LimitSoFar(limit, value, state, requests, needed, progress.scheduled)


def _by_value(limit: Limit, value: float | None) -> State:
    if value is None:
        return State.TOO_FEW
    return State.MET if limit.met_by(value) else State.MISSED
