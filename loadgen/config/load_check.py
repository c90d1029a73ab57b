"""Checks of the load: whether rate, ramp, profile, users, classes, trace and duration fit
together.
"""

import math
from collections.abc import Sequence
from typing import Any

from loadgen.config import slo
from loadgen.config.load import ALL_PROMPTS, MAX_DURATION_S, MAX_REQUESTS, RATES
from loadgen.config.load_profile import CONCURRENCY, RATE
from loadgen.config.request_class import CLASS, LORA_MODULES, RequestClass, total_rate
from loadgen.config.run_fields import RunFields
from loadgen.config.slo import StopCondition
from loadgen.config.target import SIMULATOR
from loadgen.errors import BadInput, setting
from loadgen.util.number_format import duration, plural


def check(settings: RunFields) -> None:
    """Check the fields that say how much is sent, and when.

    Raises:
        BadInput: The first value that cannot be used.
    """
    if settings.classes:
        _check_classes(settings)
    if settings.keeps_trace_times:
        _check_trace(settings)
    _check_ramp(settings)
    _check_profile(settings)
    _check_duration(settings)
    _check_warmup(settings)
    _check_stop_conditions(settings)


def _check_warmup(settings: RunFields) -> None:
    if settings.warmup is None:
        return
    paced = math.isfinite(settings.request_rate) or settings.max_concurrency is not None
    if not paced or settings.keeps_trace_times:
        problem = "given without a rate or a concurrency that the whole run has"
        remedy = (
            f"give {setting.request_rate} or {setting.max_concurrency}, or {setting.num_warmups}"
        )
        raise BadInput(setting.warmup, problem, remedy)


def implied(settings: RunFields) -> dict[str, Any]:
    """Return the values that the kind of the load implies, by field.

    Raises:
        BadInput: The profile, or a class, is invalid.
    """
    profile = settings.load_profile
    return {
        "request_rate": total_rate(settings.classes),
        "duration": None if profile is None else profile.length_s,
        "max_concurrency": settings.users if profile is None else profile.highest,
    }


def check_class_data(
    settings: RunFields, classes: Sequence[tuple[RequestClass, RunFields]]
) -> None:
    """Check that the data sets of classes can be mixed.

    Args:
        settings: The settings of the run.
        classes: The classes, with the settings of each class alone.

    Raises:
        BadInput: A class has due times, or sessions whose number is not known.
    """
    if not any(request_class.data for request_class, _ in classes):
        return
    for request_class, class_settings in classes:
        if class_settings.keeps_trace_times:
            problem = "a trace with its own times cannot be mixed with other classes"
            raise BadInput((CLASS, request_class.name), problem, "add trace_times=ignore")
        by_count = settings.num_prompts is not None or (
            settings.duration is None and settings.load_profile is None
        )
        is_burst = math.isinf(settings.request_rate) and not settings.rate_changes
        if class_settings.timed_by_data and (by_count or is_burst):
            problem = "it has sessions, and the number of their turns is not known before"
            loads = (
                name
                for name in ("users", "concurrency_profile")
                if getattr(settings, name) is not None
            )
            load = setting(next(loads, "num_prompts"))
            remedy = f"give {setting.duration} and {setting.request_rate}, and no {load}"
            raise BadInput((CLASS, request_class.name), problem, remedy)


def _check_classes(settings: RunFields) -> None:
    if settings.lora_modules:
        raise BadInput(
            LORA_MODULES, f"given together with {CLASS}", "give each class its adapter with model="
        )
    rate = total_rate(settings.classes)
    if rate is not None:
        _check_class_rates(settings, rate)
    if settings.num_prompts == ALL_PROMPTS or settings.no_oversample:
        name = setting.no_oversample if settings.no_oversample else setting.num_prompts
        raise BadInput(
            name,
            f"given together with {CLASS}, of which each may have a data set",
            "give a number of prompts",
        )


def _check_class_rates(settings: RunFields, rate: float) -> None:
    RATES.check(setting.request_rate, rate)
    problem = "given together with classes that have rates of their own"
    for name in ("ramp_up_strategy", "rate_profile", "users", "concurrency_profile"):
        if getattr(settings, name) is not None:
            raise BadInput(setting(name), problem, "leave it out, or give each class a share")
    if not math.isclose(settings.request_rate, rate):
        raise BadInput(
            setting.request_rate, problem, "leave it out, or give each class a share of it"
        )
    if settings.burstiness != 1:
        problem = "classes with rates arrive as Poisson processes"
        raise BadInput(setting.burstiness, problem, "leave it out, or give each class a share")


def _check_trace(settings: RunFields) -> None:
    for name in (
        "request_rate",
        "burstiness",
        "ramp_up_strategy",
        "rate_profile",
        "concurrency_profile",
        "users",
    ):
        if getattr(settings, name) != getattr(RunFields, name):
            problem = "given together with a trace, which has its own times"
            raise BadInput(
                setting(name), problem, f"leave it out, or give {setting.trace_times} ignore"
            )


def _check_ramp(settings: RunFields) -> None:
    if settings.ramp_up_strategy is None:
        return
    start = settings.ramp_up_start_rps
    end = settings.ramp_up_end_rps
    if start is None or end is None:
        raise BadInput(
            setting.ramp_up_strategy,
            "given without rates",
            f"give {setting.ramp_up_start_rps} and {setting.ramp_up_end_rps}",
        )
    if not start < end or (settings.ramp_up_strategy == "exponential" and start == 0):
        problem = f"invalid ramp from {start:g} to {end:g} requests/s"
        remedy = "the rate must rise; an exponential ramp starts above 0"
        raise BadInput(setting.ramp_up_end_rps, problem, remedy)


def _check_profile(settings: RunFields) -> None:
    profile = settings.load_profile
    if profile is None:
        return
    quantity = RATE if settings.rate_profile is not None else CONCURRENCY
    if profile.length_s > MAX_DURATION_S:
        problem = f"lasts {profile.length_s:,.10g} s"
        raise BadInput(quantity.field, problem, f"give at most {MAX_DURATION_S:,.0f} s")
    requests = profile.mean * profile.length_s
    if quantity is RATE and requests > MAX_REQUESTS:
        raise BadInput(
            quantity.field,
            f"{requests:.3g} requests are too many",
            f"keep a run under {MAX_REQUESTS:,} requests",
        )


def _check_duration(settings: RunFields) -> None:
    if settings.duration is None or settings.keeps_trace_times or settings.load_profile is not None:
        return
    if math.isinf(settings.request_rate) and settings.ramp_up_strategy is None:
        has_cap = settings.max_concurrency is not None
        # The simulator's runs get a cap where no number of requests limits them.
        if not has_cap and (settings.num_prompts is not None or settings.engine != SIMULATOR):
            problem = "a duration does not limit requests that are all sent at once"
            remedy = (
                f"add {setting.request_rate} or {setting.max_concurrency}, or give "
                f"{setting.num_prompts} instead"
            )
            raise BadInput(setting.duration, problem, remedy)
        return
    rate = settings.request_rate if settings.ramp_up_end_rps is None else settings.ramp_up_end_rps
    if settings.num_prompts is None and rate * settings.duration > MAX_REQUESTS:
        problem = f"{rate * settings.duration:.3g} requests are too many"
        raise BadInput(setting.duration, problem, f"keep a run under {MAX_REQUESTS:,} requests")


def _check_stop_conditions(settings: RunFields) -> None:
    """Check that the conditions of a run can hold during it."""
    length_s, requests = _length_s(settings), settings.requests
    for condition in (
        StopCondition.parse(settings.stop_when) if settings.stop_when is not None else ()
    ):
        limit, over_s = condition.limit, condition.over_s
        if over_s is not None and over_s > length_s:
            problem = (
                f"{condition.text!r} looks back {duration(over_s)}, and the run sends for "
                f"{duration(length_s)}"
            )
            raise BadInput(slo.STOP_WHEN, problem, "give a shorter time, or a longer run")
        if limit.name in slo.RATES and limit.inclusive and limit.threshold >= 1:
            raise BadInput(
                slo.STOP_WHEN,
                f"{condition.text!r} never holds: no rate is above 100%",
                "give a lower limit",
            )
        if requests is None or requests < 1:  # their number is not known yet
            continue
        if limit.metric == slo.ERRORS and not requests > limit.threshold - (not limit.inclusive):
            problem = f"{condition.text!r} never holds in a run of {plural(requests, 'request')}"
            raise BadInput(
                slo.STOP_WHEN, problem, f"give a lower limit, or a larger {setting.num_prompts}"
            )
        if limit.metric not in slo.GAPS and condition.min_values > requests:
            problem = (
                f"{condition.text!r} is judged from {condition.min_values} requests on, and "
                f"the run has {requests}"
            )
            raise BadInput(
                slo.STOP_WHEN,
                problem,
                f"give a larger {setting.num_prompts}, or a condition that fewer can decide",
            )


def _length_s(settings: RunFields) -> float:
    """Return for how long the run sends at most, s; inf where that is not known."""
    if (profile := settings.load_profile) is not None:
        return profile.length_s
    if settings.duration is not None:
        return settings.duration
    paced = (
        math.isfinite(settings.request_rate)
        and settings.max_concurrency is None
        and not settings.timed_by_data
    )
    return settings.requests / settings.request_rate if paced and settings.requests else math.inf
