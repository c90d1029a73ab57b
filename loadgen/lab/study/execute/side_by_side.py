"""Starts side by side: the servers of a block stay up together, and their runs take turns in rounds.

What disturbs the machine for longer than a run disturbs all arms alike, so that fewer fresh starts show an effect. Each
round has prompts of its own, the same for all arms. If a run was disturbed, its round is set aside and another follows.
"""

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from loadgen.errors import EngineError
from loadgen.lab.study.execute.start_attempts import MAX_DISTURBED
from loadgen.lab.study.execute.trial import Trial, WorkloadRun
from loadgen.lab.study.execute.trial_runner import OnProgress, TrialRunner, crash, flush
from loadgen.lab.study.execute.workload_findings import Disturbance
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.spec.study import Study
from loadgen.report.result.fields import to_json_values
from loadgen.runner.start_engine import EngineSession

THROUGHPUT = "total_token_throughput"


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
        self._study, self._runner = study, runner
        self._workload = study.objective.workload

    async def run_block(self, starts: Sequence[Start]) -> list[Trial]:
        """Start the arms of a block, run the deciding workload in rounds, and stop them; raises as `run_trial`."""
        # Further workloads, and questions, follow in a start of their own.
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
            rest = [tuple(name for name in names if name != self._workload) for names in start.arm.batches]
            batches = [names for names in rest if names] or [()] * start.asks
            if start.trial.failure is None:
                start.trial = await self._runner.run_batches(
                    start.trial, start.arm, batches, start.folder, start.on_progress, asks=start.asks
                )
        each_s = (time.monotonic() - since_s) / len(starts)
        return [replace(start.trial, seconds=each_s) for start in starts]

    async def _run_rounds(self, starts: Sequence[Start], sessions: Mapping[str, EngineSession]) -> None:
        wanted, excess = self._study.decision.rounds, list[float]()
        while len(excess) < wanted + MAX_DISTURBED and sum(each <= 1 for each in excess) < wanted:
            going = [start for start in starts if start.trial.failure is None]
            if not going:
                return
            if excess:
                is_quiet = await self._runner.wait_for_quiet(partial(going[0].on_progress, ""))
                if not is_quiet and len(excess) >= wanted:
                    break  # further rounds would be disturbed, too
            random.Random(f"{self._study.decision.seed} {starts[0].trial.request} {len(excess)}").shuffle(going)
            for start in going:
                await self._run_one(start, sessions, len(excess))
            ran = [start.runs[-1] for start in going if start.trial.failure is None]
            excess.append(max((_disturbance(run).excess for run in ran), default=0.0))
        order = sorted(range(len(excess)), key=lambda number: (max(1.0, excess[number]), number))
        for start in starts:
            if start.trial.failure is None:
                run = combined([start.runs[number] for number in sorted(order[:wanted])])
                start.trial = replace(start.trial, runs={self._workload: run})

    async def _run_one(self, start: Start, sessions: Mapping[str, EngineSession], number: int) -> None:
        engines = sessions[start.arm.name]
        others = [each for name, each in sessions.items() if name != start.arm.name]
        if number:
            await flush(engines)
        run, failure = await self._runner.run_workload(
            engines,
            start.arm,
            self._workload,
            start.folder / (f"{self._workload}-{number + 1}" if number else self._workload),
            start.on_progress,
            round_=number,
            foreign=[process.pid for each in others for process in each.processes],
        )
        start.runs.append(run)
        if failure is not None:
            start.trial = replace(start.trial, runs={self._workload: run}, failure=failure)


def combined(rounds: Sequence[WorkloadRun]) -> WorkloadRun:
    """Return the rounds of a start as one run: the numbers of the middle one, and under `loadgen` all of them."""
    # Its disturbance is the mean of the rounds', which were repeated already.
    found = [_disturbance(run) for run in rounds]
    ranked = sorted(rounds, key=lambda run: run.summary.get(THROUGHPUT) or 0.0)
    middle = ranked[(len(ranked) - 1) // 2]
    parts = ("others_cores", "stolen_share", "client_error")
    means = {name: fmean(getattr(each, name) or 0.0 for each in found) for name in parts}
    mean = Disturbance(**means, cores=found[0].cores, quiet=False)
    judged = {
        **middle.summary["loadgen"],
        "disturbance": to_json_values(mean),
        "rounds": [{"summary": dict(run.summary), "path": run.path} for run in rounds],
    }
    return replace(middle, summary={**middle.summary, "loadgen": judged})


def _disturbance(run: WorkloadRun) -> Disturbance:
    return run.findings.disturbance or Disturbance()
