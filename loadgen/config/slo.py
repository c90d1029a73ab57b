"""SLO: limits on the results of a run, as `ttft_p99<500ms,tpot_mean<50ms,error_rate<1%`.

`itl` is the gap between tokens, `icl` (inter-chunk latency) that between token-bearing events. Tails are best judged on
`icl`: where an event brings several tokens, the gaps of `itl` are equal parts of the one gap that was measured.

A request that failed is beyond every limit: `ttft_p99<500ms` is that 99 % of the requests have a TTFT below 500 ms. A
mean, and a percentile of gaps, is of requests that succeeded; where there is no other limit, FAILURES is demanded too.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from loadgen.errors import BadInput

LATENCY_METRICS = ("ttft", "ttfo", "tpot", "itl", "icl", "e2el")
GAPS = ("itl", "icl")  # of which a request has many
RATES = ("error_rate",)
FAILURES = "error_rate<1%"  # goes without saying where nothing else limits them
STATISTICS = "p50, p90, p99, p99.9, ..., mean, median, max"
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "": 1.0}
_SHARES = {"%": 0.01, "": 1.0}
_LIMIT = re.compile(r"\s*([a-z0-9]+)_(\w[\w.]*)\s*(<=?)\s*([0-9.]+)\s*([a-z%]*)\s*")
_BARE_METRIC = re.compile(r"([a-z0-9]+)\s*(<.*)")
_STATISTIC = re.compile(r"p\d{1,2}(\.\d+)?|mean|median|max")
_BARE = {False: "ms", True: "a share"}
_EXAMPLE = 'write e.g. "ttft_p99<500ms,tpot_mean<50ms,error_rate<1%"'


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit.

    Attributes:
        text: As it was written.
        metric: A latency of LATENCY_METRICS, or "error".
        statistic: p0 ... p99.9, mean, median or max; "rate" for errors.
        inclusive: Whether the limit itself still meets it.
        most: The limit, ms for latencies, a share for rates.
    """

    text: str
    metric: str
    statistic: str
    inclusive: bool
    most: float

    @property
    def name(self) -> str:
        """What is limited: ttft_p99, error_rate."""
        return f"{self.metric}_{self.statistic}"

    @property
    def percentile(self) -> float | None:
        """The percentile that is limited; None for a mean, a maximum or a rate."""
        return percentile(self.statistic)

    @property
    def of_survivors(self) -> bool:
        """Whether it is on what only requests that succeed have: a mean, or gaps."""
        return self.statistic == "mean" or self.metric in GAPS

    def met_by(self, value: float | None) -> bool:
        """Whether `value` is within the limit; an unmeasured value is not, nor is one among failures, inf."""
        return value is not None and (value <= self.most if self.inclusive else value < self.most)


def parse(text: str) -> list[Limit]:
    """Read limits separated by commas.

    Raises:
        BadInput: A limit that is not understood.
    """
    return [_limit(part.strip()) for part in text.split(",")]


def demanded(text: str) -> list[Limit]:
    """What an SLO demands: its limits; and FAILURES, where all of them are on what only requests that succeed have.

    Raises:
        BadInput: A limit that is not understood.
    """
    limits = parse(text)
    return limits + parse(FAILURES) if all(limit.of_survivors for limit in limits) else limits


def is_limit(text: str) -> bool:
    """Whether a text has the form of a limit."""
    return _LIMIT.fullmatch(text) is not None


def _limit(text: str) -> Limit:
    match = _LIMIT.fullmatch(text)
    if match is None:
        bare = _BARE_METRIC.fullmatch(text)
        if bare is not None and bare[1] in LATENCY_METRICS:
            raise BadInput("--slo", f"{text!r} names no statistic", f"add one, as {bare[1]}_p99{bare[2]}")
        raise BadInput("--slo", f"{text!r} is no limit", _EXAMPLE)
    metric, statistic, sign, number, unit = match.groups()
    is_rate = f"{metric}_{statistic}" in RATES
    units = _SHARES if is_rate else _UNITS
    if not is_rate and metric not in LATENCY_METRICS:
        known = ", ".join((*LATENCY_METRICS, *RATES))
        raise BadInput("--slo", f"{text!r} limits no metric that is known", f"known are {known}; {_EXAMPLE}")
    if not is_rate and not _STATISTIC.fullmatch(statistic):
        raise BadInput("--slo", f"{text!r} limits no statistic that is known", f"known are {STATISTICS}; {_EXAMPLE}")
    if unit not in units:
        known = ", ".join(filter(None, units))
        raise BadInput("--slo", f"{text!r} has an unknown unit", f"known are {known}, or none for {_BARE[is_rate]}")
    try:
        most = float(number) * units[unit]
    except ValueError as error:
        raise BadInput("--slo", f"{text!r} has no number", _EXAMPLE) from error
    if is_rate and most > 1:
        raise BadInput("--slo", f"{text!r} is more than all requests", "write a share up to 1, or a percentage with %")
    return Limit(text, metric, statistic, sign == "<=", most)


def percentile(statistic: str) -> float | None:
    """Which percentile a statistic is; None for a mean, a maximum or a rate."""
    if statistic == "median":
        return 50.0
    return float(statistic[1:]) if statistic.startswith("p") else None


def named(name: str) -> tuple[str, str] | None:
    """The latency and the statistic that a name is of, as ttft_p99; None where it is of none."""
    metric, _, statistic = name.partition("_")
    known = metric in LATENCY_METRICS and _STATISTIC.fullmatch(statistic)
    return (metric, statistic) if known else None


def distribution(metric: str, clock: str) -> str:
    """Which distribution of a Snapshot a limit on a latency is held against.

    Args:
        metric: One of LATENCY_METRICS.
        clock: "due" or "sent", for the latencies that start with a request.
    """
    return f"{metric}_{clock}" if metric in ("ttft", "ttfo", "e2el") else metric


def judge(limits: list[Limit], lookup: Callable[[str, str], float | None]) -> list[dict[str, object]]:
    """Say of each limit whether it is met: rows with limit, value, beyond and met.

    Args:
        limits: The limits.
        lookup: Gives the value of (metric, statistic), in ms or as a share; None where it was not measured, inf where
            it lies among requests that failed: `beyond`, of which the row has no value.
    """
    rows: list[dict[str, object]] = []
    for limit in limits:
        value = lookup(limit.metric, limit.statistic)
        beyond = value == math.inf
        met = limit.met_by(value)
        rows.append({"limit": limit.text, "value": None if beyond else value, "beyond": beyond, "met": met})
    return rows


def parse_goodput(pairs: tuple[str, ...]) -> dict[str, int]:
    """Read --goodput limits, `ttft:200 tpot:50 e2el:5000` in ms, as metric to ns.

    Raises:
        BadInput: A pair that is not understood.
    """
    limits = {}
    for pair in pairs:
        metric, _, number = pair.partition(":")
        try:
            milliseconds = float(number)
        except ValueError:
            milliseconds = -1.0
        if metric not in ("ttft", "tpot", "e2el") or not 0 <= milliseconds < math.inf:
            raise BadInput("--goodput", f"{pair!r} is no limit", "write ttft:MS, tpot:MS or e2el:MS")
        limits[metric] = int(milliseconds * 1e6)
    return limits
