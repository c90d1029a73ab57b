"""Demands: what an SLO asks of the requests of a run, and what those show of it.

`ttft_p99<500ms` is met exactly where 99 % of the requests have a TTFT below 500 ms: a limit on a percentile is one on a
share, of which bounds are known (`loadgen.stats.ratio_interval`). A request that fails meets none. Means and gaps
between tokens are those of the requests that succeeded; where nothing else is limited, failures are (`slo.demanded`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from loadgen.analysis.search.algorithm import OF_A_LOOK, Shown
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import OUR_FAULTS, Outcome
from loadgen.core.wire import Record
from loadgen.errors import BadInput
from loadgen.util.arrays import Floats
from loadgen.util.number_format import to_ms

FEWEST = 100  # requests of a run


class Demand(Protocol):
    """What is asked of the requests of a run.

    Attributes:
        text: As it was written.
    """

    @property
    def text(self) -> str: ...  # noqa: D102

    @property
    def enough(self) -> int:
        """Requests of a run: twice as many as show it where all of them are good (by Wilson's bound)."""

    def shown(self, records: Sequence[Record], settings: RunSettings) -> Shown:
        """What the requests of a run show of it.

        Args:
            records: In the order in which they were due.
            settings: Of the run.
        """


@dataclass(frozen=True, slots=True)
class Share:
    """A request is good if it succeeds and meets every limit, and a share must be good.

    Attributes:
        text: As it was written.
        each: The limits on a request's latencies; none: it need only succeed.
        attainment: The share of requests that must be good: 0.99 for limits at the 99th percentile.
    """

    text: str
    each: tuple[slo.Limit, ...]
    attainment: float

    @property
    def enough(self) -> int:
        """See `Demand`."""
        return _enough(self.attainment)

    def shown(self, records: Sequence[Record], settings: RunSettings) -> Shown:
        """See `Demand`."""
        good = np.array([self.good(record, settings) for record in records], dtype=float)
        return Shown(good, np.ones(len(good)), self.attainment)

    def good(self, record: Record, settings: RunSettings) -> bool:
        """Whether a request that has ended succeeded and met its limits; one of a single token has no TPOT.

        One that the client failed to send is no failure of the server, and bad only where latencies are limited.
        """
        if record.outcome is not Outcome.OK:
            return not self.each and record.outcome in OUR_FAULTS
        for limit in self.each:
            value = latency_ms(record, limit.metric, settings)
            if value is None and limit.metric == "tpot":
                continue
            if not limit.met_by(value):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Gaps:
    """A share of all gaps between tokens, or events with tokens, must be within a limit.

    Attributes:
        limit: At the percentile that is the share.
    """

    limit: slo.Limit

    @property
    def text(self) -> str:
        """See `Demand`."""
        return self.limit.text

    @property
    def enough(self) -> int:
        """See `Demand`; the gaps of a request share its fate."""
        return _enough(self._share)

    @property
    def _share(self) -> float:
        assert self.limit.percentile is not None
        return self.limit.percentile / 100

    def shown(self, records: Sequence[Record], settings: RunSettings) -> Shown:
        """See `Demand`."""
        within = np.less_equal if self.limit.inclusive else np.less
        gaps = [gaps_ms(record, self.limit.metric) for record in records]
        good = [float(count[within(gap, self.limit.threshold)].sum()) for gap, count in gaps]
        of = [float(count.sum()) for _, count in gaps]
        return Shown(np.array(good), np.array(of), self._share)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean must be within a limit: of requests, or of all gaps."""

    limit: slo.Limit
    enough = FEWEST

    @property
    def text(self) -> str:
        """See `Demand`."""
        return self.limit.text

    def shown(self, records: Sequence[Record], settings: RunSettings) -> Shown:
        """See `Demand`."""
        values = [self._values(record, settings) for record in records]
        total = [float((value * count).sum()) for value, count in values]
        of = [float(count.sum()) for _, count in values]
        return Shown(np.array(total), np.array(of), self.limit.threshold, is_mean=True)

    def _values(self, record: Record, settings: RunSettings) -> tuple[Floats, Floats]:
        if self.limit.metric in slo.GAPS:
            return gaps_ms(record, self.limit.metric)
        value = latency_ms(record, self.limit.metric, settings) if record.outcome is Outcome.OK else None
        values = np.array([] if value is None else [value])
        return values, np.ones(len(values))


def of_each(text: str) -> tuple[Demand, ...]:
    """What every limit of an SLO demands by itself, at whatever percentiles, as `slo.demanded` has them.

    Raises:
        BadInput: A limit of which no number of requests shows that it is met.
    """
    limits = slo.required_limits(text)
    for limit in limits:
        if why := undecidable(limit):
            raise BadInput("--slo", f"{limit.text!r}: {why[0]}", why[1])
    return tuple(map(_demand, limits))


def undecidable(limit: slo.Limit) -> tuple[str, str] | None:
    """Why no number of requests shows whether a limit is met, and what to write instead; None where one does."""
    if limit.metric == "error":
        return None if 0 < limit.threshold < 1 else ("no number of requests shows that", "write error_rate<1%")
    if limit.statistic == "max":
        return "no number of requests shows a maximum", f"write {limit.metric}_p99"
    return ("it is met by any request", f"write {limit.metric}_p99") if limit.percentile == 0 else None


def latency_ms(record: Record, metric: str, settings: RunSettings) -> float | None:
    """A latency of a request, from due or sent as the settings say; None where it has none."""
    if metric == "tpot":
        return to_ms(record.tpot_ns)
    start = record.due if settings.latency_from == "due" else record.sent
    ended = {"ttft": record.first_token, "ttfo": record.first_answer, "e2el": record.last_token}[metric]
    return to_ms(ended - start) if ended else None


def gaps_ms(record: Record, metric: str) -> tuple[Floats, Floats]:
    """The gaps of a request that succeeded, and how many there are of each: between events with tokens for icl; for itl
    between tokens, where the gap before an event of k tokens is k gaps of a k-th of it.
    """
    stamps = np.frombuffer(record.marks, dtype=np.int64)
    if record.outcome is not Outcome.OK or len(stamps) < 2:
        return np.empty(0), np.empty(0)
    if metric == "icl" or record.token_counts is None:
        return np.diff(stamps) / 1e6, np.ones(len(stamps) - 1)
    tokens = np.array(record.token_counts)
    bearing = np.append([0], 1 + np.flatnonzero(tokens[1:]))
    count = tokens[bearing[1:]]
    return np.diff(stamps[bearing]) // count / 1e6, count.astype(float)


def _enough(attainment: float) -> int:
    z = NormalDist().inv_cdf(OF_A_LOOK)
    return max(FEWEST, math.ceil(2 * z * z * attainment / (1 - attainment)))


def _demand(limit: slo.Limit) -> Demand:
    if limit.metric == "error":
        return Share(limit.text, (), 1 - limit.threshold)
    if limit.percentile is None:
        return Mean(limit)
    return Gaps(limit) if limit.metric in slo.GAPS else Share(limit.text, (limit,), limit.percentile / 100)
