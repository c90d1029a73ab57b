"""Plan: what a study starts, in which order, and what for."""

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.config.settings import RunSettings
from loadgen.tuning.plan.candidates import Candidate
from loadgen.tuning.plan.estimate import Span
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.study import Study

if TYPE_CHECKING:
    from loadgen.engines import Launch

NOISE, CONFIRMATION = "noise", "confirmation"
NOISE_STARTS = 3  # of the baseline, which tell how far apart starts of the same arm are


@dataclass(frozen=True)
class Planned:
    """An arm in a plan.

    Attributes:
        candidate: The arm and its name in the step.
        start: Whether it is one that the step starts from, run beside its arms to be held against them.
        model: What is served: folder, hub name or file.
        launches: How, one for each replica.
        identity: The same for arms that are served alike.
        workloads: Run after each start, in order.
        together: The same, split where the engine is started afresh in between, since it cannot empty its caches.
        until_ready: Time of a start.
        loads: Time of each workload; None where nothing tells it.
        same_as: STEP/ARM that was planned before and is served alike.
        notes: What its user should know.
    """

    candidate: Candidate
    start: bool
    model: str
    launches: list["Launch"]
    identity: str
    workloads: tuple[str, ...]
    together: tuple[tuple[str, ...], ...]
    until_ready: Span
    loads: dict[str, Span | None]
    same_as: str | None
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """In its step."""
        return self.candidate.name

    @property
    def arm(self) -> Arm:
        """The configuration."""
        return self.candidate.arm

    @property
    def least_s(self) -> float:
        """Of one start and its workloads, as far as it can be told."""
        return len(self.together) * self.until_ready.least_s + sum(span.least_s for span in self.loads.values() if span)

    @property
    def most_s(self) -> float:
        """As `least_s`, the longest that is usual."""
        return len(self.together) * self.until_ready.most_s + sum(span.most_s for span in self.loads.values() if span)


@dataclass(frozen=True)
class Step:
    """A stage, or what goes before and after them.

    Attributes:
        name: Of the stage.
        kind: choice, grid, joint, interactions, noise or confirmation; drawn for what a joint stage draws.
        starts_from: Names of the arms it starts from.
        arms: What is known beforehand of what is started, those it starts from first.
        least, most: Fresh starts of each arm.
        trials: Most arms that are drawn as it goes.
        wins: Names of the arms that are taken for its winners.
        notes: What its user should know.
    """

    name: str
    kind: str
    starts_from: tuple[str, ...]
    arms: tuple[Planned, ...]
    least: int
    most: int
    trials: int = 0
    wins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reference(self) -> Planned:
        """The arm that the others are held against: the first that the step starts from."""
        return next((arm for arm in self.arms if arm.start), self.arms[0])

    @property
    def starts(self) -> tuple[int, int]:
        """Servers that are started, replicas counted as one: at least, and at most."""
        # Of what is drawn, one is in the end measured as often as the arm it starts from.
        arms = 2 if self.trials else 0 if self.idle else len(self.arms)
        return arms * self.least + self.trials, arms * self.most + self.trials

    @property
    def idle(self) -> bool:
        """Whether nothing is started, since a stage has no arm but those that it starts from."""
        return self.kind not in (NOISE, CONFIRMATION) and not self.trials and all(arm.start for arm in self.arms)

    @property
    def seconds(self) -> tuple[float, float]:
        """At least and at most; workloads of which nothing is known are left out."""
        if self.idle:
            return 0.0, 0.0
        if self.trials:
            return self.starts[0] * self.arms[0].least_s, self.starts[1] * self.arms[0].most_s
        return self.least * sum(arm.least_s for arm in self.arms), self.most * sum(arm.most_s for arm in self.arms)

    def order(self, seed: int, block: int) -> list[str]:
        """The order of starts in a block: each arm once, in an order of its own.

        Args:
            seed: Of the study's decisions.
            block: From 0.
        """
        names = [arm.name for arm in self.arms]
        random.Random(f"{seed} {self.name} {block}").shuffle(names)
        return names


@dataclass(frozen=True)
class Plan:
    """What a study would do.

    Attributes:
        study: Which.
        loads: Its workloads as settings of runs.
        steps: In order.
    """

    study: Study
    loads: dict[str, RunSettings]
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """Of all steps."""
        least, most = zip(*(step.seconds for step in self.steps), strict=True)
        return sum(least), sum(most)

    @property
    def gpu_hours(self) -> tuple[float, float]:
        """Hours times the devices of the box, also of those that an arm leaves idle."""
        least, most = (seconds / 3600 * self.study.hardware.devices for seconds in self.seconds)
        return least, most

    @property
    def untold(self) -> list[str]:
        """The workloads of which nothing tells how long they take."""
        arms = [arm for step in self.steps for arm in step.arms]
        return sorted({name for arm in arms for name, span in arm.loads.items() if span is None})
