"""The configuration of an arm: one server, or several equal ones, as a study tries it."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadgen.errors import Place
from loadgen.lab.study.spec.stages import BASELINE, Change
from loadgen.lab.study.spec.study import EngineBase, Study
from loadgen.util import accelerators

# Knobs that make room for the model, whatever the engine.
WIDTH = ("tensor_parallel", "pipeline_parallel")
# SGLang's deprecated flag, with which data_parallel copies the attention alone.
SHARED_COPIES = "--enable-dp-attention"


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """A configuration and its name in the stage that tries it.

    Attributes:
        engine: Name of the engine.
        model: Name of the model's variant in the study.
        knobs: Values of engine-neutral knobs, by name.
        raw: All words of each of the engine's own flags, by the flag's name.
        env: Environment variables that the study sets.
        replicas: Servers that share the requests and the devices.
        devices: Ids of the accelerators of all replicas; empty: those that the engine finds.
        name: Name in the stage.
        changes: Changes that the stage made to the arm it starts from, in order.
        at: Place in the study file that asks for this arm.
    """

    engine: str
    model: str
    knobs: Mapping[str, Any]
    raw: Mapping[str, tuple[str, ...]]
    env: Mapping[str, str]
    replicas: int = 1
    devices: tuple[str, ...] = ()
    name: str = ""
    changes: tuple[Change, ...] = ()
    at: Place = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The raw flags as words of a command line."""
        return tuple(itertools.chain.from_iterable(self.raw.values()))

    @property
    def shares(self) -> list[tuple[str, ...]]:
        """The devices of each replica."""
        return accelerators.split_devices(self.devices, self.replicas)

    @property
    def width(self) -> int:
        """Number of accelerators of one replica according to its knobs."""
        names = WIDTH if SHARED_COPIES in self.raw else (*WIDTH, "data_parallel")
        return math.prod(int(self.knobs.get(name, 1)) for name in names)

    def devices_used(self, box: int) -> int:
        """Return the number of accelerators of all replicas.

        Args:
            box: Accelerators in the box; 0: none.
        """
        return min(max(len(self.devices), self.width * self.replicas), box)

    @property
    def overrides(self) -> int:
        """Number of settings; of two equally good arms the study keeps the one with fewer."""
        settings = len(self.knobs) + len(self.raw) + len(self.env)
        return settings + 1 if self.replicas > 1 else settings

    def changed(self, change: Change, study: Study) -> ArmSpec:
        """Apply a change; another engine begins with the arm's width and what the study sets for
        that engine.
        """
        arm = self
        if change.engine is not None and change.engine != self.engine:
            arm = _with_engine(self, change.engine, study.engines[change.engine])
        replicas = change.replicas or arm.replicas
        devices = arm.devices if change.devices is None else tuple(change.devices)
        if (
            replicas > 1 and not devices
        ):  # without ids, all replicas would start on the same devices
            devices = tuple(map(str, range(study.hardware.devices)))
        return replace(
            arm,
            model=change.model or arm.model,
            knobs=_merged(arm.knobs, change.knobs),
            raw={**arm.raw, **_flags(change.raw)},
            env=_merged(arm.env, change.env),
            replicas=replicas,
            devices=devices,
        )


def baseline(study: Study) -> ArmSpec:
    """Return the configuration of the study's baseline."""
    change = study.baseline
    assert change.engine is not None
    assert change.model is not None
    bare = ArmSpec(change.engine, change.model, {}, {}, {}, name=BASELINE, at=("baseline",))
    return _with_engine(bare, change.engine, study.engines[change.engine]).changed(change, study)


def _with_engine(arm: ArmSpec, engine: str, base: EngineBase) -> ArmSpec:
    width = {name: arm.knobs[name] for name in WIDTH if name in arm.knobs}
    knobs = _merged(width, base.knobs)
    return replace(arm, engine=engine, knobs=knobs, raw=_flags(base.raw), env=dict(base.env))


def _flags(flags: Sequence[str]) -> dict[str, tuple[str, ...]]:
    split = [tuple(shlex.split(flag)) for flag in flags]
    return {words[0].partition("=")[0]: words for words in split}


def _merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
