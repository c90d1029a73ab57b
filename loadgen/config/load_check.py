"""Checks of the load: whether rate, ramp, profile, users, classes, trace and duration fit
together.
"""

import math
from collections.abc import Sequence

from loadgen.config.load import ALL_PROMPTS, EXCLUDED
from loadgen.config.load_profile import CONCURRENCY, MAX_RATE, RATE
from loadgen.config.option import flag
from loadgen.config.request_class import CLASS, LORA_MODULES, RequestClass, total_rate
from loadgen.config.run_fields import RunFields
from loadgen.config.target import SIMULATOR
from loadgen.config.user_behavior import ThinkTime
from loadgen.errors import BadInput

MAX_DURATION_S = 30 * 86400.0
MAX_REQUESTS = 50_000_000


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
    _check_excluded(settings)
    _check_profile(settings)
    if settings.users is not None:
        ThinkTime.parse(settings.think_time)
    _check_duration(settings)
    _check_warmup(settings)


def _check_warmup(settings: RunFields) -> None:
    if settings.warmup is None:
        return
    if settings.num_warmups:
        raise BadInput("--warmup", "given together with --num-warmups", "leave one of the two out")
    paced = math.isfinite(settings.request_rate) or settings.max_concurrency is not None
    if not paced or settings.keeps_trace_times:
        problem = "given without a rate or a concurrency that the whole run has"
        raise BadInput("--warmup", problem, "give --rate or --max-concurrency, or --num-warmups")


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
            problem = (
                f"{request_class.name}: a trace with its own times cannot be mixed with "
                "other classes"
            )
            raise BadInput(CLASS, problem, "add trace_times=ignore")
        by_count = settings.num_prompts is not None or (
            settings.duration is None and settings.load_profile is None
        )
        is_burst = math.isinf(settings.request_rate) and not settings.rate_changes
        if class_settings.timed_by_data and (by_count or is_burst):
            problem = (
                f"{request_class.name}: it has sessions, and the number of their turns is "
                "not known before"
            )
            loads = (
                name
                for name in ("users", "concurrency_profile")
                if getattr(settings, name) is not None
            )
            raise BadInput(
                CLASS,
                problem,
                f"give --duration and --request-rate, and no {flag(next(loads, 'num_prompts'))}",
            )


def _check_classes(settings: RunFields) -> None:
    if settings.lora_modules:
        raise BadInput(
            LORA_MODULES, f"given together with {CLASS}", "give each class its adapter with model="
        )
    rate = total_rate(settings.classes)
    if rate is not None:
        _check_class_rates(settings, rate)
    if settings.num_prompts == ALL_PROMPTS or settings.no_oversample:
        name = "--no-oversample" if settings.no_oversample else "--num-prompts"
        raise BadInput(
            name,
            f"given together with {CLASS}, of which each may have a data set",
            "give a number of prompts",
        )


def _check_class_rates(settings: RunFields, rate: float) -> None:
    problem = "given together with classes that have rates of their own"
    for name in ("ramp_up_strategy", "rate_profile", "users", "concurrency_profile"):
        if getattr(settings, name) is not None:
            raise BadInput(flag(name), problem, "leave it out, or give each class a share")
    if not math.isclose(settings.request_rate, rate):
        raise BadInput("--request-rate", problem, "leave it out, or give each class a share of it")
    if settings.burstiness != 1:
        problem = "classes with rates arrive as Poisson processes"
        raise BadInput("--burstiness", problem, "leave it out, or give each class a share")


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
            raise BadInput(flag(name), problem, "leave it out, or give --trace-times ignore")


def _check_ramp(settings: RunFields) -> None:
    start = settings.ramp_up_start_rps
    end = settings.ramp_up_end_rps
    if settings.ramp_up_strategy is None:
        if (start, end) != (None, None):
            raise BadInput(
                "--ramp-up-strategy",
                "missing, although ramp-up rates are given",
                "give linear or exponential",
            )
        return
    if start is None or end is None:
        raise BadInput(
            "--ramp-up-strategy",
            "given without rates",
            "give --ramp-up-start-rps and --ramp-up-end-rps",
        )
    if end > MAX_RATE:
        raise BadInput(
            "--ramp-up-end-rps",
            f"{end:,.10g} requests/s",
            f"give at most {MAX_RATE:,.0f} requests/s",
        )
    if not start < end or (settings.ramp_up_strategy == "exponential" and start == 0):
        problem = f"invalid ramp from {start:g} to {end:g} requests/s"
        raise BadInput(
            "--ramp-up-end-rps", problem, "the rate must rise; an exponential ramp starts above 0"
        )


def _check_excluded(settings: RunFields) -> None:
    profile = settings.load_profile
    implied = {
        "duration": None if profile is None else profile.length_s,
        "max_concurrency": settings.users if profile is None else profile.highest,
    }
    for load, names in EXCLUDED.items():
        if getattr(settings, load) is not None:
            for name in names:
                if getattr(settings, name) not in (getattr(RunFields, name), implied.get(name)):
                    problem = (
                        f"given together with {flag(load)}, which says itself when requests "
                        "are sent"
                    )
                    raise BadInput(flag(name), problem, "leave it out")


def _check_profile(settings: RunFields) -> None:
    profile = settings.load_profile
    if profile is None:
        return
    quantity = RATE if settings.rate_profile is not None else CONCURRENCY
    if profile.length_s > MAX_DURATION_S:
        problem = f"lasts {profile.length_s:,.10g} s"
        raise BadInput(quantity.flag, problem, f"give at most {MAX_DURATION_S:,.0f} s")
    requests = profile.mean * profile.length_s
    if quantity is RATE and requests > MAX_REQUESTS:
        raise BadInput(
            quantity.flag,
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
            remedy = "add --request-rate or --max-concurrency, or give --num-prompts instead"
            raise BadInput("--duration", problem, remedy)
        return
    rate = settings.request_rate if settings.ramp_up_end_rps is None else settings.ramp_up_end_rps
    if settings.num_prompts is None and rate * settings.duration > MAX_REQUESTS:
        problem = f"{rate * settings.duration:.3g} requests are too many"
        raise BadInput("--duration", problem, f"keep a run under {MAX_REQUESTS:,} requests")
