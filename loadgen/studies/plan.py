"""Plan: what a study would start, in which order, and what for; nothing is started to find out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from loadgen.errors import BadInput
from loadgen.settings import RunSettings
from loadgen.studies import checking, estimate
from loadgen.studies.arm import Arm
from loadgen.studies.candidates import Candidate, Course, changed_to, expected, shown
from loadgen.studies.estimate import Span, UsualStart
from loadgen.studies.loads import loads
from loadgen.studies.served import Served, identity
from loadgen.studies.stages import Interactions, Joint
from loadgen.studies.strict import AtFault
from loadgen.studies.study import Study

if TYPE_CHECKING:
    from loadgen.engines import Launch

NOISE, CONFIRMATION = "noise", "confirmation"
NOISE_STARTS = 3  # of the baseline, which tell how far apart starts of the same arm are


@dataclass(frozen=True)
class Planned:
    """An arm in a plan.

    Attributes:
        name: In its step.
        start: Whether it is one that the step starts from, run beside its arms to be held against them.
        arm: The configuration.
        model: What is served: folder, hub name or file.
        launches: How, one for each replica.
        identity: The same for arms that are served alike.
        workloads: Run after each start, in order.
        until_ready: Time of a start.
        loads: Time of each workload; None where nothing tells it.
        same_as: STEP/ARM that was planned before and is served alike.
        notes: What its user should know.
    """

    name: str
    start: bool
    arm: Arm
    model: str
    launches: list["Launch"]
    identity: str
    workloads: tuple[str, ...]
    until_ready: Span
    loads: dict[str, Span | None]
    same_as: str | None
    notes: tuple[str, ...]

    @property
    def least_s(self) -> float:
        """Of one start and its workloads, as far as it can be told."""
        return self.until_ready.least_s + sum(span.least_s for span in self.loads.values() if span)

    @property
    def most_s(self) -> float:
        """As `least_s`, the longest that is usual."""
        return self.until_ready.most_s + sum(span.most_s for span in self.loads.values() if span)


@dataclass(frozen=True)
class Step:
    """A stage, or what goes before and after them.

    Attributes:
        name: Of the stage.
        kind: choice, grid, joint, interactions, noise or confirmation.
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
    def starts(self) -> tuple[int, int]:
        """Servers that are started, replicas counted as one: at least, and at most."""
        # Of what is drawn, one is in the end measured as often as the arm it starts from.
        arms = 2 if self.trials else len(self.arms)
        return arms * self.least + self.trials, arms * self.most + self.trials

    @property
    def seconds(self) -> tuple[float, float]:
        """At least and at most; workloads of which nothing is known are left out."""
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


def plan(study: Study, usual_s: UsualStart = lambda engine, model: None) -> Plan:
    """Plan a study, assuming of each stage what it expects.

    Args:
        study: Which; it has been checked.
        usual_s: How long servers have taken to start on this machine.

    Raises:
        AtFault: The study asks for what cannot be.
    """
    return _Planner(study, usual_s).plan()


class _Planner:
    def __init__(self, study: Study, usual_s: UsualStart) -> None:
        self._study, self._course, self._served = study, Course(study), Served(study)
        self._loads = loads(study)
        self._usual_s = cache(usual_s)
        self._seen: dict[str, str] = {}

    def plan(self) -> Plan:
        tuning = (self._study.objective.workload,)
        baseline = self._course.baseline
        noise = self._planned(NOISE, baseline, tuning)
        steps = [Step(NOISE, NOISE, (baseline.name,), (noise,), NOISE_STARTS, NOISE_STARTS)]
        steps += [self._stage(number) for number in range(len(self._study.stages))]
        last = self._course.incumbents[0]
        others = tuple(name for name in self._study.workloads if name not in tuning)
        both = [self._planned(CONFIRMATION, each, tuning + others, start=each is baseline) for each in (baseline, last)]
        arms = tuple(both[: len({each.identity for each in both})])
        repeats = self._study.decision.repeats
        steps.append(Step(CONFIRMATION, CONFIRMATION, (baseline.name,), arms, repeats.least, repeats.most))
        return Plan(self._study, self._loads, tuple(steps))

    def _stage(self, number: int) -> Step:
        stage, at = self._study.stages[number], ("stages", number)
        checking.condition(self._study, number, self._served.knobs)
        starts, notes = self._course.starts(number), list[str]()
        workloads = tuple(dict.fromkeys((self._study.objective.workload, *stage.workloads)))
        tried = self._course.candidates(number)
        if isinstance(stage, Joint):
            tried = self._drawn(stage, at, starts)
        arms: dict[str, Planned] = {}
        for candidate in tried:
            try:
                planned = self._planned(stage.name, candidate, workloads)
            except AtFault as error:
                if not isinstance(stage, Interactions):
                    raise
                notes.append(f"{candidate.name} is left out: {error.problem}")
                continue
            first = arms.setdefault(planned.identity, planned)
            if first is not planned:
                alike = f"{candidate.name} is served as {first.name} is"
                if not isinstance(stage, Interactions):
                    raise AtFault(candidate.at, alike, "leave one of the two out")
                notes.append(alike)
        beside = {each.identity: each for each in (self._planned(stage.name, s, workloads, start=True) for s in starts)}
        for same in beside.keys() & arms.keys():
            arms[same] = replace(arms[same], start=True, same_as=None)
        everything = [*(each for same, each in beside.items() if same not in arms), *arms.values()]
        for each in everything:
            self._seen.setdefault(each.identity, f"{stage.name}/{each.name}")
        if isinstance(stage, Interactions) and not arms:
            notes.append("of these stages fewer than two are expected to have a winner")
        there = {each.name for each in everything}
        won = [each for each in expected(stage, at, tried) if each.name in there]
        self._course.adopt(number, [each for each in tried if each.name in there], won)
        kind = type(stage).__name__.lower()
        repeats = self._study.decision.repeats
        return Step(
            name=stage.name,
            kind=kind,
            starts_from=tuple(start.name for start in starts),
            arms=tuple(everything),
            least=repeats.least,
            most=repeats.most,
            trials=stage.trials if isinstance(stage, Joint) else 0,
            wins=tuple(each.name for each in won),
            notes=tuple(notes),
        )

    def _drawn(self, stage: Joint, at: tuple[str | int, ...], starts: Sequence[Candidate]) -> list[Candidate]:
        """The combination that is expected to win; the ends of every range are looked at too."""
        for name, values in stage.joint.items():
            for value in values.ends():
                change = changed_to({name: value})
                end = Candidate(
                    shown({name: value}), starts[0].arm.changed(change, self._study), (change,), (*at, "joint")
                )
                self._launches(end)
        for name, value in stage.expect.items():
            if name not in stage.joint or not stage.joint[name].has(value):
                raise AtFault((*at, "expect", name), f"{value!r} cannot be drawn", "give what its range has")
        if not stage.expect:
            return []
        change = changed_to(stage.expect)
        return [Candidate(shown(stage.expect), starts[0].arm.changed(change, self._study), (change,), (*at, "expect"))]

    def _planned(self, step: str, candidate: Candidate, workloads: tuple[str, ...], *, start: bool = False) -> Planned:
        arm, model = candidate.arm, self._study.models[candidate.arm.model]
        launches = self._launches(candidate)
        same = identity(arm, launches)
        devices = min(arm.width * arm.replicas, self._study.hardware.devices)
        return Planned(
            name=candidate.name,
            start=start,
            arm=arm,
            model=model,
            launches=launches,
            identity=same,
            workloads=workloads,
            until_ready=estimate.start(arm.engine, model, self._usual_s),
            loads={name: estimate.load(self._loads[name], model, devices) for name in workloads},
            same_as=None if start or step == CONFIRMATION else self._seen.get(same),
            notes=checking.notes(arm, {name: self._loads[name] for name in workloads}),
        )

    def _launches(self, candidate: Candidate) -> list["Launch"]:
        checking.names(self._study, candidate, self._served.all_knobs)
        try:
            launches = self._served.launches(candidate.arm)
        except BadInput as error:
            raise checking.blamed(self._study, candidate, error) from error
        checking.room(self._study, candidate)
        return launches
