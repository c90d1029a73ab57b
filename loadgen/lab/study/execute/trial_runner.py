"""Runs trials: starts the servers of an arm, runs its workloads one after another, and saves the
results.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loadgen import report
from loadgen.analysis.search.early_stop import StopRule
from loadgen.checks import Verdict
from loadgen.config.load import FIRST_TOKEN_S
from loadgen.config.settings import RunSettings
from loadgen.errors import EngineError, LoadgenError
from loadgen.lab.study.execute.accuracy_gate import answers
from loadgen.lab.study.execute.disturbance import QuietWait, Reading, client_error
from loadgen.lab.study.execute.score import search_max_rate
from loadgen.lab.study.execute.store import NotKept, kept
from loadgen.lab.study.execute.trial import (
    INVALID,
    Answers,
    Failure,
    Trial,
    TrialRequest,
    WorkloadRun,
    now,
)
from loadgen.lab.study.plan.estimate import Effort
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.spec import questions
from loadgen.lab.study.spec.study import MAX_RATE, Study
from loadgen.metrics.progress import Progress
from loadgen.report.result.fields import to_json_values
from loadgen.report.result.series import RunBrief
from loadgen.runner import run
from loadgen.runner.coordinator import open_participant
from loadgen.runner.run_result import Result
from loadgen.runner.start_engine import EngineSession, start_engines
from loadgen.util.files import write_atomic
from loadgen.util.packages import find

CONFIGURATION = "configuration.json"  # as the server reported it
RECORDS = "records.jsonl"
RESULT = "result.json"
HANG = "hang"  # a kind of failure, as of a server that hangs while it starts
# Of every workload, s, unless the study says more: of the first token, between tokens, and of the
# silence of all streams until the server is asked.
LIMITS_S = {
    "first_token_timeout": FIRST_TOKEN_S,
    "stall_timeout": 60.0,
    "liveness_timeout": 15.0,
}
START_SEED = "LOADGEN_START_SEED"  # variable of every server; the simulator draws its noise by it

OnProgress = Callable[[str, Progress], None]


class TrialRunner:
    """Runs trials, one at a time.

    Args:
        study: The study.
        planner: Its planner, for engines and workloads.
        root: Folder of the store; paths in trials are relative to it.
    """

    def __init__(self, study: Study, planner: Planner, root: Path) -> None:
        self._study = study
        self._planner = planner
        self._root = root
        self._launcher = find("launchers", "local")
        self._quiet_wait = QuietWait(study.budget.quiet_wait)
        self._is_quiet = False

    async def run_trial(
        self,
        request: TrialRequest,
        arm: PlannedArm,
        folder: Path,
        on_progress: OnProgress,
        *,
        asks: bool = False,
    ) -> Trial:
        """Wait for a quiet machine, start an arm, run its workloads, and stop it.

        Args:
            request: Step, block and arm of the start.
            arm: The arm.
            folder: Folder for its files, which exists and is empty.
            on_progress: Called a few times a second with the name of the workload, empty before the
                first one, and the progress.
            asks: Whether to ask the questions of the study's accuracy gate too.

        Raises:
            EngineError: The engine could not be stopped, so nothing more can be measured here.
            BadInput: A workload cannot be prepared, or the engine refuses the configuration.
            NotKept: A file cannot be written.
        """
        since_s = time.monotonic()
        await self.wait_for_quiet(partial(on_progress, ""))
        trial = self.begun(request, arm, folder)
        trial = await self.run_batches(trial, arm, arm.batches, folder, on_progress, asks=asks)
        return replace(trial, seconds=time.monotonic() - since_s)

    async def wait_for_quiet(self, tell: Callable[[Progress], None]) -> bool:
        """Wait until the machine is quiet, within the limits of the study's budget; returns
        whether it is.
        """
        self._is_quiet = await self._quiet_wait.wait(tell)
        return self._is_quiet

    def begun(self, request: TrialRequest, arm: PlannedArm, folder: Path) -> Trial:
        """Return a trial that begins now."""
        return Trial(
            request, arm.identity, None, now(), 0.0, folder=str(folder.relative_to(self._root))
        )

    async def run_batches(
        self,
        trial: Trial,
        arm: PlannedArm,
        batches: Sequence[tuple[str, ...]],
        folder: Path,
        on_progress: OnProgress,
        *,
        asks: bool,
    ) -> Trial:
        """Run workloads, each batch in a fresh start, and add the results to a trial.

        Args:
            trial: The trial so far.
            arm: Its arm.
            batches: Names of the workloads.
            folder: Folder of the trial's files.
            on_progress: As for `run_trial`.
            asks: Whether to ask the questions of the study's accuracy gate after the last workload.
        """
        for names in batches:
            try:
                async with self.engines(trial.request, arm, folder, partial(on_progress, "")) as (
                    engines,
                    ready_s,
                ):
                    if trial.ready_s is None:
                        trial = await self.with_server_config(
                            replace(trial, ready_s=ready_s), engines, folder
                        )
                    for place, name in enumerate(names):
                        if place:
                            await flush(engines)
                        workload_run, failure = await self.run_workload(
                            engines, arm, name, folder / name, on_progress
                        )
                        trial = replace(
                            trial, runs={**trial.runs, name: workload_run}, failure=failure
                        )
                        if failure is not None:
                            break
                    if asks and names is batches[-1] and trial.failure is None:
                        trial = replace(trial, answers=await self._ask(engines, arm))
            except EngineError as error:
                trial = replace(trial, failure=crash(error))
            if trial.failure is not None:
                break
        return trial

    @contextlib.asynccontextmanager
    async def engines(
        self, request: TrialRequest, arm: PlannedArm, folder: Path, tell: Callable[[Progress], None]
    ) -> AsyncIterator[tuple[EngineSession, float]]:
        """Start the servers of an arm, and stop them after the block; yields them with the time
        that they took, s.
        """
        since_s = time.monotonic()
        engine = self._planner.engines.engine(arm.spec)
        host = self._study.engines[arm.spec.engine].host
        begins = []
        for number, devices in enumerate(arm.spec.shares):
            seed = self._start_seed(request, number)
            seeded = replace(engine, env={**engine.env, START_SEED: seed})
            begin = partial(self._launcher(folder).begin, host=host, devices=devices)
            begins.append(partial(begin, seeded, arm.model, arm.spec.knobs, arm.spec.words))
        async with start_engines(engine, begins, self._study.budget.start_timeout, tell) as engines:
            yield engines, time.monotonic() - since_s

    def _start_seed(self, request: TrialRequest, replica: int) -> str:
        """Return the seed of one server: the study's seed and the start decide it, and each
        start has another one.
        """
        start = (
            f"{self._study.decision.seed} {request.step} {request.block} {request.arm} "
            f"{request.attempt} {replica}"
        )
        return str(random.Random(start).getrandbits(31))

    async def run_workload(
        self,
        engines: EngineSession,
        arm: PlannedArm,
        name: str,
        folder: Path,
        on_progress: OnProgress,
        *,
        round_: int = 0,
        foreign: Sequence[int] = (),
    ) -> tuple[WorkloadRun, Failure | None]:
        """Run a workload, and the search for the highest rate if that decides; returns why it
        does not count.

        Args:
            engines: The servers.
            arm: Their arm.
            name: The workload.
            folder: Folder for its files, which is created.
            on_progress: As for `run_trial`.
            round_: Number of the round, from 0; each has prompts of its own.
            foreign: Process ids of engines of other arms, which count as others in the CPU times.

        Raises:
            EngineError: An engine could not be stopped.
            NotKept: A file cannot be written.
        """
        objective = self._study.objective
        slo = objective.slo if objective.metric != MAX_RATE else None
        self._create(folder)
        load = self._planner.loads[name]
        settings = load.replace(
            model=arm.model, records=str(folder / RECORDS), slo=slo, seed=load.seed + round_
        ).unattended(**LIMITS_S)
        tell = partial(on_progress, name)
        before = self._read(foreign)
        result = await _measure(engines, settings, tell)
        path = folder / RESULT
        with kept(self._root):
            write_atomic(path, report.to_json(result.data) + "\n")
        brief = RunBrief.of(result).to_dict()
        brief["loadgen"] |= {"disturbance": self._disturbance(before, foreign, result)}
        if (why := result.explain) is not None:
            limit = why.answer[0].lower() + why.answer[1:].rstrip(".")
            brief["loadgen"] |= {"limited_by": limit, "phases": why.phases}
        workload_run = WorkloadRun(brief, str(path.relative_to(self._root)))
        failure = await _engine_failure(engines)
        if failure is None and result.silences and result.silences[-1].hung:
            failure = Failure(HANG, result.silences[-1].found, transient=True)
        if failure is None and result.verdict is Verdict.INVALID:
            failure = Failure(INVALID, "; ".join(result.reasons("A")), transient=True)
        if failure is not None or (objective.metric, objective.workload) != (MAX_RATE, name):
            return workload_run, failure

        async def measure(rated: RunSettings, name: str, stop: StopRule) -> Result:
            return await _measure(engines, rated, tell, stop)

        effort = Effort.for_effect(self._study.decision.min_effect)
        start = result.numbers.request_throughput or 1.0
        try:
            found = await search_max_rate(
                measure, settings, objective.limits, effort, folder=folder, start=start
            )
        except (EngineError, NotKept):
            raise
        except LoadgenError as error:
            return workload_run, await _engine_failure(engines) or Failure(
                INVALID, str(error), transient=True
            )
        judged = brief["loadgen"] | {"max_rate": to_json_values(found)}
        judged |= {"disturbance": self._disturbance(before, foreign, result)}
        return replace(workload_run, summary=brief | {"loadgen": judged}), await _engine_failure(
            engines
        )

    def _read(self, foreign: Sequence[int]) -> Reading:
        """Read the CPU times; without foreign engines, the machine may be found quiet by them
        later.
        """
        return Reading.now(foreign) if foreign else self._quiet_wait.note()

    def _disturbance(self, before: Reading, foreign: Sequence[int], result: Result) -> Any:
        return to_json_values(
            self._read(foreign).disturbance(
                before, client_error=client_error(result), quiet=self._is_quiet
            )
        )

    def _create(self, folder: Path) -> None:
        with kept(self._root):
            folder.mkdir(mode=0o700)

    async def _ask(self, engines: EngineSession, arm: PlannedArm) -> Answers:
        accuracy = self._study.objective.accuracy
        assert accuracy is not None
        await flush(engines)
        server = await engines.server(
            self._planner.loads[arm.workloads[0]].replace(model=arm.model)
        )
        return await answers(
            server.settings, server.model, questions.read(accuracy.file or questions.OWN)
        )

    async def with_server_config(self, trial: Trial, engines: EngineSession, folder: Path) -> Trial:
        """Add the version and the configuration that the server reports, and save the latter in
        a file.
        """
        first = engines.processes[0]
        build = await asyncio.to_thread(first.version) or await asyncio.to_thread(
            engines.engine.version
        )
        config: dict[str, Any] = {}
        for name, value in _leaves(await asyncio.to_thread(first.resolved)):
            config.setdefault(name, value)
        if config:
            with kept(self._root):
                write_atomic(folder / CONFIGURATION, report.to_json(config) + "\n")
        return replace(trial, build=build, server_config=config or None)


async def _measure(
    engines: EngineSession,
    settings: RunSettings,
    on_progress: Callable[[Progress], None],
    stop: StopRule = lambda progress: None,
) -> Result:
    """Make one run; it ends early if `stop` returns a reason.

    Raises:
        NotKept: Its records are incomplete, which is not a failure of the arm.
    """
    checked = settings.checked()
    async with open_participant(checked) as participant:

        def tell(progress: Progress) -> None:
            on_progress(progress)
            if (why := stop(progress)) is not None:
                participant.abort(why)

        server = await engines.server(checked)
        result = await run.run(checked, server=server, on_progress=tell, participant=participant)
    if (why := result.client.records_error) is not None:
        raise NotKept(str(checked.records), why)
    return result


def crash(error: EngineError) -> Failure:
    """Return the failure of an arm whose engine crashed.

    Raises:
        EngineError: It is no failure of the arm: the engine could not be stopped.
    """
    cause = getattr(error, "crash", None)
    if cause is None:
        raise error
    return Failure(cause.kind, cause.cause, error.transient)


async def flush(engines: EngineSession) -> None:
    """Empty the caches of all servers, so that no workload profits from the one before."""
    for process in engines.processes:
        await asyncio.to_thread(process.flush)


async def _engine_failure(engines: EngineSession) -> Failure | None:
    for process in engines.processes:
        if (error := await asyncio.to_thread(process.trouble)) is not None:
            return crash(error)
    return None


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, str(key).replace("-", "_"))
    elif value is not None and name:
        yield name, value
