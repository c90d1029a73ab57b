"""AutoTune: the search of --auto-tune, its range, its limits and its budget."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.config.option import ABOVE_0, FINITE, FROM_1, Range, flag
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.steps import Strategy
from loadgen.lab.gpustack.transient import Transients

if TYPE_CHECKING:
    from loadgen.config.load import AxisName

MAX_FAILED = 0.05  # share of the requests of a load; GPUStack recommends no point above it
RUN_S = 30.0  # minimum duration of a run at a rate: GPUStack's
MAX_IN_FLIGHT = 5_000  # at a rate: a run whose requests pile up is stopped before
FLAGS = ("lower_bound", "upper_bound", "max_points", "max_total_seconds", *arguments.LIMITS)
# Flags of runs with given loads.
INSTEAD = ("profile", "stages", "rate", "max_requests", "max_seconds")


@dataclass(frozen=True)
class AutoTune:
    """A search for the highest load that a server sustains within all limits.

    Attributes:
        settings: The settings of its runs; `slo` has the limits.
        axis: rate or concurrency: what is searched.
        lower_bound: The first and the lowest load.
        upper_bound: The highest load.
        max_points: Maximum number of runs.
        max_total_seconds: How long the search may take, s.
        limits: The limits by flag name, ms.
        summary: The path of which those of the points are made.
        seed_increment: Whether each run has prompts of its own.
        run_s: Minimum duration of a run at a rate, s.
    """

    settings: RunSettings
    axis: "AxisName"
    lower_bound: float
    upper_bound: float
    max_points: int
    max_total_seconds: float
    limits: dict[str, float]
    summary: Path
    seed_increment: bool
    run_s: float = RUN_S

    @classmethod
    def of(cls, flags: dict[str, Any], common: dict[str, Any], summary: Path) -> "AutoTune | None":
        """Return the search of a command line; None if it asks for none.

        Args:
            flags: The flags, as `arguments.parse` returns them.
            common: The fields of `RunSettings` that the flags for the server, the prompts and the
                limits set.
            summary: The path of which those of the points are made.

        Raises:
            BadInput: A flag is out of range, or does not belong to a search, or to a job without
                one.
        """
        if not flags.get("auto_tune"):
            for name in FLAGS:
                if name in flags:
                    raise BadInput(
                        _flag(flags, name), "is for searches", "add --auto-tune, or leave it out"
                    )
            return None
        for name in INSTEAD:
            if name in flags:
                raise BadInput(
                    _flag(flags, name),
                    "cannot be combined with --auto-tune",
                    "leave one of the two out",
                )
        axis: AxisName = flags.get("axis", "rate")
        lower, upper = (
            _load(flags, name, axis, default)
            for name, default in (("lower", 4.0), ("upper", 8192.0))
        )
        if lower > upper:
            raise BadInput(
                "--lower-bound",
                f"{lower:g} is above the upper bound {upper:g}",
                "give a smaller number",
            )
        limits = {name: _positive(flags, name, 0.0) for name in arguments.LIMITS if name in flags}
        max_failed = min(MAX_FAILED, common.get("max_error_rate", MAX_FAILED))
        settings = RunSettings(
            **common
            | {
                "slo": ",".join(
                    (
                        *(f"{name}<={ms:g}ms" for name, ms in limits.items()),
                        f"error_rate<{max_failed:g}",
                    )
                ),
                "latency_from": "sent",
                "num_prompts": None,
                "duration": None,
                "burstiness": math.inf if axis == "rate" else 1.0,
                "request_rate": math.inf,
                "max_concurrency": flags.get("max_concurrency", MAX_IN_FLIGHT)
                if axis == "rate"
                else int(lower),
            }
        ).checked()
        # Not before: NumPy takes a tenth of a second.
        from loadgen.analysis.search.criteria import MIN_REQUESTS

        Transients.of(flags).check(settings.replace(num_prompts=MIN_REQUESTS))
        points = flags.get("max_points", 18)
        FROM_1.check("--max-points", points)
        return cls(
            settings=settings,
            axis=axis,
            lower_bound=lower,
            upper_bound=upper,
            max_points=points,
            max_total_seconds=_positive(flags, "max_total_seconds", 5400.0),
            limits=limits,
            summary=summary,
            seed_increment=flags.get("seed_increment", True),
        )

    @property
    def first(self) -> dict[str, Any]:
        """The first load, as a setting of a search."""
        if self.axis == "concurrency":
            return {"max_concurrency": int(self.lower_bound)}
        return {"request_rate": self.lower_bound}

    def strategy(self, load: float, met: bool | None) -> Strategy:
        """Return a load in guidellm's terms; one that was not shown to be within the limits has no
        rate.

        GPUStack recommends the point with the most tokens per second, or the highest load by its
        own reading of the limits. Of points without a rate it recommends none.
        """
        kind, cap = ("concurrent", int(load)) if self.axis == "concurrency" else ("constant", None)
        return Strategy(kind, load if met else None, cap)

    def point(self, number: int) -> Path:
        """Return the path of the summary of a point, counted from 0."""
        return self.summary.with_name(f"{self.summary.stem}__p{number}.json")

    def records(self, run: int) -> Path:
        """Return the path of the records of a run, counted from 1; a point has several if a run
        was too short.
        """
        return self.summary.with_name(f"{self.summary.stem}__run{run}.records.jsonl")


def _load(flags: dict[str, Any], end: str, axis: str, default: float) -> float:
    bound = _positive(flags, f"{end}_bound", default)
    if axis == "concurrency" and not bound.is_integer():
        remedy = "give a whole number: with --axis concurrency it is a number of requests in flight"
        raise BadInput(f"--{end}-bound", f"{bound:g} is not a whole number", remedy)
    return int(bound) if axis == "concurrency" else bound


def _positive(flags: dict[str, Any], name: str, default: float) -> float:
    value = float(flags.get(name, default))
    Range("a number above 0", ABOVE_0, FINITE).check(_flag(flags, name), value)
    return value


def _flag(flags: dict[str, Any], name: str) -> str:
    return str(flags.get(arguments.SPELLINGS, {}).get(name) or flag(name))
