"""How much others disturb the machine, measured by CPU times, and the wait for a quiet machine.

`attempts` repeats a start that failed for a reason that may pass, or that others disturbed.
"""

import asyncio
import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Self

from loadgen.engines.launch.processes import family, family_cpu_s
from loadgen.lab.study.execute.trial import Disturbance, Trial, TrialRequest
from loadgen.metrics.progress import Progress
from loadgen.report.result import RunResult
from loadgen.util import machine
from loadgen.util.machine import CpuTimes

MAX_FAILURES = 2  # for a transient reason
MAX_DISTURBED = 3  # starts that are set aside because others disturbed them
QUIET_S = 2.0  # for which the machine must have been quiet when a start begins
POLL_S = 0.5
PHASE = "busy"  # of the progress while a quiet machine is waited for


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU times of the machine, and of this process with all processes that it has started.

    Attributes:
        times: CPU times of the machine.
        family_s: CPU time of the processes that this one has started, seconds.
    """

    times: CpuTimes
    family_s: float

    @classmethod
    def now(cls, foreign: Iterable[int] = ()) -> Self:
        """Read the CPU times.

        Args:
            foreign: Ids of processes of ours that count as others, with their descendants.
        """
        own = family([os.getpid()]) - family(foreign)
        return cls(CpuTimes.now(), family_cpu_s(own))

    def disturbance(
        self, since: Self, *, client_error: float | None = None, quiet: bool = True
    ) -> Disturbance:
        """Return what others did between an earlier reading and this one.

        Args:
            since: The earlier reading.
            client_error: Share of the mean E2EL that the client may have added; None: unknown.
            quiet: Whether the machine was quiet when the start began.
        """
        return Disturbance(
            others_cores=machine.others_cores(
                since.times, self.times, self.family_s - since.family_s
            ),
            stolen_share=machine.stolen_share(since.times, self.times),
            client_error=client_error,
            cores=os.cpu_count() or 1,
            quiet=quiet,
        )


def client_error(result: RunResult) -> float | None:
    """Return the share of the mean E2EL that the client may have added; None if it is unknown."""
    value = result.latency_ms.e2el_sent["mean"]
    error = None if result.client_error_ms is None else result.client_error_ms.e2el_sent.get("mean")
    return error / value if error is not None and value else None


class QuietWait:
    """Waits until the machine has been quiet for QUIET_S.

    A wait that ends without a quiet machine makes the next one half as long, since on a machine
    that is always busy waiting does not help.

    Args:
        max_wait_s: How long to wait at most; 0: not at all, so that the machine is never known to
            be quiet.
        read: Reads the CPU times.
    """

    def __init__(self, max_wait_s: float, read: Callable[[], Reading] = Reading.now) -> None:
        self._read = read
        self._max_wait_s = max_wait_s
        self._patience_s = max_wait_s
        self._readings: deque[Reading] = deque()

    def note(self) -> Reading:
        """Read the CPU times, and remember them: the machine may have been quiet since."""
        reading = self._read()
        while (
            len(self._readings) > 1 and reading.times.at_s - self._readings[1].times.at_s >= QUIET_S
        ):
            self._readings.popleft()  # of those that are old enough, only the latest
        self._readings.append(reading)
        return reading

    async def wait(self, on_progress: Callable[[Progress], None]) -> bool:
        """Wait; returns whether the machine is quiet.

        Args:
            on_progress: Told every POLL_S what keeps the machine busy.
        """
        if not self._max_wait_s:
            return False
        began = self.note()
        while True:
            now = self.note()
            first = self._readings[0]
            waited_s = now.times.at_s - began.times.at_s
            if now.times.at_s - first.times.at_s >= QUIET_S:
                others = now.disturbance(first)
                if not others.disturbed:
                    self._patience_s = self._max_wait_s
                    return True
                on_progress(Progress(PHASE, waited_s, note=str(others)))
            if waited_s >= self._patience_s:
                self._patience_s = max(QUIET_S, self._patience_s / 2)
                return False
            await asyncio.sleep(POLL_S)


def attempts(
    request: TrialRequest, workload: str, on_end: Callable[[Trial], None]
) -> Generator[TrialRequest, Trial, Trial]:
    """Yield a start until it counts; returns the trial that counts, or that failed for good.

    A start that was disturbed is set aside if the machine was quiet when it began: there may be a
    quiet moment again. If all are disturbed, the one that was disturbed least counts.

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
        cause = disturbance(trial, workload)
        if not cause.disturbed:
            return trial
        disturbed.append(trial)
        if not cause.quiet or len(disturbed) > MAX_DISTURBED:
            break
    return min(disturbed, key=lambda start: disturbance(start, workload).excess)


def disturbance(trial: Trial, workload: str) -> Disturbance:
    """Return what disturbed the deciding workload of a trial; nothing if it is unknown."""
    run = trial.runs.get(workload)
    return (run.findings.disturbance if run else None) or Disturbance()
