"""Checking: what an arm asks for that cannot be, and where the study file asks for it."""

from collections.abc import Callable, Mapping, Sequence

from loadgen.config.data import TRACE
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.tuning.plan.candidates import OF_ARMS, Candidate
from loadgen.tuning.plan.estimate import tokens
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.expression import Expression
from loadgen.tuning.spec.stages import Grid
from loadgen.tuning.spec.strict_model import At, AtFault, suggestion
from loadgen.tuning.spec.study import Study


def names(study: Study, candidate: Candidate, knobs: Sequence[str]) -> None:
    """Look whether an arm's knobs are knobs.

    Args:
        study: Which.
        candidate: The arm.
        knobs: The names there are, of all engines.

    Raises:
        AtFault: One is not.
    """
    for name in candidate.arm.knobs:
        if name not in knobs:
            remedy = suggestion(name, knobs) or f"use one of {', '.join(knobs)}"
            raise AtFault(_place(study, candidate, name), "is no knob", remedy)


def room(study: Study, candidate: Candidate) -> None:
    """Look whether an arm, which its engine has not refused, fits into the box.

    Raises:
        AtFault: It does not.
    """
    asked = candidate.arm
    box, given = study.hardware.devices, len(asked.devices)
    if given > box:
        raise AtFault(candidate.at, f"{given} devices, and the hardware has {box}", "let hardware.devices say how many")
    if given % asked.replicas:
        problem = f"{given} devices cannot be shared equally by {asked.replicas} replicas"
        raise AtFault(_place(study, candidate, "replicas"), problem, "give a multiple of the replicas")
    share = (given or box) // asked.replicas
    if share and asked.width > share:
        problem = f"{asked.width} devices wide, and each replica has {share}"
        raise AtFault(_place(study, candidate, "tensor_parallel"), problem, "make it narrower, or use fewer replicas")


def blamed(study: Study, candidate: Candidate, error: BadInput) -> AtFault:
    """What an engine refuses, by where the study file asks for it."""
    name = error.field.partition(".")[0]
    place = _place(study, candidate, name)
    said = place[-1] == name
    part = error.field if said and error.field != name else ""
    if not said:
        part = error.field
    return AtFault(place, f"{part}: {error.problem}" if part else error.problem, error.remedy)


def condition(study: Study, number: int, knobs: Callable[[str], Sequence[str]]) -> None:
    """Look whether the names in a grid's condition are names.

    Args:
        study: Which.
        number: Of the stage.
        knobs: The names there are, of an engine.

    Raises:
        AtFault: One is not.
    """
    stage = study.stages[number]
    if not isinstance(stage, Grid) or stage.where is None:
        return
    known = {*(name for engine in study.engines for name in knobs(engine)), *stage.grid, *OF_ARMS, "devices"}
    for name in Expression(stage.where).names - known:
        remedy = suggestion(name, sorted(known)) or f"use knobs, {', '.join(OF_ARMS)} and devices"
        raise AtFault(("stages", number, "where"), f"{name} is no knob", remedy)


def rates(study: Study, loads: Mapping[str, RunSettings]) -> None:
    """Look whether the workload that decides can be run at rates, where its highest is what is wanted.

    Raises:
        AtFault: Its data set says when its requests are due.
    """
    name = study.objective.workload
    if study.objective.metric == "goodput" and loads[name].dataset_name == TRACE:
        problem = f"{name} is a trace, which says when each request is due, and goodput looks for a rate"
        raise AtFault(("objective", "workload"), problem, "let another workload decide")


def notes(arm: Arm, loads: Mapping[str, RunSettings]) -> tuple[str, ...]:
    """What would make an arm fail its workloads, as far as it can be told."""
    found = []
    context = arm.knobs.get("context_len")
    for name, settings in loads.items():
        wanted = tokens(settings)
        if isinstance(context, int) and settings.dataset_name == "random" and wanted and sum(wanted) > context:
            found.append(f"{name} asks {sum(wanted):,} tokens of a context of {context:,}")
    return tuple(found)


def _place(study: Study, candidate: Candidate, name: str) -> At:
    """Where a study file says this of an arm; where it is the arm itself, if it does not."""
    asked = candidate.arm
    if name == "host":
        return ("engines", asked.engine, name)
    for change in reversed(candidate.changes):
        if name in change.knobs or (name in OF_ARMS and getattr(change, name) is not None):
            deep = candidate.at[-1] in ("grid", "joint", "expect") or name in OF_ARMS
            return (*candidate.at, name) if deep else (*candidate.at, "knobs", name)
    if name in study.baseline.knobs and asked.knobs.get(name) == study.baseline.knobs[name]:
        return ("baseline", "knobs", name)
    if name in study.engines[asked.engine].knobs:
        return ("engines", asked.engine, "knobs", name)
    return candidate.at
