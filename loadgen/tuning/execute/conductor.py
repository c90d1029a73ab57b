"""Conduct: carries out a study in a store, from wherever it stands there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from loadgen.errors import BadInput
from loadgen.metrics.progress import Progress
from loadgen.tuning.execute import accuracy_gate, facts, published
from loadgen.tuning.execute.findings import BUDGET, NOT_YET, Findings
from loadgen.tuning.execute.store import Store, held
from loadgen.tuning.execute.trial import Trial, Wanted, now
from loadgen.tuning.execute.trial_runner import Bench
from loadgen.tuning.execute.walk import Walk
from loadgen.tuning.plan.estimate import UsualStart
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec.study import Study
from loadgen.tuning.spec.study_file import StudyFile


class View(Protocol):
    """Someone who is told how a study goes."""

    def begin(self, walk: Walk, wanted: Wanted, folder: Path) -> None:
        """A start begins, whose files are in a folder."""

    def progress(self, workload: str, progress: Progress) -> None:
        """How far it is: while the engine starts, and with each workload."""

    def end(self, walk: Walk, trial: Trial) -> None:
        """What came of it; the walk stands behind it."""


async def conduct(file: StudyFile, folder: Path, usual_s: UsualStart, view: View) -> Findings:
    """Carry out a study until it is over, or its budget is spent.

    Cancelling it puts the engine away, and leaves a store with which it goes on.

    Args:
        file: The study.
        folder: Of the store; it is made if there is none.
        usual_s: How long servers have taken to start on this machine.
        view: Who is told.

    Raises:
        BadInput: The study cannot be run here, or not in this store.
        EngineError: Something of an engine is left, so that nothing can be measured any more.
    """
    with file.named():
        planner = Planner(file.study, usual_s)
        with _store(file, planner, folder) as store:
            walk, trials = Walk(file.study, planner), store.trials()
            spent_s = _replay(walk, trials, same=store.folder)
            bench = Bench(file.study, planner, store.folder)
            while (wanted := walk.wanted) is not None and spent_s < limit_s(file.study):
                arm = walk.planned
                number, place = store.begin(wanted, arm.identity, now())
                view.begin(walk, wanted, place)
                asks = accuracy_gate.asks(wanted, arm.arm, file.study, walk.found().trials)
                trial = await bench.carry_out(wanted, arm, place, view.progress, asks=asks)
                store.end(number, trial)
                spent_s += trial.seconds
                walk.add(trial)
                view.end(walk, trial)
            return walk.found(BUDGET)


def recall(store: Store) -> tuple[Findings, Mapping[str, Any]]:
    """What a study has found, and its facts, from its store alone, whatever engines are installed here."""
    known = store.facts
    study = Study.model_validate(known["study"])
    if known["source"] == facts.IMPORTED:
        return published.found(study, store.trials().values()), known
    walk = Walk(study, Planner(_as_built(study, known["builds"])))
    spent_s = _replay(walk, store.trials())
    return walk.found(BUDGET if spent_s >= limit_s(study) else NOT_YET), known


def limit_s(study: Study) -> float:
    """Time that may be spent on starts; infinite without a budget."""
    budget, devices = study.budget, study.hardware.devices
    limits = [float("inf")]
    if budget.hours is not None:
        limits.append(budget.hours * 3600)
    if budget.gpu_hours is not None and devices:
        limits.append(budget.gpu_hours * 3600 / devices)
    return min(limits)


def _as_built(study: Study, builds: Mapping[str, str | None]) -> Study:
    """A study whose engines are spoken to in the versions that they had."""
    engines = {
        name: base.model_copy(update={"version": base.version or builds.get(name)})
        for name, base in study.engines.items()
    }
    return study.model_copy(update={"engines": engines})


def _replay(walk: Walk, trials: Mapping[Wanted, Trial], *, same: Path | None = None) -> float:
    """Walk with what was kept, as far as it goes; returns the time that it took.

    Args:
        walk: Which.
        trials: What was kept.
        same: Have arms served now as they were then, in the store of that folder.

    Raises:
        BadInput: One would be served otherwise.
    """
    spent_s = 0.0
    while walk.wanted is not None and (trial := trials.get(walk.wanted)) is not None:
        if same is not None and trial.config != walk.planned.identity:
            problem = f"{walk.wanted.step}/{walk.wanted.arm} would be served otherwise now than it was then"
            raise BadInput(str(same), problem, "use the engines with which it was begun, or begin another store")
        spent_s += trial.seconds
        walk.add(trial)
    return spent_s


@contextmanager
def _store(file: StudyFile, planner: Planner, folder: Path) -> Iterator[Store]:
    """The store of a study, held and fit to go on with."""
    as_is = facts.gather(file.study, planner, file.text)
    if not Store.there(folder):  # before there is a folder that would have to go again
        facts.refuse_unready(file.study, planner, as_is)
    with held(folder):
        if not Store.there(folder):
            with Store.create(folder, as_is) as store:
                yield store
            return
        with Store.open(folder) as store:
            facts.refuse_changes(store.facts, as_is, folder)
            facts.refuse_unready(file.study, planner, as_is)
            for name in ("study", "text"):  # what may change of them
                store.note(name, as_is[name])
            yield store
