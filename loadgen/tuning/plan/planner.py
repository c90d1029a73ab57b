"""Planner: lays out the steps of a study one after another, given who won those before; nothing is started for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput
from loadgen.tuning.plan import estimate, feasibility
from loadgen.tuning.plan.candidates import Candidate, Course, changed_to, expected, shown
from loadgen.tuning.plan.estimate import Span, UsualStart
from loadgen.tuning.plan.plan import CONFIRMATION, NOISE, NOISE_STARTS, Plan, Planned, Step
from loadgen.tuning.plan.served import Served, identity
from loadgen.tuning.spec.search_effort import Effort
from loadgen.tuning.spec.stages import Interactions, Joint
from loadgen.tuning.spec.strict_model import AtFault
from loadgen.tuning.spec.study import Study
from loadgen.tuning.spec.workloads import loads

if TYPE_CHECKING:
    from loadgen.engines import Launch


def plan(study: Study, usual_s: UsualStart = lambda engine, model: None) -> Plan:
    """Plan a study, assuming of each stage what it expects.

    Args:
        study: Which; it has been checked.
        usual_s: How long servers have taken to start on this machine.

    Raises:
        AtFault: The study asks for what cannot be.
    """
    planner = Planner(study, usual_s)
    steps = [planner.noise()]
    for number in range(len(study.stages)):
        step = planner.stage(number)
        won = [arm for arm in step.arms if arm.name in step.wins]
        planner.adopt(number, step.arms, sorted(won, key=lambda arm: step.wins.index(arm.name)))
        steps.append(step)
    steps.append(planner.confirmation())
    return Plan(study, planner.loads, tuple(steps))


class Planner:
    """Lays out steps; call `noise`, then `stage` and `adopt` for each stage in order, then `confirmation`.

    Args:
        study: Which; it has been checked.
        usual_s: How long servers have taken to start on this machine.

    Attributes:
        loads: The study's workloads as settings of runs.
        served: Its engines as they are installed here.
    """

    def __init__(self, study: Study, usual_s: UsualStart = lambda engine, model: None) -> None:
        self._study, self._course, self.served = study, Course(study), Served(study)
        self.loads = loads(study)
        feasibility.rates(study, self.loads)
        self._usual_s = cache(usual_s)
        self._seen: dict[str, str] = {}

    def noise(self) -> Step:
        """The baseline against itself."""
        baseline = self._course.baseline
        arm = self._planned(NOISE, baseline, (self._study.objective.workload,))
        return Step(NOISE, NOISE, (baseline.name,), (arm,), NOISE_STARTS, NOISE_STARTS)

    def stage(self, number: int) -> Step:
        """A stage, with the arms that the study expects to win it.

        Raises:
            AtFault: It asks for what cannot be.
        """
        stage, at = self._study.stages[number], ("stages", number)
        feasibility.condition(self._study, number, self.served.knobs)
        starts, notes = self._course.starts(number), list[str]()
        tried = self._course.candidates(number)
        if isinstance(stage, Joint):
            tried = self._expected_draw(stage, at, starts)
        arms: dict[str, Planned] = {}
        for candidate in tried:
            try:
                planned = self._planned(stage.name, candidate, self._workloads(number))
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
        sources = [self._planned(stage.name, each, self._workloads(number), start=True) for each in starts]
        beside = {each.identity: each for each in sources}
        for same in beside.keys() & arms.keys():
            arms[same] = replace(arms[same], start=True, same_as=None)
        everything = [*(each for same, each in beside.items() if same not in arms), *arms.values()]
        for each in everything:
            self._seen.setdefault(each.identity, f"{stage.name}/{each.name}")
        if isinstance(stage, Interactions) and not arms:
            notes.append("of these stages fewer than two have a winner")
        elif not isinstance(stage, Joint) and all(each.start for each in everything):
            notes.append("it tries nothing but the arm it starts from: nothing is started")
        there = {each.name for each in everything}
        repeats = self._study.decision.repeats
        return Step(
            name=stage.name,
            kind=type(stage).__name__.lower(),
            starts_from=tuple(start.name for start in starts),
            arms=tuple(everything),
            least=repeats.least,
            most=repeats.most,
            trials=stage.trials if isinstance(stage, Joint) else 0,
            wins=tuple(each.name for each in expected(stage, at, tried) if each.name in there),
            notes=tuple(notes),
        )

    def drawn(self, number: int, values: Mapping[str, Any]) -> Planned:
        """The arm that a joint stage draws.

        Args:
            number: Of the stage.
            values: Of its knobs.

        Raises:
            AtFault: No arm can be that.
        """
        start = self._course.starts(number)[0]
        drawn = self._changed(start, values, ("stages", number, "joint"))
        return self._planned(self._study.stages[number].name, drawn, self._workloads(number))

    def adopt(self, number: int, tried: Sequence[Planned], won: Sequence[Planned]) -> None:
        """A stage is over.

        Args:
            number: Of the stage.
            tried: Its arms.
            won: Those that go on, the best first; none: the incumbents stay.
        """
        self._course.adopt(number, [arm.candidate for arm in tried], [arm.candidate for arm in won])

    def confirmation(self) -> Step:
        """The baseline against the winner, on every workload."""
        first, last = self._course.baseline, self._course.incumbents[0]
        tuning = self._study.objective.workload
        workloads = (tuning, *(name for name in self._study.workloads if name != tuning))
        both = [self._planned(CONFIRMATION, each, workloads, start=each is first) for each in (first, last)]
        arms = tuple(both[: len({each.identity for each in both})])
        repeats = self._study.decision.repeats
        return Step(CONFIRMATION, CONFIRMATION, (first.name,), arms, repeats.least, repeats.most)

    def _workloads(self, number: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self._study.objective.workload, *self._study.stages[number].workloads)))

    def _expected_draw(self, stage: Joint, at: tuple[str | int, ...], starts: Sequence[Candidate]) -> list[Candidate]:
        """The combination that is expected to win; the ends of every range are looked at too."""
        for name, values in stage.joint.items():
            for value in values.ends():
                self._launches(self._changed(starts[0], {name: value}, (*at, "joint")))
        for name, value in stage.expect.items():
            if name not in stage.joint or not stage.joint[name].has(value):
                raise AtFault((*at, "expect", name), f"{value!r} cannot be drawn", "give what its range has")
        return [self._changed(starts[0], stage.expect, (*at, "expect"))] if stage.expect else []

    def _changed(self, start: Candidate, values: Mapping[str, Any], at: tuple[str | int, ...]) -> Candidate:
        change = changed_to(values)
        return Candidate(shown(values), start.arm.changed(change, self._study), (change,), at)

    def _planned(self, step: str, candidate: Candidate, workloads: tuple[str, ...], *, start: bool = False) -> Planned:
        arm, model = candidate.arm, self._study.models[candidate.arm.model]
        launches = self._launches(candidate)
        same = identity(arm, launches)
        devices = min(arm.width * arm.replicas, self._study.hardware.devices)
        return Planned(
            candidate=candidate,
            start=start,
            model=model,
            launches=launches,
            identity=same,
            workloads=workloads,
            together=(workloads,) if self.served.engine(arm).probes.flush else tuple((name,) for name in workloads),
            until_ready=estimate.start(arm.engine, model, self._usual_s),
            loads={name: self._load(name, model, devices) for name in workloads},
            same_as=None if start or step == CONFIRMATION else self._seen.get(same),
            notes=feasibility.notes(arm, {name: self.loads[name] for name in workloads}),
        )

    def _load(self, name: str, model: str, devices: int) -> Span | None:
        objective, span = self._study.objective, estimate.load(self.loads[name], model, devices)
        if span is None or (objective.metric, objective.workload) != ("goodput", name):
            return span
        return estimate.searched(span, objective.limits, Effort.for_effect(self._study.decision.min_effect))

    def _launches(self, candidate: Candidate) -> list["Launch"]:
        feasibility.names(self._study, candidate, self.served.all_knobs)
        try:
            launches = self.served.launches(candidate.arm)
        except BadInput as error:
            raise feasibility.blamed(self._study, candidate, error) from error
        feasibility.room(self._study, candidate)
        return launches
