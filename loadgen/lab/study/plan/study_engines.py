"""The engines of a study: version, environment variables and commands with which they serve each arm."""

import dataclasses
import hashlib
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.engines import Engine, Launch, Probes
from loadgen.errors import BadInput
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.study import EngineBase, Study
from loadgen.util.packages import find

FIRST_PORT = 8000  # in commands that are only shown; a start chooses free ports


@dataclasses.dataclass(frozen=True)
class EngineWithVariables:
    """An engine that also gets the environment variables of an arm.

    Attributes:
        engine: The engine, in the version that the study expects.
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

    def with_variable(self, name: str, value: str) -> "EngineWithVariables":
        """Return the engine with one more variable."""
        return dataclasses.replace(self, env={**self.env, name: value})

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Any) -> Launch:
        """As `Engine.launch`; BadInput also if a variable and a knob set the same."""
        launch = self.engine.launch(model, knobs, raw, place)
        repeated = {name for name in self.env if name in launch.env}
        if repeated:
            bare = self.engine.launch(model, {}, (), place).env
            for name in repeated:
                if launch.env[name] != bare.get(name):
                    raise BadInput(name, "a knob or a flag sets the same", "set it once, best with the knob")
        return dataclasses.replace(launch, env={**launch.env, **self.env})


class StudyEngines:
    """The engines of a study as they are installed here.

    Args:
        study: The study.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._engines = {name: _expected(find("engines", name), base) for name, base in study.engines.items()}
        launcher = find("launchers", "local")
        self._shown, self._all_knobs = launcher.shown, launcher.knobs

    def engine(self, arm: ArmSpec) -> EngineWithVariables:
        """Return the engine of an arm, for a launcher."""
        return EngineWithVariables(self._engines[arm.engine], arm.env)

    def knobs(self, engine: str) -> Mapping[str, str]:
        """Return an engine's own name of each of its knobs."""
        return self._engines[engine].knobs()  # type: ignore[no-any-return]

    def known_knobs(self, arm: ArmSpec) -> list[str]:
        """Return the names of the knobs that engines share, and if an arm has others, of all those of its engine."""
        if arm.knobs.keys() <= set(self._all_knobs):  # the engine may start a program to know its own
            return list(self._all_knobs)
        return list(dict.fromkeys((*self._all_knobs, *self.knobs(arm.engine))))

    def launches(self, arm: ArmSpec) -> list[Launch]:
        """Return the command of each replica, with a port and folder as examples; BadInput if the engine refuses it."""
        model, host = self._study.models[arm.model], self._study.engines[arm.engine].host
        engine, ports = self.engine(arm), itertools.count(FIRST_PORT)
        return [
            self._shown(engine, model, arm.knobs, arm.words, host=host, port=port, devices=share)
            for share, port in zip(arm.shares, ports, strict=False)
        ]


def identity(arm: ArmSpec, launches: Sequence[Launch]) -> str:
    """Return a hash of what is served; aliases, `=` and the order of flags do not change it."""
    first = launches[0]
    served = {
        "engine": arm.engine,
        "replicas": arm.replicas,
        "devices": arm.devices,
        "command": first.normal or first.argv,
        "env": dict(first.env),
        "files": {path.name: text for path, text in first.files.items()},
    }
    text = json.dumps(served, sort_keys=True).replace(json.dumps(sys.executable), '"python"')  # any installation
    return hashlib.sha256(text.encode()).hexdigest()


def _expected(engine: Any, base: EngineBase) -> Any:
    """Return the engine in the expected version, if it can write commands of other versions than the installed one."""
    has_releases = dataclasses.is_dataclass(engine) and "release" in {
        field.name for field in dataclasses.fields(engine)
    }
    return dataclasses.replace(engine, release=base.version) if has_releases and base.version is not None else engine
