"""The score of a trial: its value of the objective, and the limits of the study that it missed.

`search_max_rate` finds the value that no single run has: the highest rate of a running server that
meets its limits.
"""

import math
import statistics
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.analysis.search.algorithm import End, SearchRange, find_highest_level
from loadgen.analysis.search.criteria import RequestShare
from loadgen.analysis.search.levels import RATE, Levels, Measure, format_level
from loadgen.analysis.search.search_bounds import SearchBounds
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError
from loadgen.lab.study.execute.accuracy_gate import AccuracyGate
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.execute.trial import MaxRate, Trial, WorkloadRun
from loadgen.lab.study.plan.estimate import Effort
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.study import MAX_RATE, METRICS, Study
from loadgen.util.number_format import four_digits, percent


def devices_used(arm: ArmSpec, study: Study) -> int:
    """Return the number of accelerators that an arm uses; 1 if the box has none, so that box and
    device are equal.
    """
    return arm.devices_used(study.hardware.devices) or 1


def copies(arm: ArmSpec, study: Study) -> int:
    """Return how often an arm fits into the box; values of one arm are multiplied by that."""
    return (
        max(1, study.hardware.devices // devices_used(arm, study)) if study.hardware.devices else 1
    )


def count_trial(
    arm: ArmResult, trial: Trial, study: Study, gate: AccuracyGate, *, max_misses: int
) -> ArmResult:
    """Count a trial that ran in the result of its arm.

    Args:
        arm: The result so far, with the trial among its trials.
        trial: The trial.
        study: The study.
        gate: Its accuracy gate.
        max_misses: Trials that may miss a limit before the arm is infeasible, that one included.
    """
    value = objective_value(trial.runs[study.objective.workload], arm.planned.spec, study)
    rejected, answers = gate.judge(arm.planned.spec, arm.trials)
    missed = (
        answers
        if rejected
        else missed_limits(trial, study) or ("" if value is not None else "no value")
    )
    notes = {"answers": "" if rejected else answers, "bound": lower_bound_note(trial, study)}
    arm = replace(
        arm,
        verdict=Verdict.OPEN if arm.undecided else arm.verdict,
        counted=(*arm.counted, trial),
        notes={**arm.notes, **{subject: note for subject, note in notes.items() if note}},
    )
    if value is None:
        return replace(arm, verdict=Verdict.INFEASIBLE, reason=missed)
    arm = replace(arm, values=(*arm.values, value))
    if not missed:
        return arm
    arm = replace(arm, misses=arm.misses + 1, reason=missed)
    return replace(arm, verdict=Verdict.INFEASIBLE) if rejected or arm.misses >= max_misses else arm


def objective_value(run: WorkloadRun, arm: ArmSpec, study: Study) -> float | None:
    """Return the value of a run in the unit of the objective's metric; None if the run has none.

    Of several rounds it is the geometric mean.
    """
    if len(run.rounds) == 1:
        return _value(run, arm, study)
    values = [_value(part, arm, study) for part in run.rounds]
    positive = [value for value in values if value is not None]
    return statistics.geometric_mean(positive) if positive else None


def _value(run: WorkloadRun, arm: ArmSpec, study: Study) -> float | None:
    metric = study.objective.metric
    if metric == MAX_RATE:
        found = run.findings.max_rate
        return found.rate * copies(arm, study) if found and found.rate else None
    if METRICS[metric].number:
        return _positive(run.summary.get(METRICS[metric].number))
    if metric == "output_tps_per_gpu":
        output = _positive(run.summary.get("output_throughput"))
        return None if output is None else output / devices_used(arm, study)
    total = _positive(run.summary.get("total_token_throughput"))
    if total is None:
        return None
    if metric == "total_tps_per_box":
        return total * copies(arm, study)
    price = study.hardware.gpu_hour_price
    assert price is not None  # the study was checked
    return price * devices_used(arm, study) / (total * 3600 / 1e6)


def gain(value: float, study: Study) -> float:
    """Convert a value of the objective so that more is better."""
    return value if study.objective.more_is_better else 1 / value


def missed_limits(trial: Trial, study: Study) -> str | None:
    """Return the success rate or the SLO limits that a trial missed; None if it met all."""
    run = trial.runs[study.objective.workload]
    if run.success_rate < study.objective.success_rate:
        least = percent(study.objective.success_rate, 1)
        return f"success rate {percent(run.success_rate, 1)}, at least {least} is required"
    found = run.findings.max_rate
    if study.objective.metric == MAX_RATE and found and not found.rate:
        lowest = min(rate for rate, _ in found.tried)
        return f"no rate meets {found.limits}, down to {four_digits(lowest)} req/s"
    missed = [row for row in run.findings.slo if not row.met]
    if missed and study.objective.metric != MAX_RATE:
        values = [
            "exceeded, because too many requests failed" if row.beyond else row.value_text
            for row in missed
        ]
        return "; ".join(
            f"{row.limit} is {value}" for row, value in zip(missed, values, strict=True)
        )
    return None


def lower_bound_note(trial: Trial, study: Study) -> str:
    """Return why the highest rate may be higher than the measured one; empty if it is exact."""
    found = trial.runs[study.objective.workload].findings.max_rate
    if study.objective.metric != MAX_RATE or not found or found.end != "floor":
        return ""
    edge = f"it failed at {four_digits(found.fails)} req/s" if found.fails else "no rate failed"
    return f"only a lower bound, {edge}"


def distance(run: WorkloadRun) -> float:
    """Return how far a run is from its limits: 0 meets them, 0.5 exceeds one by half; failures
    add their share.
    """
    excess = 1 - run.success_rate
    for row in run.findings.slo:
        if (
            row.met or row.beyond
        ):  # the percentile lies among failed requests, which the success rate counts
            continue
        if row.value is None:
            return math.inf
        threshold = slo.parse(row.limit)[0].threshold
        excess += row.value / threshold - 1 if threshold else row.value
    return excess


def _positive(number: Any) -> float | None:
    return (
        float(number)
        if isinstance(number, int | float) and number > 0 and math.isfinite(number)
        else None
    )


async def search_max_rate(
    measure: Measure,
    settings: RunSettings,
    limits: RequestShare,
    effort: Effort,
    *,
    folder: Path,
    start: float,
) -> MaxRate:
    """Find the highest rate that meets the limits.

    Each run lasts at least RUN_S, and has enough requests to decide the share that must be good.

    Args:
        measure: Makes a run, as for `Levels`.
        settings: Settings of the workload, with the server.
        limits: Limits to meet.
        effort: Resolution of the search.
        folder: Folder for the records.
        start: First rate, req/s; the throughput of the workload itself is a good choice.

    Raises:
        LoadgenError: A run ended early or is invalid, or the client was the limit at every rate.
    """

    def records(name: str) -> AbstractContextManager[Path]:
        return nullcontext(folder / f"{name}.records.jsonl")

    bounds = SearchBounds(max_runs=effort.max_runs)
    levels = Levels(measure, settings, [limits], records, name="max-rate", bounds=bounds)
    span = SearchRange(effort.resolution, levels.min_level, RATE.max_level)
    highest = await find_highest_level(levels.run_level, start, span, levels.doubt)
    notes = levels.notes + levels.disturbances
    if highest.end is End.CLIENT:
        why = f"at {format_level(highest.tried[-1][0])} req/s {levels.runs[-1].why}"
        if not highest.level:
            raise LoadgenError(why)
        notes.append(f"{why}, so that the search ended")
    return MaxRate(
        rate=highest.level,
        fails=highest.fails if math.isfinite(highest.fails) else None,
        end=str(End.FLOOR if highest.end in (End.CLIENT, End.DISTURBED) else highest.end),
        tried=list(highest.tried),
        attainment=limits.attainment,
        limits=limits.text,
        resolution=effort.resolution,
        runs=len(levels.runs),
        notes=notes,
    )
