"""Ramp: the points of a job, and why its search ended, in the files that GPUStack reads beside the
summaries.

`ID__ramp.json` is written when a search has ended, `ID__curve.json` when all stages have.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.auto_tune import AutoTune
from loadgen.report import to_json
from loadgen.report.result.series import Found, Series
from loadgen.util.files import write_atomic

# The versions of benchmark-runner's formats.
RAMP_VERSION = 4
CURVE_VERSION = 1
# Why a search ended, in benchmark-runner's words.
CAPACITY = "capacity_plateau"
LIMIT = "slo_failed"
FAILURES = "overloaded"
FLOOR = "upper_bound"
POINTS = "budget_points"
SECONDS = "budget_seconds"
CONVERGED = "converged"
BROKEN = "point_failed"


@dataclass
class Ramp:
    """The points of a search by load, and how the search ended.

    Attributes:
        auto_tune: What was searched.
        points: By load, in the order in which the loads were first tried.
        beyond_capacity: The loads that failed because the server could not do more.
        spent_s: How long the search took, s.
        out_of_time: Whether it ended because its time was over.
    """

    auto_tune: AutoTune
    points: dict[float, dict[str, Any]] = field(default_factory=dict)
    beyond_capacity: set[float] = field(default_factory=set)
    spent_s: float = 0.0
    out_of_time: bool = False

    def add(self, load: float, summary: dict[str, Any]) -> Path:
        """Keep a point, in place of an earlier one of the same load; returns the path of its
        summary.
        """
        index = self.points[load]["index"] if load in self.points else len(self.points)
        self.points[load] = point(summary, load, index)
        return self.auto_tune.point(index)

    def write(self, series: Series) -> None:
        """Write the file.

        Args:
            series: The runs of the search, and how it ended.
        """
        tuned = self.auto_tune
        outcome = series.found
        assert outcome is not None
        missed = (level.level for level in series.levels if level.met is False)
        fails = min(missed, default=None) if outcome.end == "early" else outcome.fails
        bracket, stop = self._reasons(outcome, fails, len(series.points))
        facts = {
            "version": RAMP_VERSION,
            "points": list(self.points.values()),
            "bracket_reason": bracket,
            "stop_reason": stop,
            "target": "slo" if tuned.limits else "saturation",
            "axis": tuned.axis,
            "stopped_at": max(self.points, default=None),
            "lower_bound": tuned.lower_bound,
            "upper_bound": tuned.upper_bound,
            "points_measured": len(self.points),
            "max_points": tuned.max_points,
            "elapsed_seconds": round(self.spent_s, 2),
            "max_total_seconds": tuned.max_total_seconds,
            "slo_bracket": [outcome.level, fails] if tuned.limits else None,
            "probe_ceiling": None,
            "probe_relaxed": 0,
            "probe_bound": None,
            "slo_thresholds": {
                arguments.name_of(arguments.LIMITS[name][0]): ms
                for name, ms in tuned.limits.items()
            },
        }
        _write(tuned.summary, "ramp", facts)

    def _reasons(self, outcome: Found, fails: float | None, runs: int) -> tuple[str, str]:
        tuned = self.auto_tune
        budget = SECONDS if self.out_of_time else POINTS if runs >= tuned.max_points else BROKEN
        if fails is None:
            bracket = FLOOR if outcome.level == tuned.upper_bound else budget
            return bracket, bracket
        bracket = CAPACITY if fails in self.beyond_capacity else LIMIT if tuned.limits else FAILURES
        if outcome.end == "edge":
            return bracket, CONVERGED
        return bracket, bracket if outcome.end == "none" and not self.out_of_time else budget


def point(summary: dict[str, Any], load: float, index: int) -> dict[str, Any]:
    """Return what benchmark-runner keeps of a point, from its summary.

    Args:
        summary: Of `summary.summarize`.
        load: Requests per second, or requests in flight.
        index: The number of the point, from 0.
    """
    (benchmark,) = summary["benchmarks"]
    metrics = benchmark["metrics"]
    totals = metrics["request_totals"]
    named: dict[str, Any] = {"knob": load, "index": index}
    named["output_tps"] = metrics["output_tokens_per_second"]["successful"]["mean"]
    of = {
        "ttft": "time_to_first_token_ms",
        "itl": "inter_token_latency_ms",
        "latency": "request_latency",
    }
    for name, metric in of.items():
        statistics = metrics[metric]["successful"]
        scale = 1e3 if name == "latency" else 1.0
        named[f"{name}_ms"] = statistics["mean"] * scale
        named |= {f"{name}_{p}_ms": statistics["percentiles"][p] * scale for p in ("p95", "p99")}
    named["achieved_rate"] = metrics["requests_per_second"]["successful"]["mean"]
    named["success"] = totals["successful"] / totals["total"] if totals["total"] else 0.0
    return named


def write_curve(output: Path, axis: str, points: list[dict[str, Any]], spent_s: float) -> None:
    """Write the file of stages.

    Args:
        output: The path of which those of the summaries were made.
        axis: rate or concurrency.
        points: Of the stages, in their order.
        spent_s: How long they took, s.
    """
    facts = {
        "version": CURVE_VERSION,
        "points": points,
        "axis": axis,
        "target": "stages",
        "stop_reason": "stages_completed",
        "bracket_reason": "",
        "points_measured": len(points),
        "slo_bracket": None,
        "slo_thresholds": {},
        "elapsed_seconds": round(spent_s, 2),
        "probe_ceiling": None,
    }
    _write(output, "curve", facts)


def _write(output: Path, kind: str, facts: dict[str, Any]) -> None:
    write_atomic(output.with_name(f"{output.stem}__{kind}.json"), to_json(facts) + "\n")
