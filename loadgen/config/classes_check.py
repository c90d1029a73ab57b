"""Checks of classes of requests: whether they fit together with the load and the data set of the run."""

import math
from collections.abc import Sequence

from loadgen.config import lora
from loadgen.config.class_text import CLASS
from loadgen.config.load import ALL_PROMPTS
from loadgen.config.option import flag
from loadgen.config.request_class import RequestClass, total_rate
from loadgen.config.run_fields import RunFields
from loadgen.errors import BadInput


def check(settings: RunFields) -> None:
    """Check the fields of a run that concern classes.

    Raises:
        BadInput: The first value that cannot be used.
    """
    if not settings.classes:
        return
    if settings.lora_modules:
        raise BadInput(lora.MODULES, f"given together with {CLASS}", "give each class its adapter with model=")
    _check_rates(settings)
    if settings.num_prompts == ALL_PROMPTS or settings.no_oversample:
        name = "--no-oversample" if settings.no_oversample else "--num-prompts"
        raise BadInput(
            name, f"given together with {CLASS}, of which each may have a data set", "give a number of prompts"
        )


def _check_rates(settings: RunFields) -> None:
    rate = total_rate(settings.classes)
    if rate is None:
        return
    problem = "given together with classes that have rates of their own"
    for name in ("ramp_up_strategy", "rate_profile", "users", "concurrency_profile"):
        if getattr(settings, name) is not None:
            raise BadInput(flag(name), problem, "leave it out, or give each class a share")
    if not math.isclose(settings.request_rate, rate):
        raise BadInput("--request-rate", problem, "leave it out, or give each class a share of it")
    if settings.burstiness != 1:
        problem = "classes with rates arrive as Poisson processes"
        raise BadInput("--burstiness", problem, "leave it out, or give each class a share")


def check_data(settings: RunFields, each: Sequence[tuple[RequestClass, RunFields]]) -> None:
    """Check that the data sets of classes can be mixed.

    Args:
        settings: The settings of the run.
        each: The classes, with the settings of each alone.

    Raises:
        BadInput: One has due times, or sessions whose number is not known.
    """
    if not any(one.data for one, _ in each):
        return
    for one, own in each:
        if own.keeps_trace_times:
            problem = f"{one.name}: a trace with its own times cannot be mixed with other classes"
            raise BadInput(CLASS, problem, "add trace_times=ignore")
        by_count = settings.num_prompts is not None or (settings.duration is None and settings.load_profile is None)
        is_burst = math.isinf(settings.request_rate) and not settings.rate_changes
        if own.timed_by_data and (by_count or is_burst):
            problem = f"{one.name}: it has sessions, and the number of their turns is not known before"
            given = (name for name in ("users", "concurrency_profile") if getattr(settings, name) is not None)
            without = flag(next(given, "num_prompts"))
            raise BadInput(CLASS, problem, f"give --duration and --request-rate, and no {without}")
