"""The SUSPECT runs of a study: their reasons, each with the runs that it holds for."""

from collections.abc import Iterator

from loadgen.report.html import Line, prose
from loadgen.tuning.execute.trial import Trial, WorkloadRun
from loadgen.tuning.report.published_notes import place
from loadgen.tuning.report.report_model import ReportModel
from loadgen.util.number_format import first_of, plural

MAX_REASONS = 3  # that are shown
MAX_RUNS = 3  # that are named of one reason


def suspect_runs(model: ReportModel) -> Iterator[Line]:
    """Yield a line on the SUSPECT runs; nothing if there are none."""
    count, reasons = 0, dict[str, list[str]]()
    for trial in model.findings.trials:
        for workload, run in trial.runs.items():
            if run.findings.verdict == "SUSPECT":
                count += 1
                for reason in run.findings.reasons or ["without a reason"]:
                    reasons.setdefault(reason, []).append(_name(trial, workload, run))
    if not count:
        return
    shown = [f"{reason} ({first_of(names, MAX_RUNS)})" for reason, names in reasons.items()][:MAX_REASONS]
    more = len(reasons) - MAX_REASONS
    left = f"; and {plural(more, 'more reason')}, which `loadgen tune export` lists" if more > 0 else ""
    yield prose(f"{count} of {len(model.runs)} runs are SUSPECT: {'; '.join(shown)}{left}")


def _name(trial: Trial, workload: str, run: WorkloadRun) -> str:
    """Return stage, arm, block and workload of a run, or where a published one stands."""
    if run.findings.provenance is not None:
        return place(run)
    request = trial.request
    again = " again" if request.attempt else ""
    return f"{request.step}/{request.arm} block {request.block + 1}{again} on {workload}"
