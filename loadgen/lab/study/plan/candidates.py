"""The arms that each stage tries, built from the arms it starts from and the changes it makes."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loadgen.engines.kinds.flag_syntax import compact_json
from loadgen.errors import BadInput, Place
from loadgen.lab.study.spec.arm_spec import ArmSpec, baseline
from loadgen.lab.study.spec.expression import Expression
from loadgen.lab.study.spec.stages import (
    BASELINE,
    INCUMBENT,
    AnyStage,
    Change,
    Choice,
    Grid,
    Interactions,
    Joint,
    Named,
)
from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.lab.study.spec.study import Study

MAX_COMBINATIONS = 10_000  # of a grid, before its condition
OF_ARMS = ("model", "replicas")  # in grids, beside knobs


class Candidates:
    """The arms of each stage, given the winners of the stages before it.

    Args:
        study: The study, checked.

    Attributes:
        study: The study.
        baseline: Its baseline.
        incumbents: The arms that go on now, the best first.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.baseline = baseline(study)
        self.incumbents = [self.baseline]
        self._tried: dict[str, list[ArmSpec]] = {}
        self._won: dict[str, list[ArmSpec]] = {}

    def starts(self, number: int) -> list[ArmSpec]:
        """Return the arms from which a stage starts.

        Raises:
            AtFault: The stage names an unknown arm.
        """
        source = self.study.stages[number].from_
        if source in (INCUMBENT, BASELINE):
            return self.incumbents if source == INCUMBENT else [self.baseline]
        stage, _, name = source.partition("/")
        return [replace(_find(name, self._tried[stage], ("stages", number, "from")), name=source)]

    def of_stage(self, number: int) -> list[ArmSpec]:
        """Return the arms that a stage tries; none of a joint stage, which draws them as it goes.

        Raises:
            AtFault: The stage makes a change that no arm can have.
        """
        stage = self.study.stages[number]
        at = ("stages", number)
        starts = self.starts(number)
        arms = []
        for start in starts:
            for name, changes, where in self._changes(stage, at, start):
                spec = replace(
                    start,
                    name=name if len(starts) == 1 else f"{name} on {start.name}",
                    changes=changes,
                )
                for change in changes:
                    spec = spec.changed(change, self.study)
                arms.append(replace(spec, at=where))
        return arms

    def drawn(self, number: int, values: Mapping[str, Any], at: Place) -> ArmSpec:
        """Return the arm of a joint stage that sets its knobs and flags to these values.

        Raises:
            AtFault: No arm can have these values.
        """
        start = self.starts(number)[0]
        _check_flags(values, start, at)
        change = _change_to(values)
        return replace(
            start.changed(change, self.study), name=_name_of(values), changes=(change,), at=at
        )

    def adopt(self, number: int, tried: Sequence[ArmSpec], won: Sequence[ArmSpec]) -> None:
        """Record the outcome of a stage.

        Args:
            number: Index of the stage.
            tried: Its arms.
            won: The arms that go on, the best first; empty: the incumbents stay.
        """
        name = self.study.stages[number].name
        self._tried[name] = list(tried)
        self._won[name] = list(won)
        if won:
            self.incumbents = [replace(winner, name=f"{name}/{winner.name}") for winner in won]

    def _changes(
        self, stage: AnyStage, at: Place, start: ArmSpec
    ) -> Iterator[tuple[str, tuple[Change, ...], Place]]:
        if isinstance(stage, Choice):
            for name, change in stage.choice.items():
                yield name, (change,), (*at, "choice", name)
        elif isinstance(stage, Grid):
            for values in _combinations(stage, (*at, "grid"), start, self.study):
                yield _name_of(values), (_change_to(values),), (*at, "grid")
        elif isinstance(stage, Interactions):
            won = {
                name: self._won[name][0].changes for name in stage.interactions if self._won[name]
            }
            subsets = [list(won)] if len(won) > 1 else []
            if len(won) > 2:
                subsets += [[name for name in won if name != left_out] for left_out in won]
            for names in subsets:
                changes: list[Change] = []
                for name in names:
                    changes += won[name]
                yield " && ".join(names), tuple(changes), (*at, "interactions")


def expected(stage: AnyStage, tried: Sequence[ArmSpec]) -> list[ArmSpec]:
    """Return the arms that a plan takes for a stage's winners, as far as the stage tries them.

    A run may have another incumbent than the plan, and then other arms.
    """
    if isinstance(stage, Joint):
        return list(tried)
    arms = {spec.name: spec for spec in tried}
    return [arms[name] for name in _expected_names(stage) if name in arms]


def check_expected(stage: AnyStage, at: Place, tried: Sequence[ArmSpec]) -> None:
    """Check that a stage has the arms that its plan expects to win.

    Raises:
        AtFault: It has not.
    """
    if isinstance(stage, Joint):
        return
    names = _expected_names(stage)
    if names and not tried and isinstance(stage, Grid) and stage.where is not None:
        problem = f"no combination of the grid meets {stage.where!r}"
        raise AtFault(
            (*at, "where"), problem, "change the condition, or add values to the grid that meet it"
        )
    for number, name in enumerate(names):
        _find(name, tried, (*at, "expect", *((number,) if len(names) > 1 else ())))


def _expected_names(stage: Named) -> list[str]:
    if not isinstance(stage, Grid):
        return stage.expect
    names = []
    for combination in stage.expect:
        if isinstance(combination, str):
            names.append(combination)
        else:  # with the knobs in the order of the grid
            in_order = [name for name in (stage.grid | combination) if name in combination]
            names.append(_name_of({name: combination[name] for name in in_order}))
    return names


def is_raw(name: str) -> bool:
    """Return whether a grid or a joint stage varies a flag of the engine's own by this name."""
    return name.startswith("-")


def _change_to(values: Mapping[str, Any]) -> Change:
    flags = {name: value for name, value in values.items() if is_raw(name)}
    knobs = {name: value for name, value in values.items() if name not in (*OF_ARMS, *flags)}
    return Change(
        knobs=knobs,
        raw=[
            shlex.join((name, *_flag_values(value)))
            for name, value in flags.items()
            if not _leaves_out(value)
        ],
        model=values.get("model"),
        replicas=values.get("replicas"),
    )


def _leaves_out(value: Any) -> bool:
    return value is None or value is False


def _flag_values(value: Any) -> list[str]:
    """Return the words behind a flag: none for true, several for a list, JSON for a mapping."""
    if value is True:
        return []
    if isinstance(value, list):
        return list(map(str, value))
    return [compact_json(value) if isinstance(value, Mapping) else str(value)]


def _check_flags(values: Mapping[str, Any], arm: ArmSpec, at: Place) -> None:
    for name, value in values.items():
        if not is_raw(name):
            continue
        if "=" in name or shlex.split(name) != [name]:
            raise AtFault(
                (*at, name), "is not the name of a flag", "give its name, and its values apart"
            )
        if _leaves_out(value) and name in arm.raw:
            problem = f"{arm.name} has this flag, and a stage cannot take it away"
            raise AtFault((*at, name), problem, "start from an arm without it")


def _name_of(values: Mapping[str, Any]) -> str:
    words = []
    for name, value in values.items():
        if value is None:
            word = "default"
        elif isinstance(value, str):
            word = value
        else:
            word = json.dumps(value, separators=(",", ":"))
        words.append(f"{name}={word}")
    return " ".join(words)


def _find(name: str, among: Sequence[ArmSpec], at: Place) -> ArmSpec:
    for spec in among:
        if spec.name == name:
            return spec
    names = ", ".join(spec.name for spec in among[:12]) or "not known before the study runs"
    raise AtFault(at, f"unknown arm {name!r}", f"the arms are {names}")


def _combinations(stage: Grid, at: Place, arm: ArmSpec, study: Study) -> Iterator[dict[str, Any]]:
    count = math.prod(len(values) for values in stage.grid.values())
    if count > MAX_COMBINATIONS:
        raise AtFault(at, f"{count} combinations", f"keep to {MAX_COMBINATIONS}")
    for value in stage.grid.get("model", ()):
        if value not in study.models:
            raise AtFault(
                (*at, "model"), f"unknown model {value!r}", f"use {', '.join(study.models)}"
            )
    for value in stage.grid.get("replicas", ()):
        if type(value) is not int or value < 1:
            raise AtFault(
                (*at, "replicas"), f"{value!r} is not a number of servers", "give 1 or more"
            )
    condition = None if stage.where is None else Expression(stage.where)
    variables = {
        "replicas": arm.replicas,
        "model": arm.model,
        **arm.knobs,
        "devices": study.hardware.devices,
    }
    for values in itertools.product(*stage.grid.values()):
        combination = dict(zip(stage.grid, values, strict=True))
        _check_flags(combination, arm, at)
        try:
            if condition is None or condition.holds(variables | combination):
                yield combination
        except BadInput as error:
            problem = f"{error.problem} in {_name_of(combination)}"
            raise AtFault((*at[:-1], "where"), problem, error.remedy) from error
