"""The grammar of SLO limits on the results of a run, such as
`ttft_p99<500ms,tpot_mean<50ms,error_rate<1%`.

`itl` is the gap between tokens, `icl` (inter-chunk latency) the gap between events with tokens.
Judge tails by `icl`: where an event brings several tokens, the gaps of `itl` are equal parts of the
one measured gap.

A failed request misses every limit: `ttft_p99<500ms` means that 99 % of all requests have a TTFT
below 500 ms. Means, and percentiles of gaps, are over successful requests only; if an SLO has no
other limit, DEFAULT_LIMIT is added.

A `StopCondition`, such as `ttft_p99>2s over 10s`, is a limit of this grammar that ends a run when
it is not met.
"""

import math
import re
from collections.abc import Callable
from typing import Self

from msgspec import Struct

from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_seconds

LATENCY_METRICS = ("ttft", "ttfo", "tpot", "itl", "icl", "e2el")
GAPS = ("itl", "icl")  # latencies with many values per request
RATES = ("error_rate",)
DEFAULT_LIMIT = "error_rate<1%"  # added where no other limit counts failed requests
STATISTICS = "p50, p90, p99, p99.9, ..., mean, median, max"
STOP_WHEN = setting.stop_when
ERRORS = "errors"
STOP_WHEN_REMEDY = (
    'write for example "ttft_p99>2s over 10s", "error_rate>5%" or "errors>100", '
    f"with the metrics of {setting.slo}"
)
MIN_ENDED = 30  # requests, before their error rate is judged
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "": 1.0}
_SHARES = {"%": 0.01, "": 1.0}
_LIMIT = r"\s*([A-Za-z0-9]+)[_ ](\w[\w.]*)\s*(<=?)\s*([0-9.]+)\s*([a-z%]*)\s*"
_BARE_METRIC = r"([a-z0-9]+)\s*(<.*)"
_STATISTIC = r"p\d{1,2}(\.\d+)?|mean|median|max"
_BARE = {False: "ms", True: "a share"}
_EXAMPLE = 'write for example "ttft_p99<500ms,tpot_mean<50ms,error_rate<1%"'
_CONDITION = r"\s*([a-z0-9]+_?[\w.]*)\s*(>=?)\s*([^\s>=]+)(?:\s+over\s+(\S+))?\s*"


class Limit(Struct, frozen=True):
    """A limit of an SLO.

    Attributes:
        text: The limit as it was written.
        metric: A latency of LATENCY_METRICS, or "error".
        statistic: p0 ... p99.9, mean, median or max; "rate" for errors.
        inclusive: Whether a value equal to the limit meets it (<=).
        threshold: The limit, in ms for latencies, as a share for rates.
    """

    text: str
    metric: str
    statistic: str
    inclusive: bool
    threshold: float

    @property
    def name(self) -> str:
        """The limited quantity: ttft_p99, error_rate."""
        return f"{self.metric}_{self.statistic}"

    @property
    def percentile(self) -> float | None:
        """The limited percentile; None for a mean, a maximum or a rate."""
        return percentile(self.statistic)

    @property
    def of_survivors(self) -> bool:
        """Whether the quantity covers successful requests only: a mean, or gaps."""
        return self.statistic == "mean" or self.metric in GAPS

    def met_by(self, value: float | None, error: float = 0.0) -> bool | None:
        """Return whether a value meets the limit; None if the answer depends on its error.

        Args:
            value: The value; None (not measured) and inf (a failed request) never meet a limit.
            error: How far the value can be from the truth, in the same unit.
        """
        if value is None:
            return False
        ends = (value - error, value + error)
        least, most = (
            end <= self.threshold if self.inclusive else end < self.threshold for end in ends
        )
        return most if least == most else None


def parse(text: str) -> list[Limit]:
    """Parse limits separated by commas.

    Raises:
        BadInput: A limit cannot be parsed.
    """
    return [_limit(part.strip()) for part in text.split(",")]


def required_limits(text: str) -> list[Limit]:
    """Parse an SLO, and add DEFAULT_LIMIT where all its limits cover successful requests only.

    Raises:
        BadInput: A limit cannot be parsed.
    """
    limits = parse(text)
    return limits + parse(DEFAULT_LIMIT) if all(limit.of_survivors for limit in limits) else limits


def parse_goodput(pairs: tuple[str, ...]) -> dict[str, int]:
    """Parse --goodput limits, `ttft:200 tpot:50 e2el:5000` in ms, and return ns by metric.

    Raises:
        BadInput: A pair cannot be parsed.
    """
    limits = {}
    for pair in pairs:
        metric, _, number = pair.partition(":")
        try:
            milliseconds = float(number)
        except ValueError:
            milliseconds = -1.0
        if metric not in ("ttft", "tpot", "e2el") or not 0 <= milliseconds < math.inf:
            raise BadInput(
                setting.goodput, f"invalid limit {pair!r}", "write ttft:MS, tpot:MS or e2el:MS"
            )
        limits[metric] = int(milliseconds * 1e6)
    return limits


def judge(
    limits: list[Limit], lookup: Callable[[str, str], tuple[float | None, float | None]]
) -> list[dict[str, object]]:
    """Judge each limit of an SLO.

    Args:
        limits: The limits.
        lookup: Returns the value of (metric, statistic), in ms or as a share, and the error that
            the client may have added, in ms. The value is None if it was not measured, inf if it
            falls among failed requests; the error is None where there is none, inf where it has no
            bound.

    Returns:
        A row for each limit: `limit` (its text), `value` (None where not measured or beyond),
            `client_error_ms`,
        `beyond` (whether the value falls among failed requests) and `met` (None where that depends
        on the error).
    """
    rows: list[dict[str, object]] = []
    for limit in limits:
        value, error = lookup(limit.metric, limit.statistic)
        beyond = value == math.inf
        rows.append(
            {
                "limit": limit.text,
                "value": None if beyond else value,
                "client_error_ms": None if error == math.inf else error,
                "beyond": beyond,
                "met": limit.met_by(value, error or 0.0),
            }
        )
    return rows


def percentile(statistic: str) -> float | None:
    """Return the percentile of a statistic: p99 -> 99.0, median -> 50.0; None for a mean, a
    maximum or a rate.
    """
    if statistic == "median":
        return 50.0
    return float(statistic[1:]) if statistic.startswith("p") else None


def split_name(name: str) -> tuple[str, str] | None:
    """Split a name such as ttft_p99 into latency and statistic; None where it is not such a
    name.
    """
    metric, _, statistic = name.partition("_")
    is_latency = metric in LATENCY_METRICS and re.fullmatch(_STATISTIC, statistic)
    return (metric, statistic) if is_latency else None


def distribution(metric: str, clock: str) -> str:
    """Return the name of the distribution in a snapshot to which a limit on a latency applies.

    Args:
        metric: One of LATENCY_METRICS.
        clock: "due" or "sent": the start of latencies that begin with a request.
    """
    return f"{metric}_{clock}" if metric in ("ttft", "ttfo", "e2el") else metric


class StopCondition(Struct, frozen=True):
    """A condition that ends a run before its time.

    Attributes:
        text: The condition, as it is reported.
        limit: What holds as long as the run goes on. Of `errors` it is a number of failed requests.
        over_s: How much of the run before the moment is judged, s; None: all of it.
    """

    text: str
    limit: Limit
    over_s: float | None

    @classmethod
    def parse(cls, text: str) -> tuple[Self, ...]:
        """Parse conditions separated by commas.

        Raises:
            BadInput: One cannot be parsed.
        """
        return tuple(cls._parse_condition(part) for part in text.split(","))

    @classmethod
    def _parse_condition(cls, text: str) -> Self:
        form = re.fullmatch(_CONDITION, text)
        if form is None:
            raise BadInput(STOP_WHEN, f"invalid condition {text.strip()!r}", STOP_WHEN_REMEDY)
        name, sign, value, over = form.groups()
        kept = "<" if sign == ">=" else "<="
        try:
            if name == ERRORS:
                limit = Limit(f"{name}{kept}{value}", ERRORS, "count", sign == ">", int(value))
            else:
                (limit,) = parse(f"{name}{kept}{value}")
            over_s = None if over is None else parse_seconds(over)
        except (BadInput, ValueError) as error:
            raise BadInput(
                STOP_WHEN, f"invalid condition {text.strip()!r}", STOP_WHEN_REMEDY
            ) from error
        if not limit.met_by(0.0):
            raise BadInput(
                STOP_WHEN, f"{text.strip()!r} holds from the start", "give a limit above 0"
            )
        if over_s is not None and not 1 <= over_s < math.inf:
            raise BadInput(
                STOP_WHEN,
                f"invalid time in {text.strip()!r}",
                "give 1 s or more: it is looked at each second",
            )
        return cls(
            " over ".join([f"{name}{sign}{value}", *([over] if over else [])]), limit, over_s
        )

    def with_unit(self, value: float) -> str:
        """Format a value of what it limits: a latency in ms, a share as a percentage, or a
        number of errors.
        """
        if self.limit.metric == ERRORS:
            return f"{value:g}"
        return f"{100 * value:.4g}%" if self.limit.name in RATES else f"{value:.4g} ms"

    @property
    def min_values(self) -> int:
        """How many requests, or gaps between tokens, must have been measured before it is
        judged.
        """
        if self.limit.metric == ERRORS:
            return 0
        if self.limit.name in RATES:
            return MIN_ENDED
        percentile = self.limit.percentile
        return 1 if percentile is None else math.ceil(round(100 / (100 - percentile), 6))


def _limit(text: str) -> Limit:
    match = re.fullmatch(_LIMIT, text)
    if match is None:
        bare = re.fullmatch(_BARE_METRIC, text)
        if bare is None:
            raise BadInput(setting.slo, f"invalid limit {text!r}", _EXAMPLE)
        if bare[1] in LATENCY_METRICS:
            raise BadInput(
                setting.slo,
                f"{text!r} has no statistic",
                f"write for example {bare[1]}_p99{bare[2]}",
            )
        raise _unknown_metric(text)
    metric, statistic, sign, number, unit = match.groups()
    metric, statistic = metric.lower(), statistic.lower()  # tables show "TTFT p99"
    is_rate = f"{metric}_{statistic}" in RATES
    units = _SHARES if is_rate else _UNITS
    if not is_rate and metric not in LATENCY_METRICS:
        raise _unknown_metric(text)
    if not is_rate and not re.fullmatch(_STATISTIC, statistic):
        raise BadInput(
            setting.slo, f"unknown statistic in {text!r}", f"choose from {STATISTICS}; {_EXAMPLE}"
        )
    if unit not in units:
        names = ", ".join(filter(None, units))
        raise BadInput(
            setting.slo,
            f"unknown unit in {text!r}",
            f"choose from {names}, or none for {_BARE[is_rate]}",
        )
    try:
        threshold = float(number) * units[unit]
    except ValueError as error:
        raise BadInput(setting.slo, f"invalid number in {text!r}", _EXAMPLE) from error
    if is_rate and threshold > 1:
        raise BadInput(
            setting.slo,
            f"{text!r} allows a rate above 1",
            "write a share up to 1, or a percentage with %",
        )
    return Limit(text, metric, statistic, sign == "<=", threshold)


def _unknown_metric(text: str) -> BadInput:
    names = ", ".join((*LATENCY_METRICS, *RATES))
    return BadInput(setting.slo, f"unknown metric in {text!r}", f"choose from {names}; {_EXAMPLE}")
