"""Served: how arms are served: by which engine, in which version, with which commands."""

import dataclasses
import hashlib
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput
from loadgen.tuning.spec.arm import Arm
from loadgen.tuning.spec.study import EngineBase, Study
from loadgen.util.plugins import find

if TYPE_CHECKING:
    from loadgen.engines import Engine, Launch, Probes

FIRST_PORT = 8000  # of those that stand in commands for the ones that will be chosen


@dataclasses.dataclass(frozen=True)
class Tuned:
    """An engine with variables that a study sets; else as the engine itself.

    Attributes:
        engine: The engine, spoken to in the version that the study expects.
        env: The variables.
    """

    engine: "Engine"
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        """See `Engine.name`."""
        return self.engine.name

    @property
    def probes(self) -> "Probes":
        """See `Engine.probes`."""
        return self.engine.probes

    def version(self) -> str | None:
        """See `Engine.version`; where the study expects one, that."""
        return self.engine.version()

    def knobs(self) -> Mapping[str, str]:
        """See `Engine.knobs`."""
        return self.engine.knobs()

    def launch(self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Any) -> "Launch":
        """See `Engine.launch`.

        Raises:
            BadInput: As there; a variable says what a knob says.
        """
        launch = self.engine.launch(model, knobs, raw, place)
        said = {name for name in self.env if name in launch.env}
        if said:
            bare = self.engine.launch(model, {}, (), place).env
            for name in said:
                if launch.env[name] != bare.get(name):
                    raise BadInput(name, "it says what a knob or a flag says", "say it once, best with the knob")
        return dataclasses.replace(launch, env={**launch.env, **self.env})


class Served:
    """The engines of a study as they are installed here.

    Args:
        study: Which.

    Attributes:
        all_knobs: Names of the engine-neutral knobs, of whatever engine.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._engines = {name: _expected(find("engines", name), base) for name, base in study.engines.items()}
        launcher = find("launchers", "local")
        self._shown, self.all_knobs = launcher.shown, launcher.knobs

    def engine(self, arm: Arm) -> Tuned:
        """The engine of an arm, to be given to a launcher with the arm's knobs and words."""
        return Tuned(self._engines[arm.engine], arm.env)

    def knobs(self, engine: str) -> list[str]:
        """The names of the knobs that an engine of the study has."""
        return list(self._engines[engine].knobs())

    def installed(self, engine: str) -> str | None:
        """The version of an engine that is installed here; None where that cannot be told."""
        return find("engines", engine).version()  # type: ignore[no-any-return]

    def names(self, arm: Arm) -> Mapping[str, str]:
        """What the engine of an arm calls each knob."""
        return self.engine(arm).knobs()

    def launches(self, arm: Arm) -> list["Launch"]:
        """What would be started, one for each replica; port and folder stand for those that will be chosen.

        Raises:
            BadInput: The engine cannot be told it.
        """
        model, host = self._study.models[arm.model], self._study.engines[arm.engine].host
        engine, ports = self.engine(arm), itertools.count(FIRST_PORT)
        return [
            self._shown(engine, model, arm.knobs, arm.words, host=host, port=port, devices=share)
            for share, port in zip(arm.shares, ports, strict=False)
        ]


def identity(arm: Arm, launches: Sequence["Launch"]) -> str:
    """A hash that is the same for arms that are served alike, however that is written: aliases, `=`, order.

    Args:
        arm: The arm.
        launches: How it is served.
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
    said = json.dumps(served, sort_keys=True).replace(json.dumps(sys.executable), '"python"')  # wherever that is
    return hashlib.sha256(said.encode()).hexdigest()


def _expected(engine: Any, base: EngineBase) -> Any:
    """The engine in the version that is expected, as far as it can speak another than the one that is installed."""
    speaks = dataclasses.is_dataclass(engine) and "release" in {field.name for field in dataclasses.fields(engine)}
    return dataclasses.replace(engine, release=base.version) if speaks and base.version is not None else engine
