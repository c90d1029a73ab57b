"""Checks of `--stop-when`: whether its conditions can hold during the run."""

import math

from loadgen.config import slo
from loadgen.config.run_fields import RunFields
from loadgen.config.stop_condition import ERRORS, STOP_WHEN, StopCondition
from loadgen.errors import BadInput
from loadgen.util.number_format import duration, plural


def check(settings: RunFields) -> None:
    """Check the conditions.

    Raises:
        BadInput: One is invalid, or can never hold.
    """
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
