"""Checks of the load: whether rate, ramp, profile, users, trace and duration fit together."""

import math

from loadgen.config.load_profile import CONCURRENCY, RATE
from loadgen.config.option import flag
from loadgen.config.run_fields import RunFields
from loadgen.config.target import wants_simulator
from loadgen.config.think_time import ThinkTime
from loadgen.errors import BadInput

MAX_RATE = 1e6  # requests/s: far above what one host can send, far below what overflows int64 ns
MAX_REQUESTS = 50_000_000


def check(settings: RunFields) -> None:
    """Check the fields that say how much is sent, and when.

    Raises:
        BadInput: The first value that cannot be used.
    """
    _check_trace(settings)
    _check_ramp(settings)
    _check_profile(settings)
    _check_users(settings)
    _check_duration(settings)


def _check_trace(settings: RunFields) -> None:
    if not settings.keeps_trace_times:
        return
    for name in ("request_rate", "burstiness", "ramp_up_strategy", "rate_profile", "concurrency_profile", "users"):
        if getattr(settings, name) != getattr(RunFields, name):
            problem = "given together with a trace, which has its own times"
            raise BadInput(flag(name), problem, "leave it out, or give --trace-times ignore")


def _check_ramp(settings: RunFields) -> None:
    start, end = settings.ramp_up_start_rps, settings.ramp_up_end_rps
    if settings.ramp_up_strategy is None:
        if (start, end) != (None, None):
            raise BadInput(
                "--ramp-up-strategy", "missing, although ramp-up rates are given", "give linear or exponential"
            )
        return
    if start is None or end is None:
        raise BadInput("--ramp-up-strategy", "given without rates", "give --ramp-up-start-rps and --ramp-up-end-rps")
    if math.isfinite(settings.request_rate):
        raise BadInput("--request-rate", "given together with a ramp", "leave it out: the ramp has its own rates")
    if not start < end <= MAX_RATE or (settings.ramp_up_strategy == "exponential" and start == 0):
        problem = f"invalid ramp from {start:g} to {end:g} requests/s"
        raise BadInput("--ramp-up-end-rps", problem, "the rate must rise; an exponential ramp starts above 0")


def _check_profile(settings: RunFields) -> None:
    profile = settings.load_profile
    if profile is None:
        return
    own, other = (RATE, ["concurrency_profile"]) if settings.rate_profile is not None else (CONCURRENCY, [])
    for name in ("request_rate", "ramp_up_strategy", "num_prompts", "users", *other):
        if getattr(settings, name) != getattr(RunFields, name):
            raise BadInput(flag(name), f"given together with {own.flag}, which sets it", "leave it out")
    if settings.duration not in (None, profile.length_s):
        raise BadInput("--duration", f"given together with {own.flag}, which has its own length", "leave it out")
    if own is CONCURRENCY:
        if settings.max_concurrency != profile.highest:
            raise BadInput("--max-concurrency", f"given together with {own.flag}, which sets it", "leave it out")
        return
    if profile.highest > MAX_RATE:
        raise BadInput(own.flag, f"{profile.highest:g} requests/s", f"give at most {MAX_RATE:g} requests/s")
    if profile.mean * profile.length_s > MAX_REQUESTS:
        problem = f"{profile.mean * profile.length_s:.3g} requests are too many"
        raise BadInput(own.flag, problem, f"keep a run under {MAX_REQUESTS:,} requests")


def _check_users(settings: RunFields) -> None:
    if settings.users is None:
        return
    ThinkTime.parse(settings.think_time)
    for name in ("request_rate", "ramp_up_strategy"):
        if getattr(settings, name) != getattr(RunFields, name):
            problem = "given together with --users, who send when they have thought"
            raise BadInput(flag(name), problem, "leave it out, or --users")
    if settings.max_concurrency != settings.users:
        raise BadInput("--max-concurrency", "given together with --users, which sets it", "leave it out")


def _check_duration(settings: RunFields) -> None:
    if settings.duration is None or settings.keeps_trace_times or settings.load_profile is not None:
        return
    if math.isinf(settings.request_rate) and settings.ramp_up_strategy is None:
        has_cap = settings.max_concurrency is not None
        # The simulator's runs get a cap where no number of requests limits them.
        if not has_cap and (settings.num_prompts is not None or not wants_simulator(settings)):
            problem = "a duration does not limit requests that are all sent at once"
            remedy = "add --request-rate or --max-concurrency, or give --num-prompts instead"
            raise BadInput("--duration", problem, remedy)
        return
    rate = settings.request_rate if settings.ramp_up_end_rps is None else settings.ramp_up_end_rps
    if settings.num_prompts is None and rate * settings.duration > MAX_REQUESTS:
        problem = f"{rate * settings.duration:.3g} requests are too many"
        raise BadInput("--duration", problem, f"keep a run under {MAX_REQUESTS:,} requests")
