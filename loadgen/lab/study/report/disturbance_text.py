"""Disturbed starts of a step in words: how many count, and what was done about them."""

from collections.abc import Mapping

from loadgen.lab.study.execute.findings import StepResult
from loadgen.lab.study.plan.plan import NOISE
from loadgen.stats.layouts import Adjustment
from loadgen.util.number_format import plural

# What was done about disturbed starts in the comparison of an arm with the reference.
TEXTS: Mapping[Adjustment, str] = {
    Adjustment.NONE: "compared by undisturbed starts alone",
    Adjustment.SLOPES: "what lost cores cost is estimated for each arm and taken out",
    Adjustment.LEFT_OUT: "these are left out",
    Adjustment.OPEN_BOUNDS: "these count as they are; a gain has only one bound if its arm and the reference were "
    "disturbed unequally often",
}


def disturbance_text(found: StepResult, workload: str) -> str:
    """Return what was done about disturbed starts in a step; empty if nothing is known of disturbances.

    Args:
        found: The step.
        workload: The workload that decides.
    """
    runs = [trial.runs[workload].findings for arm in found.arms for trial in arm.counted if workload in trial.runs]
    known = [run.disturbance for run in runs if run.disturbance is not None]
    if not known:
        return ""
    disturbed = sum(each.disturbed for each in known)
    if not disturbed:
        return "no start that counts was seen to be disturbed by others"
    said = f"disturbed by others and not repeated: {disturbed} of {plural(len(runs), 'start')}"
    return said if found.open and not _compared(found) else f"{said}; {_what_was_done(found)}"


def _what_was_done(found: StepResult) -> str:
    arms = _compared(found)
    if not arms:
        # The noise of the only arm may be of fewer starts than it has.
        is_left_out = found.step.kind == NOISE and found.noise and found.noise.df + 1 < len(found.arms[0].values)
        return TEXTS[Adjustment.LEFT_OUT] if is_left_out else "these count as they are"
    if len(arms) == 1:
        return TEXTS[next(iter(arms))]
    return "; ".join(f"{', '.join(names)}: {TEXTS[adjustment]}" for adjustment, names in arms.items())


def _compared(found: StepResult) -> dict[Adjustment, list[str]]:
    arms: dict[Adjustment, list[str]] = {}
    for arm in found.arms:
        if arm.comparison is not None and arm.comparison.blocks:
            arms.setdefault(arm.comparison.adjustment, []).append(arm.name)
    return arms
