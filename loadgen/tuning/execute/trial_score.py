"""Scoring: what a trial achieved at the objective, and whether it held what the study demands."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.config import slo
from loadgen.tuning.execute.accuracy_gate import Gate
from loadgen.tuning.execute.trial import Ran, Trial
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.study import Study
from loadgen.util.number_format import percent


@dataclass(frozen=True, slots=True)
class Score:
    """What a start that ran comes to.

    Attributes:
        value: What it achieved, in the unit of the objective's metric; None where nothing tells it.
        missed: What it did not hold, of all that the study demands; empty if it held all.
        for_good: Whether no further start can mend that.
        notes: What else there is to say, by what it is of: `answers`, `bound`.
    """

    value: float | None
    missed: str
    for_good: bool
    notes: Mapping[str, str]


def devices_used(arm: Arm, study: Study) -> int:
    """Accelerators that an arm computes on; 1 where the box has none, so that per box and per device are the same."""
    box = study.hardware.devices
    if not box:
        return 1
    return min(max(len(arm.devices), arm.width * arm.replicas), box)


def copies(arm: Arm, study: Study) -> int:
    """How often an arm would fit into the box: what was measured of it once is scaled by that."""
    return max(1, study.hardware.devices // devices_used(arm, study)) if study.hardware.devices else 1


def score(arm: Arm, trials: Sequence[Trial], study: Study, gate: Gate) -> Score:
    """What the last start of an arm comes to, which ran.

    Args:
        arm: Which.
        trials: Its starts.
        study: Whose.
        gate: Of the study.
    """
    trial = trials[-1]
    achieved = value(trial.runs[study.objective.workload].summary, arm, study)
    out, said = gate.judged(arm, trials)
    missed = said if out else unmet(trial, study) or ("nothing tells what it achieved" if achieved is None else "")
    notes = {"answers": "" if out else said, "bound": bound(trial, study)}
    return Score(achieved, missed, out, {about: note for about, note in notes.items() if note})


def value(summary: Mapping[str, Any], arm: Arm, study: Study) -> float | None:
    """What a run achieved, in the unit of the objective's metric; None where nothing tells it."""
    metric = study.objective.metric
    if metric == "goodput":
        found = summary["loadgen"].get("goodput")
        return found["rate"] * copies(arm, study) if found and found["rate"] else None
    if metric == "e2e_p50":
        return _positive(summary.get("median_e2el_ms"))
    if metric == "output_tps_per_gpu":
        output = _positive(summary.get("output_throughput"))
        return None if output is None else output / devices_used(arm, study)
    total = _positive(summary.get("total_token_throughput"))
    if total is None:
        return None
    if metric == "total_tps_per_box":
        return total * copies(arm, study)
    price = study.hardware.gpu_hour_price
    assert price is not None  # the study was checked
    return price * devices_used(arm, study) / (total * 3600 / 1e6)


def gain(achieved: float, study: Study) -> float:
    """What is compared: more of it is better."""
    return achieved if study.objective.more_is_better else 1 / achieved


def unmet(trial: Trial, study: Study) -> str | None:
    """What a trial that ran did not hold, of success rate and SLO; None if it held all."""
    ran = trial.runs[study.objective.workload]
    if ran.success_rate < study.objective.success_rate:
        least = percent(study.objective.success_rate, 1)
        return f"success rate {percent(ran.success_rate, 1)}, at least {least} is wanted"
    found = ran.summary["loadgen"].get("goodput")
    if study.objective.metric == "goodput" and found and not found["rate"]:
        return f"no rate meets {found['limits']}, down to {min(rate for rate, _ in found['tried']):.4g} requests/s"
    missed = [row for row in ran.summary["loadgen"].get("slo", ()) if not row["met"]]
    if missed and study.objective.metric != "goodput":
        return "; ".join(f"{row['limit']} is {_shown(row)}" for row in missed)
    return None


def bound(trial: Trial, study: Study) -> str:
    """Why a trial may have achieved more than its value; empty where it has not."""
    found = trial.runs[study.objective.workload].summary["loadgen"].get("goodput")
    if study.objective.metric != "goodput" or not found or found["end"] != "floor":
        return ""
    edge = f"it failed at {found['fails']:.4g} requests/s" if found["fails"] else "no rate failed"
    return f"only a lower bound, {edge}"


def distance(ran: Ran) -> float:
    """How far a run was from its limits: 0 is met, 0.5 is half as much again; failed requests count in the same way."""
    beyond = 1 - ran.success_rate
    for row in ran.summary["loadgen"].get("slo", ()):
        if row.get("beyond"):  # as far as requests failed, which the success rate says
            continue
        if not row["met"] and row["value"] is None:
            return math.inf
        if not row["met"]:
            most = slo.parse(row["limit"])[0].threshold
            beyond += row["value"] / most - 1 if most else row["value"]
    return beyond


def _positive(number: Any) -> float | None:
    return float(number) if isinstance(number, int | float) and number > 0 and math.isfinite(number) else None


def _shown(row: Mapping[str, Any]) -> str:
    """The value of a limit that was missed; results of earlier versions do not say whether it lies among failures."""
    if row.get("beyond"):
        return "beyond it, since too many requests failed"
    return "n/a" if row["value"] is None else f"{row['value']:.4g}"
