"""Checks that an arm can be served on the study's hardware; an error names its place in the study file."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from loadgen.config.data import TRACE
from loadgen.config.settings import RunSettings
from loadgen.engines import Launch
from loadgen.errors import BadInput
from loadgen.lab.study.plan.candidates import OF_ARMS
from loadgen.lab.study.plan.estimate import tokens
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.expression import Expression
from loadgen.lab.study.spec.stages import Grid
from loadgen.lab.study.spec.strict_model import At, AtFault, suggestion
from loadgen.lab.study.spec.study import Study


def check_knobs(study: Study, spec: ArmSpec, knobs: Sequence[str]) -> None:
    """Check the names of an arm's knobs.

    Args:
        study: The study.
        spec: The arm.
        knobs: Names of the knobs of all engines.

    Raises:
        AtFault: A knob is unknown.
    """
    for name in spec.knobs:
        if name not in knobs:
            remedy = suggestion(name, knobs) or f"use one of {', '.join(knobs)}"
            raise AtFault(_place(study, spec, name), "unknown knob", remedy)


def check_devices(study: Study, spec: ArmSpec) -> None:
    """Check that an arm fits into the box.

    Raises:
        AtFault: It needs other devices than the box has.
    """
    box, given = study.hardware.devices, len(spec.devices)
    if given > box:
        raise AtFault(spec.at, f"{given} devices, and the hardware has {box}", "let hardware.devices say how many")
    if given % spec.replicas:
        problem = f"{given} devices cannot be shared equally by {spec.replicas} replicas"
        raise AtFault(_place(study, spec, "replicas"), problem, "give a multiple of the replicas")
    share = (given or box) // spec.replicas
    if share and spec.width > share:
        problem = f"{spec.width} devices wide, and each replica has {share}"
        raise AtFault(_place(study, spec, "tensor_parallel"), problem, "make it narrower, or use fewer replicas")


def engine_refusal(study: Study, spec: ArmSpec, error: BadInput) -> AtFault:
    """Return an engine's error with the place in the study file that caused it."""
    name = error.field.partition(".")[0]
    place = _place(study, spec, name)
    part = "" if place[-1] == name == error.field else error.field
    return AtFault(place, f"{part}: {error.problem}" if part else error.problem, error.remedy)


def check_condition(study: Study, number: int, knobs: Callable[[str], Iterable[str]]) -> None:
    """Raise AtFault if a name in a grid's condition is unknown."""
    stage = study.stages[number]
    if not isinstance(stage, Grid) or stage.where is None:
        return
    known = {*(name for engine in study.engines for name in knobs(engine)), *stage.grid, *OF_ARMS, "devices"}
    for name in Expression(stage.where).names - known:
        remedy = suggestion(name, sorted(known)) or f"use knobs, {', '.join(OF_ARMS)} and devices"
        raise AtFault(("stages", number, "where"), f"unknown knob {name}", remedy)


def check_rates(study: Study, loads: Mapping[str, RunSettings]) -> None:
    """Check that goodput is decided by a workload that can run at any rate.

    Raises:
        AtFault: Its data set sets the time of each request.
    """
    name = study.objective.workload
    if study.objective.metric == "goodput" and loads[name].dataset_name == TRACE:
        problem = f"{name} is a trace, which says when each request is due, and goodput looks for a rate"
        raise AtFault(("objective", "workload"), problem, "let another workload decide")


def notes(arm: ArmSpec, launch: Launch, loads: Mapping[str, RunSettings]) -> tuple[str, ...]:
    """Return a remark for each workload whose prompts do not fit into the context of an arm, or of its command."""
    found = []
    context = arm.knobs.get("context_len", launch.context_len)
    for name, settings in loads.items():
        wanted = tokens(settings)
        if isinstance(context, int) and settings.dataset_name == "random" and wanted and sum(wanted) > context:
            found.append(f"{name} asks {sum(wanted):,} tokens of a context of {context:,}")
    return tuple(found)


def _place(study: Study, spec: ArmSpec, name: str) -> At:
    """Return the place in the study file that sets this for an arm; the place of the arm if nothing sets it."""
    if name == "host":
        return ("engines", spec.engine, name)
    for change in reversed(spec.changes):
        if name in change.knobs or (name in OF_ARMS and getattr(change, name) is not None):
            deep = spec.at[-1] in ("grid", "joint", "expect") or name in OF_ARMS
            return (*spec.at, name) if deep else (*spec.at, "knobs", name)
    if name in study.baseline.knobs and spec.knobs.get(name) == study.baseline.knobs[name]:
        return ("baseline", "knobs", name)
    if name in study.engines[spec.engine].knobs:
        return ("engines", spec.engine, "knobs", name)
    return spec.at
