"""The planner: lays out the steps of a study one after another, given the winners of the steps
before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from loadgen.config.target import SIMULATOR
from loadgen.engines import Launch
from loadgen.errors import BadInput, Place
from loadgen.lab.study.plan import estimate, study_engines
from loadgen.lab.study.plan.candidates import Candidates, check_expected, expected
from loadgen.lab.study.plan.estimate import Effort, Span, UsualStart
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE, NOISE_STARTS, Plan, PlannedArm, Step
from loadgen.lab.study.plan.study_engines import StudyEngines, identity
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.stages import Change, Grid, Interactions, Joint
from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.lab.study.spec.study import MAX_RATE, METRICS, Study
from loadgen.lab.study.spec.workloads import loads

CHANGES_NOTHING = "its values change nothing: it is served like {}"


def plan(study: Study, usual_s: UsualStart = lambda engine, model: None) -> Plan:
    """Plan a study, with the winners that each stage expects.

    Args:
        study: The study, checked.
        usual_s: Returns how long servers have taken to start on this machine.

    Raises:
        AtFault: The study asks for something impossible.
    """
    planner = Planner(study, usual_s)
    steps = [planner.noise()]
    for number in range(len(study.stages)):
        step = planner.stage(number, as_planned=True)
        arms = {arm.name: arm for arm in step.arms}
        planner.adopt(number, step.arms, [arms[name] for name in step.wins])
        steps.append(step)
    steps.append(planner.confirmation())
    return Plan(study, planner.loads, tuple(steps))


class Planner:
    """Lays out steps; call `noise`, then `stage` and `adopt` for each stage in order, then
    `confirmation`.

    Args:
        study: The study, checked.
        usual_s: Returns how long servers have taken to start on this machine.

    Attributes:
        loads: The study's workloads as settings of runs.
        engines: Its engines as they are installed here.
    """

    def __init__(self, study: Study, usual_s: UsualStart = lambda engine, model: None) -> None:
        self._study = study
        self._candidates = Candidates(study)
        self.engines = StudyEngines(study)
        self.loads = loads(study)
        study_engines.check_rates(study, self.loads)
        self._usual_s = cache(usual_s)
        self._seen: dict[str, str] = {}  # identities to STEP/ARM

    def noise(self) -> Step:
        """Return the step that starts only the baseline, several times."""
        baseline = self._candidates.baseline
        arm = self._planned(NOISE, baseline, (self._study.objective.workload,))
        self._seen[arm.identity] = arm.path
        return Step(NOISE, NOISE, (baseline.name,), (arm,), NOISE_STARTS, NOISE_STARTS)

    def stage(self, number: int, *, as_planned: bool = False) -> Step:
        """Return a stage with the arms that the study expects to win it.

        Args:
            number: Index of the stage.
            as_planned: Whether the stages before have ended as the study expects. If so, each arm
                must be possible, unlike the others, and there if it is expected; else what cannot
                be tried is left out with a note.

        Raises:
            AtFault: The stage asks for something impossible.
        """
        stage = self._study.stages[number]
        at = ("stages", number)
        study_engines.check_condition(self._study, number, self.engines.knobs)
        starts = self._candidates.starts(number)
        notes: list[str] = []
        tried = self._candidates.of_stage(number)
        if isinstance(stage, Joint):
            tried = self._expected_draw(number, stage, at)
        arms: dict[str, PlannedArm] = {}
        for spec in tried:
            try:
                planned = self._planned(stage.name, spec, self._workloads(number))
            except AtFault as error:
                if as_planned and not isinstance(stage, Interactions):
                    raise
                notes.append(f"{spec.name} is left out: {error.problem}")
                continue
            first = arms.setdefault(planned.identity, planned)
            if first is not planned:
                same = f"{spec.name} is served in the same way as {first.name}"
                if as_planned and not isinstance(stage, Interactions):
                    raise AtFault(spec.at, same, "leave one of the two out")
                notes.append(same)
        if as_planned:
            check_expected(stage, at, tried)
        sources = [
            self._planned(stage.name, start, self._workloads(number), start=True)
            for start in starts
        ]
        by_identity = {source.identity: source for source in sources}
        for same in by_identity.keys() & arms.keys():
            arm = arms[same]
            remarks = arm.notes
            if arm.spec.changes != (Change(),):
                remarks += (CHANGES_NOTHING.format(by_identity[same].name),)
            arms[same] = replace(arm, start=True, same_as=None, notes=remarks)
        everything = [
            *(source for same, source in by_identity.items() if same not in arms),
            *arms.values(),
        ]
        for arm in everything:
            self._seen.setdefault(arm.identity, arm.path)
        if isinstance(stage, Interactions) and not arms:
            notes.append("fewer than two of these stages have a winner")
        elif isinstance(stage, Grid) and not tried:
            notes.append("no combination meets its condition `where`: nothing is started")
        elif not isinstance(stage, Joint) and all(arm.start for arm in everything):
            notes.append("it tries only the arm that it starts from: nothing is started")
        notes += self._device_notes(everything)
        names = {arm.name for arm in everything}
        repeats = self._study.decision.repeats
        return Step(
            name=stage.name,
            kind=type(stage).__name__.lower(),
            starts_from=tuple(start.name for start in starts),
            arms=tuple(everything),
            min_starts=repeats.least,
            max_starts=repeats.most,
            trials=stage.trials if isinstance(stage, Joint) else 0,
            wins=tuple(spec.name for spec in expected(stage, tried) if spec.name in names),
            notes=tuple(notes),
        )

    def drawn(self, number: int, values: Mapping[str, Any]) -> PlannedArm:
        """Return the arm that a joint stage draws.

        Args:
            number: Index of the stage.
            values: Values of its knobs.

        Raises:
            AtFault: No arm can have these values.
        """
        spec = self._candidates.drawn(number, values, ("stages", number, "joint"))
        return self._planned(self._study.stages[number].name, spec, self._workloads(number))

    def adopt(self, number: int, tried: Sequence[PlannedArm], won: Sequence[PlannedArm]) -> None:
        """Record the outcome of a stage.

        Args:
            number: Index of the stage.
            tried: Its arms.
            won: The arms that go on, the best first; empty: the incumbents stay.
        """
        self._candidates.adopt(number, [arm.spec for arm in tried], [arm.spec for arm in won])

    def confirmation(self) -> Step:
        """Return the step that compares baseline and winner on every workload."""
        first = self._candidates.baseline
        last = self._candidates.incumbents[0]
        tuning = self._study.objective.workload
        workloads = (tuning, *(name for name in self._study.workloads if name != tuning))
        both = [
            self._planned(CONFIRMATION, spec, workloads, start=spec is first)
            for spec in (first, last)
        ]
        arms = tuple(both[: len({arm.identity for arm in both})])
        repeats = self._study.decision.repeats
        return Step(CONFIRMATION, CONFIRMATION, (first.name,), arms, repeats.least, repeats.most)

    def _device_notes(self, arms: Sequence[PlannedArm]) -> list[str]:
        """Return a warning if arms use different numbers of devices."""
        box = self._study.hardware.devices
        numbers = sorted({arm.spec.devices_used(box) for arm in arms})
        if len(numbers) < 2:
            return []
        used = " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))
        metric = self._study.objective.metric
        return [f"its arms use {used} devices: {metric} {METRICS[metric].of_devices}"]

    def _workloads(self, number: int) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys((self._study.objective.workload, *self._study.stages[number].workloads))
        )

    def _expected_draw(self, number: int, stage: Joint, at: Place) -> list[ArmSpec]:
        """Return the combination that is expected to win, after a check of both ends of every
        range.
        """
        for name, values in stage.joint.items():
            for value in values.ends():
                self._launches(self._candidates.drawn(number, {name: value}, (*at, "joint")))
        for name, value in stage.expect.items():
            if name not in stage.joint or not stage.joint[name].has(value):
                raise AtFault(
                    (*at, "expect", name), f"{value!r} is never drawn", "give a value of its range"
                )
        return (
            [self._candidates.drawn(number, stage.expect, (*at, "expect"))] if stage.expect else []
        )

    def _planned(
        self, step: str, spec: ArmSpec, workloads: tuple[str, ...], *, start: bool = False
    ) -> PlannedArm:
        model = self._study.models[spec.model]
        launches = self._launches(spec)
        same = identity(spec, launches)
        devices = spec.devices_used(self._study.hardware.devices)
        objective = self._study.objective
        spans: dict[str, Span | None] = {}
        for name in workloads:
            span = (
                estimate.simulated(self.loads[name], launches)
                if spec.engine == SIMULATOR
                else estimate.load(self.loads[name], model, devices)
            )
            if span is not None and (objective.metric, objective.workload) == (MAX_RATE, name):
                effort = Effort.for_effect(self._study.decision.min_effect)
                span = estimate.searched(span, objective.limits, effort)
            spans[name] = span
        until_ready = estimate.start(spec.engine, model, self._usual_s)
        if spec.engine == SIMULATOR and self._usual_s(spec.engine, model) is None:
            until_ready = estimate.simulated_start(launches[0], until_ready)
        return PlannedArm(
            step=step,
            spec=spec,
            start=start,
            model=model,
            launches=launches,
            identity=same,
            workloads=workloads,
            batches=(workloads,)
            if self.engines.engine(spec).probes.flush
            else tuple((name,) for name in workloads),
            until_ready=until_ready,
            loads=spans,
            same_as=None if start or step == CONFIRMATION else self._seen.get(same),
            notes=study_engines.notes(
                spec, launches[0], {name: self.loads[name] for name in workloads}
            ),
        )

    def _launches(self, spec: ArmSpec) -> list[Launch]:
        self.engines.check_knobs(spec)
        try:
            launches = self.engines.launches(spec)
        except BadInput as error:
            raise study_engines.engine_refusal(self._study, spec, error) from error
        study_engines.check_devices(self._study, spec)
        return launches
