"""Search check: whether the settings of a search contradict what a search varies itself."""

import math
from collections.abc import Mapping
from typing import Any

from loadgen.config.data import TRACE
from loadgen.config.load import ALL_PROMPTS, AXES, SWEPT
from loadgen.config.settings import RunSettings
from loadgen.config.target import check_server
from loadgen.errors import BadInput, setting
from loadgen.workload import endpoints

# A search has loads and ends of its own.
OF_SINGLE_RUNS = (
    "ramp_up_strategy",
    "ramp_up_start_rps",
    "ramp_up_end_rps",
    "rate_profile",
    "concurrency_profile",
    "users",
    "stop_when",
)


def check_requested(requested: RunSettings) -> None:
    """Check all settings of a search.

    Raises:
        BadInput: A search cannot have one of them, or a value cannot be used.
    """
    if requested.junit is not None:
        raise BadInput(
            setting.junit,
            "is for single runs: those of a search are meant to miss the limits",
            "leave it out",
        )
    if requested.dataset_name == TRACE:
        problem = "a trace sets its own request rate, which a search must vary"
        raise BadInput(setting.dataset_name, problem, "choose another data set")
    if requested.random_batch_size > 1:
        problem = (
            f"makes {setting.num_prompts} a number of texts, and a search chooses numbers of "
            "requests"
        )
        raise BadInput(
            setting.random_batch_size,
            problem,
            "leave it out, or measure rates with `loadgen run --rate 1,2,4`",
        )
    check_several(requested)
    # A --duration needs a finite rate.
    rate = requested.request_rate if math.isfinite(requested.request_rate) else 1.0
    check_server(endpoints.checked(requested.replace(request_rate=rate)))


def check_several(requested: RunSettings) -> None:
    """Check what no series of runs can have.

    Raises:
        BadInput: A class has limits of its own.
    """
    if any(request_class.slo for request_class in requested.request_classes):
        problem = (
            "limits of a class are judged in single runs: several runs are judged by all "
            "requests together"
        )
        raise BadInput(setting.classes, problem, f"leave slo out, and give {setting.slo}")


def check_chosen(chosen: Mapping[str, Any], over: str) -> None:
    """Check that no setting contradicts a search.

    Args:
        chosen: The settings that were given for this search, by name, without those of a workload.
        over: rate or concurrency.

    Raises:
        BadInput: `slo` is missing, `over` is another word, or a setting is of what the search
            itself varies.
    """
    if over not in AXES:
        raise BadInput(setting.over, f"{over!r} is not a load", f"use {' or '.join(AXES)}")
    if not chosen.get("slo"):
        raise BadInput(
            setting.slo,
            "missing",
            'give the limits to meet, for example "ttft_p99<500ms,tpot_p99<50ms,error_rate<1%"',
        )
    for name in SWEPT:
        if isinstance(chosen.get(name), tuple):
            remedy = "give the first one to try"
            raise BadInput(setting(name), "takes one value in a search", remedy)
    for name in OF_SINGLE_RUNS:
        if chosen.get(name) is not None:
            problem = "does not apply to a search, which gives each run a constant load and ends it"
            raise BadInput(setting(name), problem, "leave it out")
    if "max_error_rate" in chosen:
        raise BadInput(
            setting.max_error_rate,
            f"does not apply to a search: {setting.slo} sets the limit",
            f"add error_rate<1% to {setting.slo}",
        )
    if over == "concurrency" and math.isfinite(chosen.get("request_rate", math.inf)):
        raise BadInput(
            setting.request_rate,
            f"cannot be combined with {setting.over} concurrency",
            "leave one of the two out",
        )
    if chosen.get("num_prompts") == ALL_PROMPTS:
        problem = f"{ALL_PROMPTS} is not a number of requests, which each run of a search needs"
        raise BadInput(setting.num_prompts, problem, "give a number, or leave it out")
    if chosen.get("duration") is not None and over == "concurrency":
        problem = (
            f"cannot be combined with {setting.over} concurrency, where the number of requests "
            "ends a run"
        )
        raise BadInput(setting.duration, problem, f"leave it out, or give {setting.num_prompts}")
    if chosen.get("duration") is not None and chosen.get("num_prompts") is not None:
        raise BadInput(
            setting.duration,
            f"cannot be combined with {setting.num_prompts} in a search",
            "leave one of the two out",
        )
