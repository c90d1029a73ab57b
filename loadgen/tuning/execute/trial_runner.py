"""Bench: carries out starts: an engine, its workloads one after another, and what is kept of them."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loadgen import report
from loadgen.analysis.search.early_stop import StopRule
from loadgen.checks import Verdict
from loadgen.config.settings import RunSettings
from loadgen.errors import EngineError, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.report.run_summary import brief, reasons
from loadgen.runner import run
from loadgen.runner.coordinator import open_participant
from loadgen.runner.engine_session import EngineSession, open_engines
from loadgen.runner.run_result import Result
from loadgen.tuning.execute.accuracy import answers
from loadgen.tuning.execute.goodput import search_goodput
from loadgen.tuning.execute.store import NotKept, kept
from loadgen.tuning.execute.trial import INVALID, Answered, Failure, Ran, Trial, Wanted, now
from loadgen.tuning.plan.plan import Planned
from loadgen.tuning.plan.planner import Planner
from loadgen.tuning.spec import questions
from loadgen.tuning.spec.search_effort import Effort
from loadgen.tuning.spec.study import Study
from loadgen.util import scratch_dir
from loadgen.util.atomic_file import write_atomic
from loadgen.util.plugins import find

CONFIGURATION = "configuration.json"  # that the server told
RECORDS, RESULT = "records.jsonl", "result.json"

OnProgress = Callable[[str, Progress], None]


class Bench:
    """Where starts are carried out, one at a time.

    Args:
        study: Whose.
        planner: Knows its engines and workloads.
        root: Of the store: paths are told relative to it.
    """

    def __init__(self, study: Study, planner: Planner, root: Path) -> None:
        self._study, self._planner, self._root = study, planner, root
        self._launcher = find("launchers", "local")

    async def carry_out(
        self, wanted: Wanted, arm: Planned, folder: Path, on_progress: OnProgress, *, asks: bool = False
    ) -> Trial:
        """Start an arm, run its workloads, and put it away.

        Args:
            wanted: What for.
            arm: Which.
            folder: For its files; it is there, and empty.
            on_progress: Called a few times a second with the workload, nothing while the engine starts, and how far
                that is.
            asks: Whether the questions of the study's gate are asked too.

        Raises:
            EngineError: Something of the engine is left: nothing else can be measured here.
            BadInput: A workload cannot be made, or the engine cannot be started like this.
            NotKept: A file of it cannot be written.
        """
        began, since_s = now(), time.monotonic()
        found = Trial(wanted, arm.identity, None, began, 0.0, folder=str(folder.relative_to(self._root)))
        engine = self._planner.served.engine(arm.arm)
        try:
            begins = [partial(self._begin, engine, arm, folder, devices) for devices in arm.arm.shares]
            tell = partial(on_progress, "")
            for names in arm.together:
                async with open_engines(engine, begins, self._study.budget.start_timeout, tell) as engines:
                    if found.ready_s is None:
                        found = replace(found, ready_s=time.monotonic() - since_s)
                        found = await self._known(found, engines, folder)
                    found = await self._loads(engines, arm, names, found, folder, on_progress)
                    last = names[-1] == arm.workloads[-1]
                    if asks and last and found.failure is None:
                        found = replace(found, answered=await self._ask(engines, arm))
                if found.failure is not None:
                    break
        except EngineError as error:
            crash = getattr(error, "crash", None)
            if crash is None:
                raise
            found = replace(found, failure=Failure(crash.kind, crash.cause, error.transient))
        return replace(found, seconds=time.monotonic() - since_s)

    async def _loads(
        self,
        engines: EngineSession,
        arm: Planned,
        names: Sequence[str],
        found: Trial,
        folder: Path,
        on_progress: OnProgress,
    ) -> Trial:
        """Workloads one after another, none of them with what is left of another in the engine's caches."""
        for number, name in enumerate(names):
            if number:
                await _flush(engines)
            ran, failure = await self._load(engines, arm, name, self._made(folder / name), on_progress)
            found = replace(found, runs={**found.runs, name: ran}, failure=failure)
            if failure is not None:
                break
        return found

    def _begin(self, engine: Any, arm: Planned, folder: Path, devices: tuple[str, ...]) -> Any:
        host = self._study.engines[arm.arm.engine].host
        launcher = self._launcher(folder)
        return launcher.begin(engine, arm.model, arm.arm.knobs, arm.arm.words, host=host, devices=devices)

    async def _load(
        self, engines: EngineSession, arm: Planned, name: str, folder: Path, on_progress: OnProgress
    ) -> tuple[Ran, Failure | None]:
        """One workload: what it found, where goodput decides the highest rate too, and why that counts for nothing."""
        objective = self._study.objective
        slo = objective.slo if objective.metric != "goodput" else None
        settings = self._planner.loads[name].replace(model=arm.model, records=str(folder / RECORDS), slo=slo)
        tell = partial(on_progress, name)
        result = await _measured(engines, settings, tell)
        ran = self._kept(result, folder)
        failure = await _trouble(engines)
        if failure is None and result.verdict is Verdict.INVALID:
            failure = Failure(INVALID, "; ".join(reasons(result.data, "A")), transient=True)
        if failure is not None or (objective.metric, objective.workload) != ("goodput", name):
            return ran, failure

        async def at(rated: RunSettings, name: str, stop: StopRule) -> Result:
            return await _measured(engines, rated, tell, stop)

        effort = Effort.for_effect(self._study.decision.min_effect)
        start = result.data["request_throughput"] or 1.0
        try:
            found = await search_goodput(at, settings, objective.limits, effort, folder=folder, start=start)
        except (EngineError, NotKept):
            raise
        except LoadgenError as error:
            return ran, await _trouble(engines) or Failure(INVALID, str(error), transient=True)
        judged = {**ran.summary["loadgen"], "goodput": found}
        return replace(ran, summary={**ran.summary, "loadgen": judged}), await _trouble(engines)

    async def _ask(self, engines: EngineSession, arm: Planned) -> Answered:
        """What the gate asks."""
        accuracy = self._study.objective.accuracy
        assert accuracy is not None
        await _flush(engines)
        server = await engines.server(self._planner.loads[arm.workloads[0]].replace(model=arm.model))
        return await answers(server.settings, server.model, questions.read(accuracy.file or questions.OWN))

    async def _known(self, found: Trial, engines: EngineSession, folder: Path) -> Trial:
        """A trial with what its server tells of itself, which is kept in a file too."""
        first = engines.processes[0]
        build = await asyncio.to_thread(first.version) or await asyncio.to_thread(engines.engine.version)
        told = _by_name(await asyncio.to_thread(first.resolved))
        if told is not None:
            with kept(self._root):
                write_atomic(folder / CONFIGURATION, report.to_json(told) + "\n")
        return replace(found, build=build, told=told)

    def _kept(self, result: Result, folder: Path) -> Ran:
        path = folder / RESULT
        with kept(self._root):
            write_atomic(path, report.to_json(result.data) + "\n")
        return Ran(brief(result.data), str(path.relative_to(self._root)))

    def _made(self, folder: Path) -> Path:
        with kept(self._root):
            folder.mkdir(mode=0o700)
        return folder


async def _measured(
    engines: EngineSession,
    settings: RunSettings,
    on_progress: Callable[[Progress], None],
    stop: StopRule = lambda progress: None,
) -> Result:
    """One run, which is ended early for the reason that `stop` gives.

    Raises:
        NotKept: Its records are not whole, which is no fault of the arm.
    """
    asked = settings.checked()
    with scratch_dir.scratch_folder() as own:
        async with open_participant(asked) as measurer:

            def tell(progress: Progress) -> None:
                on_progress(progress)
                if (why := stop(progress)) is not None:
                    measurer.abort(why)

            server = await engines.server(asked)
            result = await run.measure(server, asked, own, on_progress=tell, measurer=measurer)
    if (why := result.data["loadgen"]["client"]["records_error"]) is not None:
        raise NotKept(str(asked.records), why)
    return result


async def _flush(engines: EngineSession) -> None:
    """Let nothing that was computed for one workload be of use to the next."""
    for process in engines.processes:
        await asyncio.to_thread(process.flush)


async def _trouble(engines: EngineSession) -> Failure | None:
    """What is wrong with engines that have run; None if nothing is."""
    for process in engines.processes:
        error = await asyncio.to_thread(process.trouble)
        if error is not None:
            return Failure(error.crash.kind, error.crash.cause, error.transient)
    return None


def _by_name(told: Any) -> dict[str, Any] | None:
    """The settings that a server tells, at whatever depth, by name; of a name that is there twice, the first."""
    found: dict[str, Any] = {}
    for name, value in _leaves(told):
        found.setdefault(name, value)
    return found or None


def _leaves(told: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(told, Mapping):
        for key, value in told.items():
            yield from _leaves(value, str(key).replace("-", "_"))
    elif told is not None and name:
        yield name, told
