"""The library of the lab: studies, run in the caller's event loop or in one of their own, and
audits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.lab.audit import Finding, auditor
from loadgen.lab.study import report
from loadgen.lab.study.execute import conductor
from loadgen.lab.study.execute.arm_result import ArmResult
from loadgen.lab.study.execute.conductor import View
from loadgen.lab.study.execute.findings import NOT_YET, Findings, StepResult
from loadgen.lab.study.execute.store import Store
from loadgen.lab.study.execute.trial import Trial, TrialRequest
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.library.accepted import check_callback, check_path
from loadgen.library.run import OnProgress, ignore, synchronous
from loadgen.metrics.progress import Progress
from loadgen.util.packages import find

STORE_SUFFIX = ".store"
REPORT_SUFFIX = ".report"


@dataclass(frozen=True, repr=False)
class SavedStudy:
    """A study as far as it has come, in its store. `str` gives the findings as `loadgen tune
    status` prints them.

    Attributes:
        findings: The findings, a function of the starts in the store.
        store: Folder of the store.
    """

    findings: Findings
    store: Path

    @property
    def open(self) -> str:
        """Why the study is not over; empty if it is."""
        return self.findings.open

    @property
    def steps(self) -> tuple[StepResult, ...]:
        """The steps that have begun, each with the verdict and the values of its arms."""
        return self.findings.steps

    @property
    def winner(self) -> ArmResult | None:
        """The arm that fresh starts have shown to be better than the baseline; None if there is
        none, or not yet.
        """
        return self.findings.finalist if self.findings.confirmed else None

    @property
    def data(self) -> dict[str, Any]:
        """Every start and every number as JSON, as `loadgen tune export` prints it.

        Raises:
            BadInput: The store cannot be read.
        """
        with Store.open(self.store) as store:
            return findings_text.as_json(self.findings, store.facts)

    def write_report(self, output: str | Path | None = None) -> list[Path]:
        """Write the report of `loadgen tune report`, and return its files.

        Args:
            output: Folder of the report, created if there is none; by default NAME.report, with the
                study's name.

        Raises:
            BadInput: The store cannot be read, or a file cannot be written.
        """
        into = Path(self.findings.study.name + REPORT_SUFFIX if output is None else output)
        with Store.open(self.store) as store:
            facts = store.facts
        return report.write(self.findings, facts, self.store, into)

    def __str__(self) -> str:
        return findings_text.as_text(self.findings)

    def __repr__(self) -> str:
        state = f"open: {self.open}" if self.open else "over"
        return (
            f"<loadgen.SavedStudy: {self.findings.study.name}, {len(self.findings.trials)} "
            f"starts, {state}>"
        )


OnTrial = Callable[[SavedStudy], None]


async def tune(
    study: str | Path,
    *,
    store: str | Path | None = None,
    on_progress: OnProgress = ignore,
    on_trial: OnTrial = ignore,
) -> SavedStudy:
    """Run a study until it is over or its budget is spent, or go on with it from its store, as
    `loadgen tune run` does.

    Cancelling it stops the engine. What was measured stays in the store: `load_study` reads it, and
    the next call resumes from there.

    Args:
        study: Its YAML file (docs/studies.md).
        store: Folder of the results; by default NAME.store, with the study's name.
        on_progress: Called a few times a second with the progress of the run, or of the start, that
            goes on.
        on_trial: Called after each start of an arm with the study so far.

    Raises:
        BadInput: The study cannot run here, or not in this store.
        EngineError: An engine could not be stopped, so nothing more can be measured.
        LoadgenError: The store cannot be written.
    """
    check_path("study", study)
    if store is not None:
        check_path("store", store)
    check_callback("on_progress", on_progress)
    check_callback("on_trial", on_trial)
    file = study_file.read(Path(study))
    folder = store_of(file, store)
    return await carry_out(file, folder, _Callbacks(folder, on_progress, on_trial))


tune_sync = synchronous(tune)


def load_study(path: str | Path) -> SavedStudy:
    """Read a study from its store, also while it runs; its engines need not be installed.

    Args:
        path: Its store, or its file if the store is NAME.store here.

    Raises:
        BadInput: There is no store, or it cannot be read.
    """
    check_path("path", path)
    folder = store_of(study_file.read(Path(path)), None) if Path(path).is_file() else Path(path)
    with Store.open(folder) as store:
        findings, _ = conductor.load_findings(store)
    return SavedStudy(findings, folder)


def store_of(file: StudyFile, store: str | Path | None) -> Path:
    """Return the folder of a study's store: the given one, or NAME.store."""
    return Path(file.study.name + STORE_SUFFIX if store is None else store)


async def carry_out(file: StudyFile, store: Path, view: View) -> SavedStudy:
    """Run a study in its store, shown by `view`; the command and `tune` call this."""
    return SavedStudy(
        await conductor.conduct(file, store, find("launchers", "local").usual_start_s, view), store
    )


@dataclass(frozen=True)
class _Callbacks:
    """A display that calls the functions of a program.

    Attributes:
        store: Folder of the store.
        on_progress: Called with the progress of what goes on.
        on_trial: Called after each start.
    """

    store: Path
    on_progress: OnProgress
    on_trial: OnTrial

    def begin(self, walk: Walk, request: TrialRequest, folder: Path) -> None:
        pass  # the progress of the start follows

    def progress(self, workload: str, progress: Progress) -> None:
        self.on_progress(progress)

    def end(self, walk: Walk, trial: Trial) -> None:
        self.on_trial(SavedStudy(walk.found(NOT_YET), self.store))


def audit(*paths: str | Path) -> list[Finding]:
    """Find inconsistent numbers in published results, as `loadgen audit` does (docs/audit.md).

    Args:
        *paths: Markdown pages or texts that contain benchmark output; or JSON results of loadgen,
            vllm bench serve, SGLang's bench_serving (JSON lines) or guidellm. Several are also held
            against each other.

    Returns:
        The findings in the order of the files: `rule`, `place`, what it `says`, what it
            `should_be`, and `why`. With
        `note`, the numbers can be true, but do not show what they seem to. Findings of one `rule`
        with the same `cause` have one origin.

    Raises:
        BadInput: One of them cannot be read, or has no result and no table.
    """
    for path in paths:
        check_path("path", path)
    return auditor.audit(*map(str, paths))
