"""Candidates: the arms that a stage tries, made of where it starts and of what it changes."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadgen.errors import BadInput
from loadgen.tuning.spec.arm import Arm, baseline
from loadgen.tuning.spec.expression import Expression
from loadgen.tuning.spec.stages import BASELINE, INCUMBENT, AnyStage, Change, Choice, Grid, Interactions, Joint
from loadgen.tuning.spec.strict_model import At, AtFault
from loadgen.tuning.spec.study import Study

MOST_ARMS = 10_000  # combinations of a grid, before its condition
OF_ARMS = ("model", "replicas")  # in grids beside knobs


@dataclass(frozen=True, slots=True)
class Candidate:
    """An arm with its name.

    Attributes:
        name: In its stage.
        arm: The configuration.
        changes: What was made of the arm it starts from, in order.
        at: Where the study file asks for it.
    """

    name: str
    arm: Arm
    changes: tuple[Change, ...]
    at: At


class Course:
    """How far a study has come: the arms that go on, and the winners of each stage so far."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.baseline = Candidate(BASELINE, baseline(study), (), ("baseline",))
        self.incumbents = [self.baseline]
        self._tried: dict[str, list[Candidate]] = {}
        self._won: dict[str, list[Candidate]] = {}

    def starts(self, number: int) -> list[Candidate]:
        """The arms from which a stage starts.

        Raises:
            AtFault: It names one that there is not.
        """
        source = self.study.stages[number].from_
        if source in (INCUMBENT, BASELINE):
            return self.incumbents if source == INCUMBENT else [self.baseline]
        stage, _, name = source.partition("/")
        found = _named(name, self._tried[stage], ("stages", number, "from"))
        return [replace(found, name=source)]

    def candidates(self, number: int) -> list[Candidate]:
        """The arms of a stage; of a joint one none, since they are drawn as it goes.

        Raises:
            AtFault: It changes something into what no arm can be.
        """
        stage, at, starts = self.study.stages[number], ("stages", number), self.starts(number)
        if isinstance(stage, Joint):
            return []
        found = []
        for start in starts:
            for name, changes, where in self._changes(stage, at, start.arm):
                arm = start.arm
                for change in changes:
                    arm = arm.changed(change, self.study)
                found.append(Candidate(name if len(starts) == 1 else f"{name} on {start.name}", arm, changes, where))
        return found

    def adopt(self, number: int, tried: Sequence[Candidate], won: Sequence[Candidate]) -> None:
        """A stage is over.

        Args:
            number: Of the stage.
            tried: Its arms.
            won: Those that go on, the best first; none: the incumbents stay.
        """
        name = self.study.stages[number].name
        self._tried[name], self._won[name] = list(tried), list(won)
        if won:
            self.incumbents = [replace(each, name=f"{name}/{each.name}") for each in won]

    def _changes(self, stage: AnyStage, at: At, arm: Arm) -> Iterator[tuple[str, tuple[Change, ...], At]]:
        if isinstance(stage, Choice):
            for name, change in stage.choice.items():
                yield name, (change,), (*at, "choice", name)
        elif isinstance(stage, Grid):
            for values in _combinations(stage, (*at, "grid"), arm, self.study):
                yield shown(values), (changed_to(values),), (*at, "grid")
        elif isinstance(stage, Interactions):
            won = {name: self._won[name][0].changes for name in stage.interactions if self._won[name]}
            for names in _together(list(won)):
                yield " && ".join(names), tuple(c for name in names for c in won[name]), (*at, "interactions")


def changed_to(values: Mapping[str, Any]) -> Change:
    """The change that sets knobs, and what else a grid may set, to these values."""
    knobs = {name: value for name, value in values.items() if name not in OF_ARMS}
    return Change(knobs=knobs, model=values.get("model"), replicas=values.get("replicas"))


def shown(values: Mapping[str, Any]) -> str:
    """A combination of values, as it is named."""
    return " ".join(f"{name}={_word(value)}" for name, value in values.items())


def expected(stage: AnyStage, at: At, tried: Sequence[Candidate]) -> list[Candidate]:
    """The arms that a plan takes for a stage's winners.

    Raises:
        AtFault: There is no such arm.
    """
    if isinstance(stage, Joint):
        return list(tried)
    return [_named(name, tried, (*at, "expect", place)) for place, name in enumerate(stage.expect)]


def _named(name: str, among: Sequence[Candidate], at: At) -> Candidate:
    for candidate in among:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in among[:12]) or "none is known beforehand"
    raise AtFault(at, f"there is no arm {name!r}", f"the arms are {known}")


def _combinations(stage: Grid, at: At, arm: Arm, study: Study) -> Iterator[dict[str, Any]]:
    count = math.prod(len(values) for values in stage.grid.values())
    if count > MOST_ARMS:
        raise AtFault(at, f"{count} combinations", f"keep to {MOST_ARMS}")
    for value in stage.grid.get("model", ()):
        if value not in study.models:
            raise AtFault((*at, "model"), f"{value!r} is not there", f"use {', '.join(study.models)}")
    for value in stage.grid.get("replicas", ()):
        if type(value) is not int or value < 1:
            raise AtFault((*at, "replicas"), f"{value!r} is no number of servers", "give 1 or more")
    condition = None if stage.where is None else Expression(stage.where)
    around = {"replicas": arm.replicas, "model": arm.model, **arm.knobs, "devices": study.hardware.devices}
    for values in itertools.product(*stage.grid.values()):
        combination = dict(zip(stage.grid, values, strict=True))
        try:
            if condition is None or condition.holds(around | combination):
                yield combination
        except BadInput as error:
            problem = f"{error.problem} in {shown(combination)}"
            raise AtFault((*at[:-1], "where"), problem, error.remedy) from error


def _together(names: list[str]) -> Iterator[list[str]]:
    """All of them, and each left out where that leaves two."""
    if len(names) < 2:
        return
    yield names
    if len(names) > 2:
        for left_out in names:
            yield [name for name in names if name != left_out]


def _word(value: Any) -> str:
    if value is None:
        return "default"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
