"""The engines of a study: version, environment variables and commands with which they serve each
arm.

The checks tell whether an arm can be served on the study's hardware; an error names its place in
the study file.
"""

import dataclasses
import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from loadgen.config.data import TRACE
from loadgen.config.output import parse_percentiles
from loadgen.config.settings import RunSettings
from loadgen.engines import Engine, Launch, Probes
from loadgen.errors import BadInput, Place
from loadgen.lab.study.plan.candidates import OF_ARMS
from loadgen.lab.study.plan.estimate import tokens
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.expression import Expression
from loadgen.lab.study.spec.stages import Grid
from loadgen.lab.study.spec.strict_model import AtFault, suggestion
from loadgen.lab.study.spec.study import MAX_RATE, METRICS, Study
from loadgen.util.packages import find

FIRST_PORT = 8000  # in commands that are only shown; a start chooses free ports


@dataclasses.dataclass(frozen=True)
class EngineWithVariables:
    """An engine that also gets the environment variables of an arm.

    Attributes:
        engine: The engine, in the version that the study expects.
        env: The variables.
    """

    engine: Engine
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the engine."""
        return self.engine.name

    @property
    def probes(self) -> Probes:
        """Probes of the engine."""
        return self.engine.probes

    def version(self) -> str | None:
        """Return the version that the study expects, or else the installed one."""
        return self.engine.version()

    def knobs(self) -> Mapping[str, str]:
        """Return the engine's own name of each knob."""
        return self.engine.knobs()

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Any
    ) -> Launch:
        """Return the command of a server, as `Engine.launch` does.

        Raises:
            BadInput: The engine refuses it, or a variable and a knob set the same.
        """
        launch = self.engine.launch(model, knobs, raw, place)
        repeated = {name for name in self.env if name in launch.env}
        if repeated:
            bare = self.engine.launch(model, {}, (), place).env
            for name in repeated:
                if launch.env[name] != bare.get(name):
                    raise BadInput(
                        name, "a knob or a flag sets the same", "set it once, best with the knob"
                    )
        return dataclasses.replace(launch, env={**launch.env, **self.env})


class StudyEngines:
    """The engines of a study as they are installed here.

    Args:
        study: The study.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._engines: dict[str, Any] = {}
        for name, base in study.engines.items():
            engine = find("engines", name)
            fields = dataclasses.fields(engine) if dataclasses.is_dataclass(engine) else ()
            if base.version is not None and any(
                field.name == "release" for field in fields
            ):  # it writes commands of other versions than the installed one
                engine = dataclasses.replace(engine, release=base.version)
            self._engines[name] = engine
        launcher = find("launchers", "local")
        self._shown = launcher.shown
        self._all_knobs = launcher.knobs

    def engine(self, arm: ArmSpec) -> EngineWithVariables:
        """Return the engine of an arm, for a launcher."""
        return EngineWithVariables(self._engines[arm.engine], arm.env)

    def knobs(self, engine: str) -> Mapping[str, str]:
        """Return an engine's own name of each of its knobs."""
        return self._engines[engine].knobs()  # type: ignore[no-any-return]

    def check_knobs(self, arm: ArmSpec) -> None:
        """Check the names of an arm's knobs: engines share some, and each has others.

        Raises:
            AtFault: A knob is unknown.
        """
        if arm.knobs.keys() <= set(self._all_knobs):
            return  # the engine may start a program to know its own
        names = list(dict.fromkeys((*self._all_knobs, *self.knobs(arm.engine))))
        for name in arm.knobs:
            if name not in names:
                remedy = suggestion(name, names) or f"use one of {', '.join(names)}"
                raise AtFault(_place(self._study, arm, name), "unknown knob", remedy)

    def launches(self, arm: ArmSpec) -> list[Launch]:
        """Return the command of each replica, with a port and a folder as examples.

        Raises:
            BadInput: The engine refuses it.
        """
        model = self._study.models[arm.model]
        host = self._study.engines[arm.engine].host
        engine = self.engine(arm)
        ports = itertools.count(FIRST_PORT)
        return [
            self._shown(engine, model, arm.knobs, arm.words, host=host, port=port, devices=share)
            for share, port in zip(arm.shares, ports, strict=False)
        ]

    def normal(self, arm: ArmSpec) -> object:
        """Return the normal form of an arm's command; None if the engine refuses it."""
        try:
            launch = self.launches(arm)[0]
        except BadInput:
            return None
        return launch.normal or launch.argv


def identity(arm: ArmSpec, launches: Sequence[Launch]) -> str:
    """Return a hash of what is served; aliases, `=` and the order of flags do not change it.

    Args:
        arm: The arm.
        launches: Its commands, one for each replica.
    """
    first = launches[0]
    served = {
        "engine": arm.engine,
        "replicas": arm.replicas,
        "devices": arm.devices,
        "command": first.normal or first.argv,
        "env": dict(first.env),
        "files": {path.name: text for path, text in first.files.items()},
    }
    # Any installation.
    text = json.dumps(served, sort_keys=True).replace(json.dumps(sys.executable), '"python"')
    return hashlib.sha256(text.encode()).hexdigest()


def check_devices(study: Study, spec: ArmSpec) -> None:
    """Check that an arm fits into the box.

    Raises:
        AtFault: It needs other devices than the box has.
    """
    box = study.hardware.devices
    listed = len(spec.devices)
    if listed > box:
        raise AtFault(
            spec.at,
            f"{listed} devices, and the hardware has {box}",
            "let hardware.devices say how many",
        )
    if listed % spec.replicas:
        problem = f"{listed} devices cannot be shared equally by {spec.replicas} replicas"
        raise AtFault(_place(study, spec, "replicas"), problem, "give a multiple of the replicas")
    share = (listed or box) // spec.replicas
    if share and spec.width > share:
        problem = f"{spec.width} devices wide, and each replica has {share}"
        raise AtFault(
            _place(study, spec, "tensor_parallel"),
            problem,
            "make it narrower, or use fewer replicas",
        )


def engine_refusal(study: Study, spec: ArmSpec, error: BadInput) -> AtFault:
    """Return an engine's error with the place in the study file that caused it."""
    name = error.field.partition(".")[0]
    place = _place(study, spec, name)
    part = "" if place[-1] == name == error.field else error.field
    return AtFault(place, f"{part}: {error.problem}" if part else error.problem, error.remedy)


def check_condition(study: Study, number: int, knobs: Callable[[str], Iterable[str]]) -> None:
    """Check the names in a grid's condition.

    Args:
        study: The study.
        number: Index of the stage.
        knobs: Returns the names of an engine's knobs.

    Raises:
        AtFault: A name is unknown.
    """
    stage = study.stages[number]
    if not isinstance(stage, Grid) or stage.where is None:
        return
    variables = {*stage.grid, *OF_ARMS, "devices"}
    for engine in study.engines:
        variables |= {*knobs(engine)}
    for name in Expression(stage.where).names - variables:
        remedy = (
            suggestion(name, sorted(variables)) or f"use knobs, {', '.join(OF_ARMS)} and devices"
        )
        raise AtFault(("stages", number, "where"), f"unknown knob {name}", remedy)


def check_rates(study: Study, loads: Mapping[str, RunSettings]) -> None:
    """Check that the highest rate is looked for with a workload that can run at any, and that the
    workload that decides reports the percentile of the objective.

    Raises:
        AtFault: Its data set sets the time of each request, or the percentile is not reported.
    """
    name = study.objective.workload
    if study.objective.metric == MAX_RATE and loads[name].dataset_name == TRACE:
        problem = (
            f"{name} is a trace, which says when each request is due, and {MAX_RATE} looks for a "
            "rate"
        )
        raise AtFault(("objective", "workload"), problem, "let another workload decide")
    reported = parse_percentiles(loads[name].metric_percentiles)
    if METRICS[study.objective.metric].number.startswith("p99_") and 99 not in reported:
        problem = f"does not report p99, which {study.objective.metric} needs"
        raise AtFault(("workloads", name), problem, "add 99 to its metric_percentiles")


def notes(arm: ArmSpec, launch: Launch, loads: Mapping[str, RunSettings]) -> tuple[str, ...]:
    """Return a remark for each workload whose prompts do not fit into the context of an arm.

    Args:
        arm: The arm.
        launch: Its command, which may have a context of its own.
        loads: Its workloads.
    """
    remarks = []
    context = arm.knobs.get("context_len", launch.context_len)
    for name, settings in loads.items():
        lengths = tokens(settings)
        if (
            isinstance(context, int)
            and settings.dataset_name == "random"
            and lengths
            and sum(lengths) > context
        ):
            remarks.append(f"{name} asks {sum(lengths):,} tokens of a context of {context:,}")
    return tuple(remarks)


def _place(study: Study, spec: ArmSpec, name: str) -> Place:
    """Return the place in the study file that sets this for an arm; the place of the arm if
    nothing sets it.
    """
    if name == "host":
        return ("engines", spec.engine, name)
    for change in reversed(spec.changes):
        swept = spec.at[-1] in ("grid", "joint", "expect")
        flags = [flag.partition(" ")[0] for flag in change.raw] if swept else []
        of_arm = name in OF_ARMS and getattr(change, name) is not None
        if name in change.knobs or name in flags or of_arm:
            deep = swept or of_arm
            return (*spec.at, name) if deep else (*spec.at, "knobs", name)
    if name in study.baseline.knobs and spec.knobs.get(name) == study.baseline.knobs[name]:
        return ("baseline", "knobs", name)
    if name in study.engines[spec.engine].knobs:
        return ("engines", spec.engine, "knobs", name)
    return spec.at
