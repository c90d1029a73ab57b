"""The verdict of a run that goes on: what each limit of its SLO shows so far, failures,
overload, and the client.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from loadgen.checks.sending import late_limit_ns
from loadgen.cli.live.history import History
from loadgen.cli.live.progress_line import OVERLOADED
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.config.slo import GAPS, Limit
from loadgen.core.sketch import Sketch
from loadgen.document import Colour, Part
from loadgen.metrics.failures import Failures
from loadgen.metrics.progress import Progress
from loadgen.stats.percentile_confidence_interval import interval, least_samples
from loadgen.util.clock import NS_PER_S

MAX_NAMED = 3  # limits of the SLO that are named


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
        state: Met, missed, too close to the limit for a sketch to tell, or too few requests to
            tell.
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


def verdict_so_far(
    settings: RunSettings, progress: Progress, history: History, limits: list[LimitSoFar]
) -> list[Part]:
    """Say how the run stands, the worst first: failures, overload, the SLO, and whether this client
    is on time.

    Args:
        settings: The settings of the run.
        progress: The latest progress.
        history: The run so far.
        limits: The limits of its SLO.
    """
    failures = Failures.among({"ok": progress.ok, **progress.failures}, progress.never_due)
    failed = f"{failures.failed} of {failures.of} failed"
    if not failures.failed:
        parts = [(f"{progress.ok} ok, 0 failed", Colour.NONE)]
    elif (failures.server_rate or 0.0) > settings.max_error_rate:
        parts = [(f"NOT OK: {failed}", Colour.RED)]
    else:
        parts = [(failed, Colour.YELLOW)]
    if history.backlog.overloaded:
        parts.append((OVERLOADED, Colour.RED))
    if limits:
        parts.append(_slo_part(limits))
    limit_ms = late_limit_ns(progress.elapsed_s * NS_PER_S / max(1, progress.sent)) / 1e6
    if (late_ms := progress.lag.p99_ms or 0.0) > limit_ms:
        parts.append((f"SUSPECT: requests are sent {late_ms:.1f} ms late (p99)", Colour.YELLOW))
    else:
        parts.append(("sent on time", Colour.NONE))
    return sorted(parts, key=lambda part: part[1] is not Colour.RED)


def _slo_part(limits: list[LimitSoFar]) -> Part:
    by_state = {
        state: [so_far.limit.name for so_far in limits if so_far.state is state] for state in State
    }
    if missed := by_state[State.MISSED]:
        return f"SLO MISSED so far ({', '.join(missed[:MAX_NAMED])})", Colour.RED
    undecided = [so_far for so_far in limits if so_far.state is State.TOO_FEW]
    if by_state[State.CLOSE] or any(so_far.value is None for so_far in undecided):
        return "SLO cannot be told yet", Colour.YELLOW
    if beyond := [so_far.limit.name for so_far in undecided if not so_far.is_within]:
        return (
            f"SLO beyond {', '.join(beyond[:MAX_NAMED])} so far, too few requests to be sure",
            Colour.YELLOW,
        )
    if undecided:
        return (
            f"SLO met so far, {max(undecided, key=lambda so_far: so_far.needed).when_sure}",
            Colour.GREEN,
        )
    return "SLO met so far", Colour.GREEN


def slo_so_far(limits: str, progress: Progress) -> Iterator[LimitSoFar]:
    """Judge each limit of an SLO by what has ended so far, as the report judges a whole run.

    A percentile of too few requests is missed where its interval lies beyond the limit, and else
    too few.

    Args:
        limits: The SLO.
        progress: The latest progress.
    """
    # Turns that were never sent are among the cancelled, where `among` expects them.
    failures = Failures.among({"ok": progress.ok, **progress.failures}, progress.never_due)
    for limit in slo.required_limits(limits):
        if limit.metric == "error":
            rate = failures.server_rate
            yield LimitSoFar(limit, rate, _by_value(limit, rate), failures.of, 1)
        else:
            yield _latency(limit, progress, failures.failed)


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
        # It is surely missed.
        low = None if limit.metric in GAPS or not requests else interval(lowest, p)[0]
        state = State.TOO_FEW if low is None or limit.met_by(low) else State.MISSED
    return LimitSoFar(limit, value, state, requests, needed, progress.scheduled)


def _by_value(limit: Limit, value: float | None) -> State:
    if value is None:
        return State.TOO_FEW
    return State.MET if limit.met_by(value) else State.MISSED


class _Values:
    """The latencies of a distribution by rank, with failed requests as infinite values.

    Args:
        sketch: The latencies.
        failed: How many requests failed.
        latency_ns: Returns the latency of a rank, ns: as near as the sketch has it, or a bound of
            its bucket.

    Attributes:
        count: How many values there are, with those of failed requests.
    """

    def __init__(self, sketch: Sketch, failed: int, latency_ns: Callable[[int], float]) -> None:
        self._latency_ns, self._latencies, self.count = (
            latency_ns,
            sketch.count,
            sketch.count + failed,
        )

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
