"""Runs a study in its store, from wherever it stands there, and reads the findings back from a
store.

A study with rounds starts the servers of a block side by side: they stay up together, and their
runs take turns. What disturbs the machine for longer than a run disturbs all arms alike, so that
fewer fresh starts show an effect. Each round has prompts of its own, the same for all arms. If a
run was disturbed, its round is set aside and another follows.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from loadgen.errors import BadInput, EngineError
from loadgen.lab.study.execute import facts
from loadgen.lab.study.execute.accuracy_gate import asks_questions
from loadgen.lab.study.execute.changes import merged_stages
from loadgen.lab.study.execute.disturbance import MAX_DISTURBED
from loadgen.lab.study.execute.findings import BUDGET, NOT_YET, Findings
from loadgen.lab.study.execute.publications import published_findings
from loadgen.lab.study.execute.store import FOLDERS, Store, locked
from loadgen.lab.study.execute.trial import Disturbance, Trial, TrialRequest, WorkloadRun, now
from loadgen.lab.study.execute.trial_runner import OnProgress, TrialRunner, crash, flush
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.estimate import UsualStart
from loadgen.lab.study.plan.plan import CONFIRMATION, PlannedArm
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec.strict_model import convert
from loadgen.lab.study.spec.study import Study
from loadgen.lab.study.spec.study_file import StudyFile
from loadgen.metrics.progress import Progress
from loadgen.report.result.fields import to_json_values
from loadgen.runner.start_engine import EngineSession

THROUGHPUT = "total_token_throughput"

logger = logging.getLogger("loadgen")


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

    Args:
        file: The study.
        folder: Folder of the store, created if there is none.
        usual_s: Returns how long servers have taken to start on this machine.
        view: Display of the progress.

    Raises:
        BadInput: The study cannot run here, or not in this store.
        EngineError: An engine could not be stopped, so nothing more can be measured.
    """
    with file.named(), _store(file, Planner(file.study), folder) as store:
        study = convert(store.facts["study"], Study)
        planner = Planner(study, usual_s)
        walk = Walk(study, planner)
        trials = store.trials()
        store.give_up_running()
        spent_s = _replay(walk, trials, same=store.folder) + store.lost_s
        runner = TrialRunner(study, planner, store.folder)
        run_next = _run_block if study.decision.rounds > 1 else _run_start
        while (request := walk.request) is not None and spent_s < limit_s(study):
            if request not in trials:
                left_s = limit_s(study) - spent_s
                ended = await _within(left_s, run_next(walk, store, runner, view), store)
                if not ended:
                    break
                trials |= {trial.request: trial for trial in ended}
            trial = trials[request]
            spent_s += trial.seconds
            walk.add(trial)
            view.end(walk, trial)
        return walk.found(BUDGET)


async def _within(
    left_s: float, starting: Coroutine[Any, Any, list[Trial]], store: Store
) -> list[Trial]:
    """Return the starts that end within the rest of the budget; else give them up, and return
    none.
    """
    since_s = time.monotonic()
    try:
        async with asyncio.timeout(None if math.isinf(left_s) else left_s) as rest:
            return await starting
    except TimeoutError:
        if not rest.expired():
            raise
    store.give_up_running(time.monotonic() - since_s)
    logger.warning(
        "the budget is spent: the start that was running is given up; its files stay in %s",
        store.folder / FOLDERS,
    )
    return []


async def _run_start(walk: Walk, store: Store, runner: TrialRunner, view: View) -> list[Trial]:
    assert walk.request is not None
    number, folder, asks = _begin(walk, store, view, walk.request, walk.planned)
    trial = await runner.run_trial(walk.request, walk.planned, folder, view.progress, asks=asks)
    store.end(number, trial)
    return [trial]


async def _run_block(walk: Walk, store: Store, runner: TrialRunner, view: View) -> list[Trial]:
    ended = store.trials()
    numbers = []
    starts = []
    for request, arm in walk.block:
        if request not in ended:
            number, folder, asks = _begin(walk, store, view, request, arm)
            numbers.append(number)
            trial = runner.begun(request, arm, folder)
            starts.append(Start(arm, trial, folder, partial(_named, view, request.arm), asks))
    trials = await SideBySide(walk.study, runner).run_block(starts)
    for number, trial in zip(numbers, trials, strict=True):
        store.end(number, trial)
    return trials


def _begin(
    walk: Walk, store: Store, view: View, request: TrialRequest, arm: PlannedArm
) -> tuple[int, Path, bool]:
    """Record and show that a start begins; returns its number, its folder, and whether it asks
    the gate's questions.
    """
    number, folder = store.begin(request, arm.identity, now())
    view.begin(walk, request, folder)
    return number, folder, asks_questions(request, arm.spec, walk.study, walk.found().trials)


def _named(view: View, arm: str, workload: str, progress: Progress) -> None:
    view.progress(f"{arm}, {workload}" if workload else arm, progress)


def load_findings(store: Store) -> tuple[Findings, Mapping[str, Any]]:
    """Return a study's findings and facts from its store alone; its engines need not be installed.

    Raises:
        BadInput: The store cannot be read.
    """
    from msgspec.structs import replace as replace_fields  # slow to import

    stored = store.facts
    study = convert(stored["study"], Study)
    if stored["source"] == facts.IMPORTED:
        return published_findings(study, store.trials().values()), stored
    builds = stored["builds"]
    bases = study.engines
    engines = {
        name: replace_fields(base, version=base.version or builds.get(name))
        for name, base in bases.items()
    }
    walk = Walk(study, Planner(replace_fields(study, engines=engines)))
    spent_s = _replay(walk, store.trials()) + store.lost_s
    return walk.found(BUDGET if spent_s >= limit_s(study) else NOT_YET), stored


def limit_s(study: Study) -> float:
    """Return the maximum time of all starts in seconds; infinite without a budget."""
    budget = study.budget
    devices = study.hardware.devices
    limits = [float("inf")]
    if budget.hours is not None:
        limits.append(budget.hours * 3600)
    if budget.gpu_hours is not None and devices:
        limits.append(budget.gpu_hours * 3600 / devices)
    return min(limits)


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
            problem = (
                f"{walk.request.step}/{walk.request.arm} would be served differently from "
                "its earlier starts"
            )
            raise BadInput(
                str(same), problem, "use the same engines as before, or begin another store"
            )
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
            _extend(store, now_facts["study"])
            for name in ("study", "text"):  # parts of them may change
                store.note(name, now_facts[name])
            yield store


def _extend(store: Store, study: dict[str, Any]) -> None:
    """Give a study the stages that its store goes on with.

    Stages that are added to a study that was over may change its winner, so the confirmation is
    measured again.

    Raises:
        AtFault: A measured stage has changed or is missing.
    """
    before = store.facts["study"]["stages"]
    measured = {request.step for request in store.trials()}
    study["stages"] = merged_stages(before, study["stages"], measured, store.folder)
    if CONFIRMATION in measured and len(study["stages"]) > len(before):
        store.set_aside(CONFIRMATION)


@dataclass
class Start:
    """A start in a block.

    Attributes:
        arm: Its arm.
        trial: Its outcome so far.
        folder: Folder for its files.
        on_progress: Called a few times a second with the name of the workload and the progress.
        asks: Whether it asks the questions of the accuracy gate too.
        runs: Its runs of the deciding workload, one for each round.
    """

    arm: PlannedArm
    trial: Trial
    folder: Path
    on_progress: OnProgress
    asks: bool
    runs: list[WorkloadRun] = field(default_factory=list)


class SideBySide:
    """Runs blocks of starts.

    Args:
        study: The study.
        runner: The runner of its trials.
    """

    def __init__(self, study: Study, runner: TrialRunner) -> None:
        self._study = study
        self._runner = runner
        self._workload = study.objective.workload

    async def run_block(self, starts: Sequence[Start]) -> list[Trial]:
        """Start the arms of a block, run the deciding workload in rounds, and stop them.

        Further workloads, and questions, follow in a start of their own.

        Raises:
            EngineError, BadInput, NotKept: As `TrialRunner.run_trial` does.
        """
        since_s = time.monotonic()
        await self._runner.wait_for_quiet(partial(starts[0].on_progress, ""))
        async with AsyncExitStack() as stack:
            sessions: dict[str, EngineSession] = {}
            for start in starts:
                tell = partial(start.on_progress, "")
                try:
                    engines, ready_s = await stack.enter_async_context(
                        self._runner.engines(start.trial.request, start.arm, start.folder, tell)
                    )
                except EngineError as error:
                    start.trial = replace(start.trial, failure=crash(error))
                    continue
                sessions[start.arm.name] = engines
                trial = replace(start.trial, ready_s=ready_s)
                start.trial = await self._runner.with_server_config(trial, engines, start.folder)
            await self._run_rounds(starts, sessions)
        for start in starts:
            others = [
                tuple(name for name in names if name != self._workload)
                for names in start.arm.batches
            ]
            batches = [names for names in others if names]
            if not batches and start.asks:
                batches = [()]
            if start.trial.failure is None:
                start.trial = await self._runner.run_batches(
                    start.trial,
                    start.arm,
                    batches,
                    start.folder,
                    start.on_progress,
                    asks=start.asks,
                )
        seconds = (time.monotonic() - since_s) / len(starts)
        return [replace(start.trial, seconds=seconds) for start in starts]

    async def _run_rounds(
        self, starts: Sequence[Start], sessions: Mapping[str, EngineSession]
    ) -> None:
        rounds = self._study.decision.rounds
        excess: list[float] = []  # of each round; above 1 it was disturbed
        while (
            len(excess) < rounds + MAX_DISTURBED
            and len([part for part in excess if part <= 1]) < rounds
        ):
            going = [start for start in starts if start.trial.failure is None]
            if not going:
                return
            if excess:
                is_quiet = await self._runner.wait_for_quiet(partial(going[0].on_progress, ""))
                if not is_quiet and len(excess) >= rounds:
                    break  # further rounds would be disturbed, too
            random.Random(
                f"{self._study.decision.seed} {starts[0].trial.request} {len(excess)}"
            ).shuffle(going)
            for start in going:
                await self._run_one(start, sessions, len(excess))
            ran = [start.runs[-1] for start in going if start.trial.failure is None]
            excess.append(max((_disturbance(run).excess for run in ran), default=0.0))
        order = sorted(range(len(excess)), key=lambda number: (max(1.0, excess[number]), number))
        for start in starts:
            if start.trial.failure is None:
                run = combined([start.runs[number] for number in sorted(order[:rounds])])
                start.trial = replace(start.trial, runs={self._workload: run})

    async def _run_one(
        self, start: Start, sessions: Mapping[str, EngineSession], number: int
    ) -> None:
        engines = sessions[start.arm.name]
        foreign: list[int] = []
        for name, session in sessions.items():
            if name != start.arm.name:
                foreign += [process.pid for process in session.processes]
        if number:
            await flush(engines)
        run, failure = await self._runner.run_workload(
            engines,
            start.arm,
            self._workload,
            start.folder / (f"{self._workload}-{number + 1}" if number else self._workload),
            start.on_progress,
            round_=number,
            foreign=foreign,
        )
        start.runs.append(run)
        if failure is not None:
            start.trial = replace(start.trial, runs={self._workload: run}, failure=failure)


def combined(rounds: Sequence[WorkloadRun]) -> WorkloadRun:
    """Return the rounds of a start as one run: the numbers of the middle one, and under `loadgen`
    all of them.

    Its disturbance is the mean of the rounds', which were repeated already.
    """
    disturbances = [_disturbance(run) for run in rounds]
    ranked = sorted(rounds, key=lambda run: run.summary.get(THROUGHPUT) or 0.0)
    middle = ranked[(len(ranked) - 1) // 2]
    parts = ("others_cores", "stolen_share", "client_error")
    means = {name: fmean(getattr(part, name) or 0.0 for part in disturbances) for name in parts}
    mean = Disturbance(**means, cores=disturbances[0].cores, quiet=False)
    judged = {
        **middle.summary["loadgen"],
        "disturbance": to_json_values(mean),
        "rounds": [{"summary": dict(run.summary), "path": run.path} for run in rounds],
    }
    return replace(middle, summary={**middle.summary, "loadgen": judged})


def _disturbance(run: WorkloadRun) -> Disturbance:
    return run.findings.disturbance or Disturbance()
