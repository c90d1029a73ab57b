"""The attempts of one start: it is repeated if it failed for a reason that may pass, or if others disturbed it."""

import itertools
from collections.abc import Callable, Generator
from dataclasses import replace

from loadgen.lab.study.execute.trial import Trial, TrialRequest
from loadgen.lab.study.execute.workload_findings import Disturbance

MAX_FAILURES = 2  # for a transient reason
MAX_DISTURBED = 3  # starts that are set aside because others disturbed them


def attempts(
    request: TrialRequest, workload: str, on_end: Callable[[Trial], None]
) -> Generator[TrialRequest, Trial, Trial]:
    """Yield a start until it counts; returns the trial that counts, or that failed for good.

    A start that was disturbed is set aside if the machine was quiet when it began: there may be a quiet moment again.
    If all are disturbed, the one that was disturbed least counts.

    Args:
        request: The start.
        workload: The workload that decides.
        on_end: Called with each trial.
    """
    disturbed: list[Trial] = []
    failures = 0
    for attempt in itertools.count():
        trial = yield replace(request, attempt=attempt)
        on_end(trial)
        if trial.failure is not None:
            failures += 1
            if failures == MAX_FAILURES or not trial.failure.transient:
                return trial
            continue
        found = disturbance(trial, workload)
        if not found.disturbed:
            return trial
        disturbed.append(trial)
        if not found.quiet or len(disturbed) > MAX_DISTURBED:
            break
    return min(disturbed, key=lambda each: disturbance(each, workload).excess)


def disturbance(trial: Trial, workload: str) -> Disturbance:
    """Return what disturbed the deciding workload of a trial; nothing if it is unknown."""
    run = trial.runs.get(workload)
    return (run.findings.disturbance if run else None) or Disturbance()
