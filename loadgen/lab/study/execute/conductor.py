"""Runs a study in its store, from wherever it stands there, and reads the findings back from a store."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from loadgen.errors import BadInput
from loadgen.lab.study.execute import facts
from loadgen.lab.study.execute.accuracy_gate import asks_questions
from loadgen.lab.study.execute.findings import BUDGET, NOT_YET, Findings
from loadgen.lab.study.execute.publications import published_findings
from loadgen.lab.study.execute.side_by_side import SideBySide, Start
from loadgen.lab.study.execute.store import Store, locked
from loadgen.lab.study.execute.trial import Trial, TrialRequest, now
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.estimate import UsualStart
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.strict_model import convert
from loadgen.lab.study.spec.study import Study
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.metrics.progress import Progress


class View(Protocol):
    """A display of a running study."""

    def begin(self, walk: Walk, request: TrialRequest, folder: Path) -> None:
        """Show that a start begins, with its files in a folder."""

    def progress(self, workload: str, progress: Progress) -> None:
        """Show the progress of a workload, or of the engine's start if there is none."""

    def end(self, walk: Walk, trial: Trial) -> None:
        """Show a trial that was added to the walk."""


async def conduct(file: StudyFile, folder: Path, usual_s: UsualStart, view: View) -> Findings:
    """Run a study until it is over or its budget is spent.

    A cancelled call stops the engine; the next call goes on from the store.

    Raises:
        BadInput: The study cannot run here, or not in this store.
        EngineError: An engine could not be stopped, so nothing more can be measured.
    """
    with file.named():
        planner = Planner(file.study, usual_s)
        with _store(file, planner, folder) as store:
            walk, known = Walk(file.study, planner), store.trials()
            store.give_up_running()
            spent_s = _replay(walk, known, same=store.folder)
            runner = TrialRunner(file.study, planner, store.folder)
            run_next = _run_block if file.study.decision.rounds > 1 else _run_start
            while (request := walk.request) is not None and spent_s < limit_s(file.study):
                if request not in known:
                    known |= {trial.request: trial for trial in await run_next(walk, store, runner, view)}
                spent_s += known[request].seconds
                walk.add(known[request])
                view.end(walk, known[request])
            return walk.found(BUDGET)


async def _run_start(walk: Walk, store: Store, runner: TrialRunner, view: View) -> list[Trial]:
    assert walk.request is not None
    number, folder, asks = _begin(walk, store, view, walk.request, walk.planned)
    trial = await runner.run_trial(walk.request, walk.planned, folder, view.progress, asks=asks)
    store.end(number, trial)
    return [trial]


async def _run_block(walk: Walk, store: Store, runner: TrialRunner, view: View) -> list[Trial]:
    known, numbers, starts = store.trials(), [], []
    for request, arm in walk.block:
        if request not in known:
            number, folder, asks = _begin(walk, store, view, request, arm)
            numbers.append(number)
            trial = runner.begun(request, arm, folder)
            starts.append(Start(arm, trial, folder, partial(_named, view, request.arm), asks))
    trials = await SideBySide(walk.study, runner).run_block(starts)
    for number, trial in zip(numbers, trials, strict=True):
        store.end(number, trial)
    return trials


def _begin(walk: Walk, store: Store, view: View, request: TrialRequest, arm: PlannedArm) -> tuple[int, Path, bool]:
    """Record and show that a start begins; returns its number, its folder, and whether it asks the gate's questions."""
    number, folder = store.begin(request, arm.identity, now())
    view.begin(walk, request, folder)
    return number, folder, asks_questions(request, arm.spec, walk.study, walk.found().trials)


def _named(view: View, arm: str, workload: str, progress: Progress) -> None:
    view.progress(f"{arm}, {workload}" if workload else arm, progress)


def load_findings(store: Store) -> tuple[Findings, Mapping[str, Any]]:
    """Return a study's findings and facts from its store alone; its engines need not be installed."""
    known = store.facts
    study = convert(known["study"], Study)
    if known["source"] == facts.IMPORTED:
        return published_findings(study, store.trials().values()), known
    walk = Walk(study, Planner(_with_builds(study, known["builds"])))
    spent_s = _replay(walk, store.trials())
    return walk.found(BUDGET if spent_s >= limit_s(study) else NOT_YET), known


def limit_s(study: Study) -> float:
    """Return the maximum time of all starts in seconds; infinite without a budget."""
    budget, devices = study.budget, study.hardware.devices
    limits = [float("inf")]
    if budget.hours is not None:
        limits.append(budget.hours * 3600)
    if budget.gpu_hours is not None and devices:
        limits.append(budget.gpu_hours * 3600 / devices)
    return min(limits)


def _with_builds(study: Study, builds: Mapping[str, str | None]) -> Study:
    from msgspec.structs import replace  # slow to import

    engines = {name: replace(base, version=base.version or builds.get(name)) for name, base in study.engines.items()}
    return replace(study, engines=engines)


def _replay(walk: Walk, trials: Mapping[TrialRequest, Trial], *, same: Path | None = None) -> float:
    """Walk with the trials of a store; returns their time in seconds.

    Args:
        walk: The walk.
        trials: The trials.
        same: Folder of the store, to check that arms are served as they were then; None: no check.

    Raises:
        BadInput: An arm would be served differently now.
    """
    spent_s = 0.0
    while walk.request is not None and (trial := trials.get(walk.request)) is not None:
        if same is not None and trial.config != walk.planned.identity:
            problem = f"{walk.request.step}/{walk.request.arm} would be served differently from its earlier starts"
            raise BadInput(str(same), problem, "use the same engines as before, or begin another store")
        spent_s += trial.seconds
        walk.add(trial)
    return spent_s


@contextmanager
def _store(file: StudyFile, planner: Planner, folder: Path) -> Iterator[Store]:
    """Lock and open the store of a study, after all checks; create it if there is none."""
    now_facts = facts.gather(file.study, planner, file.text)
    if not Store.exists(folder):  # check before the folder is created
        facts.check_available(file.study, planner, now_facts)
    with locked(folder):
        if not Store.exists(folder):
            with Store.create(folder, now_facts) as store:
                yield store
            return
        with Store.open(folder) as store:
            facts.check_unchanged(store.facts, now_facts, folder)
            facts.check_available(file.study, planner, now_facts)
            for name in ("study", "text"):  # parts of them may change
                store.note(name, now_facts[name])
            yield store
