"""The plan of a study: its steps, and the arms that each step starts."""

from __future__ import annotations

import random
from dataclasses import dataclass

from loadgen.config.settings import RunSettings
from loadgen.engines import Launch
from loadgen.lab.study.plan.estimate import Span
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.study import Study

NOISE = "noise"
CONFIRMATION = "confirmation"
NOISE_STARTS = 3  # of the baseline, to estimate how much starts of the same arm differ


@dataclass(frozen=True)
class PlannedArm:
    """An arm in a step: how it is served, what it is measured with, and how long that may take.

    Attributes:
        step: Name of the step.
        spec: Configuration and name in the step.
        start: Whether the step starts from this arm, which then runs beside the others for
            comparison.
        model: Folder, hub name or file that is served.
        launches: Commands of the servers, one for each replica.
        identity: Hash of what is served; equal for arms that are served in the same way.
        workloads: Workloads to run after each start, in order.
        batches: The same, split where the engine must be restarted because it cannot empty its
            caches.
        until_ready: Estimated time of a start.
        loads: Estimated time of each workload; None: unknown.
        same_as: STEP/ARM that was planned before and is served in the same way.
        notes: Remarks for the user.
    """

    step: str
    spec: ArmSpec
    start: bool
    model: str
    launches: list[Launch]
    identity: str
    workloads: tuple[str, ...]
    batches: tuple[tuple[str, ...], ...]
    until_ready: Span
    loads: dict[str, Span | None]
    same_as: str | None
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name in the step."""
        return self.spec.name

    @property
    def path(self) -> str:
        """STEP/ARM."""
        return f"{self.step}/{self.name}"

    @property
    def seconds(self) -> tuple[float, float]:
        """Shortest and longest usual time of a start with its workloads, without those of
        unknown time.
        """
        spans = [span for span in self.loads.values() if span]
        starts = len(self.batches)
        low = starts * self.until_ready.min_s + sum(span.min_s for span in spans)
        return low, starts * self.until_ready.max_s + sum(span.max_s for span in spans)


@dataclass(frozen=True)
class Step:
    """A stage, or the noise step before all stages, or the confirmation after them.

    Attributes:
        name: Name of the stage.
        kind: choice, grid, joint, interactions, noise, confirmation, or drawn for the search of a
            joint stage.
        starts_from: Names of the arms it starts from.
        arms: Arms that are known before the step runs, those it starts from first.
        min_starts, max_starts: Fresh starts of each arm.
        trials: Maximum number of arms that a joint stage draws.
        wins: Names of the arms that the plan takes for its winners.
        notes: Remarks for the user.
    """

    name: str
    kind: str
    starts_from: tuple[str, ...]
    arms: tuple[PlannedArm, ...]
    min_starts: int
    max_starts: int
    trials: int = 0
    wins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reference(self) -> PlannedArm:
        """The arm that the others are compared with: the first that the step starts from."""
        return next((arm for arm in self.arms if arm.start), self.arms[0])

    @property
    def starts(self) -> tuple[int, int]:
        """Minimum and maximum number of starts; the replicas of an arm count as one."""
        # The best drawn arm is measured as often as the arm that the stage starts from.
        arms = 2 if self.trials else len(self.arms)
        if self.idle:
            arms = 0
        return arms * self.min_starts + self.trials, arms * self.max_starts + self.trials

    @property
    def idle(self) -> bool:
        """Whether nothing is started, because a stage has no arm except those that it starts
        from.
        """
        return (
            self.kind not in (NOISE, CONFIRMATION)
            and not self.trials
            and all(arm.start for arm in self.arms)
        )

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum time, without workloads of unknown time."""
        if self.idle:
            return 0.0, 0.0
        if self.trials:
            low, high = self.arms[0].seconds
            return self.starts[0] * low, self.starts[1] * high
        lows, highs = zip(*(arm.seconds for arm in self.arms), strict=True)
        return self.min_starts * sum(lows), self.max_starts * sum(highs)

    def order(self, seed: int, block: int) -> list[str]:
        """Return the names of the arms in the random order in which a block starts them.

        Args:
            seed: Seed of the study's decisions.
            block: Index of the block, from 0.
        """
        names = [arm.name for arm in self.arms]
        random.Random(f"{seed} {self.name} {block}").shuffle(names)
        return names


@dataclass(frozen=True)
class Plan:
    """All that a study would do.

    Attributes:
        study: The study.
        loads: Its workloads as settings of runs.
        steps: Steps in order.
    """

    study: Study
    loads: dict[str, RunSettings]
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum time of all steps."""
        low, high = zip(*(step.seconds for step in self.steps), strict=True)
        return sum(low), sum(high)

    @property
    def max_quiet_wait_s(self) -> float:
        """Maximum time of waits for a quiet machine, without those before repeated starts and
        rounds.
        """
        steps = [step for step in self.steps if not step.idle]
        starts = sum(step.starts[1] for step in steps)
        return self.max_quiet_wait_of(starts, sum(step.max_starts + step.trials for step in steps))

    def max_quiet_wait_of(self, starts: int, blocks: int) -> float:
        """Return the maximum time of the waits for a quiet machine before these starts, in these
        blocks.

        A start waits once. In a study with rounds a block waits once for each round.
        """
        rounds = self.study.decision.rounds
        return (starts if rounds == 1 else blocks * rounds) * self.study.budget.quiet_wait

    @property
    def gpu_hours(self) -> tuple[float, float]:
        """Hours times all devices of the box, idle ones included."""
        low, high = (seconds / 3600 * self.study.hardware.devices for seconds in self.seconds)
        return low, high

    @property
    def without_estimate(self) -> list[str]:
        """Names of the workloads whose time cannot be estimated."""
        names: set[str] = set()
        for step in self.steps:
            for arm in step.arms:
                names |= {name for name, span in arm.loads.items() if span is None}
        return sorted(names)
