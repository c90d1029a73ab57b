"""The runs of a job with given loads, one of --profile or several of --stages, and the loads in
guidellm's terms.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Flags, setting, spelled
from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.arguments import FLAG_NAMES, read_number, read_whole_number
from loadgen.lab.gpustack.transient import Transients

UNLIMITED = -1.0  # GPUStack's request_rate
WITH_RATE = ("constant", "async", "poisson", "concurrent")
# The keys of a stage, and the settings that they are.
STAGE = {"rate": "request_rate", "max_requests": "num_prompts", "max_seconds": "duration"}


@dataclass(frozen=True)
class Strategy:
    """The load of a run, in guidellm's terms.

    Attributes:
        type_: guidellm's name of the profile.
        rate: Requests per second or, for concurrent, requests in flight; None if the profile has no
            rate.
        max_concurrency: Maximum number of requests in flight; None: no limit.
    """

    type_: str
    rate: float | None
    max_concurrency: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as guidellm writes it, where requests in flight are streams."""
        streams = self.type_ == "concurrent" and self.rate is not None
        return vars(self) | ({"streams": int(self.rate or 0)} if streams else {})


@dataclass(frozen=True)
class Step:
    """One run of a job.

    Attributes:
        settings: The settings of the run; its records are saved beside the summary.
        strategy: Its load in guidellm's terms.
        summary: The path of the summary.
    """

    settings: RunSettings
    strategy: Strategy
    summary: Path


def single(flags: dict[str, Any], common: dict[str, Any], output: Path) -> Step:
    """Return the run of --profile.

    Args:
        flags: The flags, as `arguments.parse` returns them.
        common: The fields of `RunSettings` that the flags for the server, the prompts and the
            limits set.
        output: The path of the summary.

    Raises:
        BadInput: The load is missing or wrong.
    """
    given_rates = [
        part for text in flags.get("rate", ()) for part in text.split(",") if part.strip()
    ]
    if len(given_rates) > 1:
        raise BadInput(
            "--rate",
            "has several values",
            "run them one after the other with --stages '[{\"rate\": 1}, ...]'",
        )
    of_scenario = "concurrent" if flags.get("axis") == "concurrency" else "constant"
    kind = flags.get("profile", of_scenario if "scenario" in flags else "sweep")
    if kind == "sweep":
        raise BadInput(
            "--profile",
            "sweep is not supported",
            "search with --auto-tune, or give --profile and --rate",
        )
    rate = read_number(given_rates[0], setting.request_rate) if given_rates else None
    return _step(flags, common, (kind, rate), output)


def stages(flags: dict[str, Any], common: dict[str, Any], output: Path) -> tuple[Step, ...]:
    """Return the runs of --stages.

    Args:
        flags: The flags, as `arguments.parse` returns them.
        common: The fields of `RunSettings` that the flags for the server, the prompts and the
            limits set.
        output: The path of which those of the summaries are made.

    Raises:
        BadInput: A stage is wrong.
    """
    if "profile" in flags:
        raise BadInput("--profile", "cannot be combined with --stages", "leave one of the two out")
    listed = flags["stages"]
    if (
        not isinstance(listed, list)
        or not listed
        or not all(isinstance(s, dict) and s.get("rate") is not None for s in listed)
    ):
        raise BadInput(
            "--stages",
            "is not a list of stages with a rate",
            'write [{"rate": 1, "max_requests": 100}]',
        )
    kind = "concurrent" if flags.get("axis") == "concurrency" else "constant"
    further = flags.get("seed_increment", True) and "random_seed" in flags
    steps = []
    for index, stage in enumerate(listed):
        if unknown := set(stage) - set(STAGE):
            raise BadInput(
                f"--stages {min(unknown)}", "unknown key", f"choose from {', '.join(STAGE)}"
            )
        fields = common | ({"seed": common["seed"] + index} if further else {})
        path = output.with_name(f"{output.stem}__stage{index}.json")
        names = {STAGE[key]: f"--stages {key}" for key in stage if stage[key] is not None}
        with spelled(Flags(FLAG_NAMES | names)):
            if stage.get("max_requests") is not None:
                fields["num_prompts"] = read_whole_number(
                    stage["max_requests"], setting.num_prompts
                )
            if stage.get("max_seconds") is not None:
                fields["duration"] = read_number(stage["max_seconds"], setting.duration)
            steps.append(
                _step(flags, fields, (kind, read_number(stage["rate"], setting.request_rate)), path)
            )
    return tuple(steps)


def _step(
    flags: dict[str, Any], fields: dict[str, Any], how: tuple[str, float | None], summary: Path
) -> Step:
    if fields.get("num_prompts") is None and fields.get("duration") is None:
        raise BadInput(
            "--max-requests", "missing, and so is --max-seconds", "give at least one of the two"
        )
    load, strategy = _load(how, flags, fields)
    records = str(summary.with_suffix(".records.jsonl"))
    settings = RunSettings(**fields | load | {"records": records}).checked()
    Transients.of(flags).check(settings)
    return Step(settings, strategy, summary)


def _load(
    how: tuple[str, float | None], flags: dict[str, Any], fields: dict[str, Any]
) -> tuple[dict[str, Any], Strategy]:
    kind, rate = how
    cap = flags.get("max_concurrency", presets.GPUSTACK["max_concurrency"])
    if rate is None and kind in WITH_RATE:
        rate = fields.get("request_rate")
    if kind in ("constant", "async", "poisson"):
        if rate is None:
            raise BadInput(setting.request_rate, "missing", "give requests per second")
        rate = math.inf if rate == UNLIMITED else rate
        load = {
            "request_rate": rate,
            "burstiness": 1.0 if kind == "poisson" else math.inf,
            "max_concurrency": cap,
        }
        return load, Strategy(kind, rate if math.isfinite(rate) else None, cap)
    if kind == "concurrent" and (rate is None or rate < 1 or not rate.is_integer()):
        raise BadInput(
            setting.request_rate,
            f"{rate} is not a number of requests in flight",
            "give a whole number of 1 or more",
        )
    if kind != "concurrent" and rate is not None:
        raise BadInput(
            setting.request_rate,
            f"cannot be combined with --profile {kind}, which has no rate",
            arguments.LEAVE_OUT,
        )
    cap = {"synchronous": 1, "concurrent": int(rate or 0)}.get(kind, cap)
    return {"request_rate": math.inf, "burstiness": 1.0, "max_concurrency": cap}, Strategy(
        kind, rate, cap
    )
