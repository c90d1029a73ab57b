"""Group C: how far the client may have moved the printed latencies, and what explains it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from loadgen.checks.check import Check, inapplicable
from loadgen.checks.sending import because, relief
from loadgen.config import slo
from loadgen.metrics.run_data import RunData
from loadgen.metrics.statistic import client_error_ms, statistic_ms
from loadgen.util.number_format import four_digits, percent, percentile

NAME = "client error too large"
MAX_SHARE, MAX_MS = 0.01, 0.1  # of a figure; the greater of the two is allowed
NAMED = 3  # figures that are named
# Latencies that are the same as another one where each event bore one token, or there was no reasoning.
TWINS = {"icl": "itl", "ttfo": "ttft"}


class Figure(NamedTuple):
    """A printed number of a latency.

    Attributes:
        metric: ttft, ttfo, tpot, itl, icl or e2el.
        statistic: mean, median, max or a percentile such as p99.
        value_ms: Its value.
        error_ms: How far it can be from the truth because of the client.
    """

    metric: str
    statistic: str
    value_ms: float
    error_ms: float

    @property
    def excess(self) -> float:
        """The error as a multiple of what is allowed."""
        return self.error_ms / allowed_ms(self.value_ms)

    def __str__(self) -> str:
        error, value = four_digits(self.error_ms), four_digits(self.value_ms)
        return f"{self.statistic} {self.metric.upper()} by at most {error} of {value} ms"


def allowed_ms(value_ms: float) -> float:
    """Return how far the client may move a latency of a VALID run, ms."""
    return max(MAX_SHARE * value_ms, MAX_MS)


def client_error(run: RunData) -> Check:
    """Compare the error of each printed latency with what is allowed."""
    found = sorted(figures(run), key=lambda figure: figure.excess, reverse=True)
    if not found:
        is_unbounded = run.snapshot.counters["unbounded_events"] > 0
        return inapplicable(
            NAME, "the records do not say how late tokens were read" if is_unbounded else "no request was ok"
        )
    beyond = [figure for figure in found if figure.excess > 1]
    shown = beyond[:NAMED] or [max(found, key=lambda figure: figure.error_ms)]
    more = len(beyond) - len(shown)
    value = ", ".join(map(str, shown)) + (f", and {more} more" if more > 0 else "")
    limit = f"{percent(MAX_SHARE)} of each, or {MAX_MS:g} ms"
    return Check(NAME, not beyond, value, limit, because(_advice(run), run))


def figures(run: RunData) -> Iterator[Figure]:
    """Yield the latencies that a run prints, and those that its SLO limits, with their errors."""
    settings, snapshot = run.settings, run.snapshot
    printed = ["mean", *map(percentile, run.percentiles)]
    wanted = {(metric, statistic): 0 for metric in slo.LATENCY_METRICS for statistic in printed}
    for limit in slo.required_limits(settings.slo) if settings.slo else ():
        if limit.metric in slo.LATENCY_METRICS:
            wanted[limit.metric, limit.statistic] = 0 if limit.of_survivors else snapshot.failures.failed
    for (metric, statistic), failed in wanted.items():
        name = slo.distribution(metric, settings.latency_from)
        value = statistic_ms(snapshot.histograms[name], statistic, failed)
        error = client_error_ms(snapshot, name, statistic, failed)
        if value is None or error is None or not math.isfinite(value):
            continue
        twin = TWINS.get(metric)
        if twin and snapshot.histograms[name] == snapshot.histograms[slo.distribution(twin, settings.latency_from)]:
            continue
        yield Figure(metric, statistic, value, error)


def _advice(run: RunData) -> str:
    """Say why stamps are not exact, and what helps."""
    counters = run.snapshot.counters
    events, by_user = counters["token_events"], counters["user_stamped_events"]
    if 2 * by_user > counters["inexact_events"]:
        share = percent(by_user / events) if events else "all"
        return f"{share} of the tokens have no stamp of the kernel's, only the time at which they were read"
    return f"tokens that came one after the other were read together: {relief(run)}"
