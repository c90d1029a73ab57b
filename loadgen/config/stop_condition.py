"""`StopCondition`: what ends a run before its time, such as `ttft_p99>2s over 10s`."""

import math
import re
from dataclasses import dataclass
from typing import Self

from loadgen.config import slo
from loadgen.config.run_fields import RunFields
from loadgen.errors import BadInput
from loadgen.util.number_format import duration, parse_seconds, plural

STOP_WHEN = "--stop-when"
ERRORS = "errors"
REMEDY = 'write for example "ttft_p99>2s over 10s", "error_rate>5%" or "errors>100", with the metrics of --slo'
MIN_ENDED = 30  # requests, before their error rate is judged
_FORM = re.compile(r"\s*([a-z0-9]+_?[\w.]*)\s*(>=?)\s*([^\s>=]+)(?:\s+over\s+(\S+))?\s*")


@dataclass(frozen=True, slots=True)
class StopCondition:
    """One condition.

    Attributes:
        text: The condition, as it is reported.
        limit: What holds as long as the run goes on. Of `errors` it is a number of failed requests.
        over_s: How much of the run before the moment is judged, s; None: all of it.
    """

    text: str
    limit: slo.Limit
    over_s: float | None

    @classmethod
    def parse(cls, text: str) -> tuple[Self, ...]:
        """Parse conditions separated by commas.

        Raises:
            BadInput: One cannot be parsed.
        """
        return tuple(cls._one(part) for part in text.split(","))

    @classmethod
    def _one(cls, text: str) -> Self:
        form = _FORM.fullmatch(text)
        if form is None:
            raise BadInput(STOP_WHEN, f"invalid condition {text.strip()!r}", REMEDY)
        name, sign, value, over = form.groups()
        kept = "<" if sign == ">=" else "<="
        try:
            if name == ERRORS:
                limit = slo.Limit(f"{name}{kept}{value}", ERRORS, "count", sign == ">", int(value))
            else:
                (limit,) = slo.parse(f"{name}{kept}{value}")
            over_s = None if over is None else parse_seconds(over)
        except (BadInput, ValueError) as error:
            raise BadInput(STOP_WHEN, f"invalid condition {text.strip()!r}", REMEDY) from error
        if not limit.met_by(0.0):
            raise BadInput(STOP_WHEN, f"{text.strip()!r} holds from the start", "give a limit above 0")
        if over_s is not None and not 1 <= over_s < math.inf:
            raise BadInput(
                STOP_WHEN, f"invalid time in {text.strip()!r}", "give 1 s or more: it is looked at each second"
            )
        return cls(" over ".join([f"{name}{sign}{value}", *([over] if over else [])]), limit, over_s)

    def with_unit(self, value: float) -> str:
        """Format a value of what it limits: a latency in ms, a share as a percentage, or a number of errors."""
        if self.limit.metric == ERRORS:
            return f"{value:g}"
        return f"{100 * value:.4g}%" if self.limit.name in slo.RATES else f"{value:.4g} ms"

    @property
    def min_values(self) -> int:
        """How many requests, or gaps between tokens, must have been measured before it is judged."""
        if self.limit.metric == ERRORS:
            return 0
        if self.limit.name in slo.RATES:
            return MIN_ENDED
        percentile = self.limit.percentile
        return 1 if percentile is None else math.ceil(round(100 / (100 - percentile), 6))


def check(settings: RunFields) -> None:
    """Check that the conditions of a run can hold during it."""
    length_s, requests = _length_s(settings), settings.requests
    for condition in StopCondition.parse(settings.stop_when) if settings.stop_when is not None else ():
        limit, over_s = condition.limit, condition.over_s
        if over_s is not None and over_s > length_s:
            problem = f"{condition.text!r} looks back {duration(over_s)}, and the run sends for {duration(length_s)}"
            raise BadInput(STOP_WHEN, problem, "give a shorter time, or a longer run")
        if limit.name in slo.RATES and limit.inclusive and limit.threshold >= 1:
            raise BadInput(STOP_WHEN, f"{condition.text!r} never holds: no rate is above 100%", "give a lower limit")
        if requests is None or requests < 1:  # their number is not known yet
            continue
        if limit.metric == ERRORS and not requests > limit.threshold - (not limit.inclusive):
            problem = f"{condition.text!r} never holds in a run of {plural(requests, 'request')}"
            raise BadInput(STOP_WHEN, problem, "give a lower limit, or a larger --num-prompts")
        if limit.metric not in slo.GAPS and condition.min_values > requests:
            problem = (
                f"{condition.text!r} is judged from {condition.min_values} requests on, and the run has {requests}"
            )
            raise BadInput(STOP_WHEN, problem, "give a larger --num-prompts, or a condition that fewer can decide")


def _length_s(settings: RunFields) -> float:
    """Return for how long the run sends at most, s; inf where that is not known."""
    if (profile := settings.load_profile) is not None:
        return profile.length_s
    if settings.duration is not None:
        return settings.duration
    paced = math.isfinite(settings.request_rate) and settings.max_concurrency is None and not settings.timed_by_data
    return settings.requests / settings.request_rate if paced and settings.requests else math.inf
