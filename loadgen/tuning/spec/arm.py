"""Arm: one configuration of a server, or of several alike, as a study tries it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadgen.tuning.spec.stages import Change
from loadgen.tuning.spec.study import EngineBase, Study
from loadgen.util import gpus


@dataclass(frozen=True, slots=True)
class Arm:
    """A configuration.

    Attributes:
        engine: Its name.
        model: Name of the model's variant.
        knobs: Engine-neutral names to values.
        raw: Flags of the engine's own, by their names: all words of each.
        env: Variables that the study sets.
        replicas: Servers that share the requests and the devices.
        devices: Ids of accelerators, of all replicas; none: what the engine finds.
    """

    engine: str
    model: str
    knobs: Mapping[str, Any]
    raw: Mapping[str, tuple[str, ...]]
    env: Mapping[str, str]
    replicas: int = 1
    devices: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The raw flags as they stand on a command line."""
        return tuple(word for words in self.raw.values() for word in words)

    @property
    def shares(self) -> list[tuple[str, ...]]:
        """The devices of each replica."""
        return gpus.split_devices(self.devices, self.replicas)

    @property
    def width(self) -> int:
        """Accelerators that a replica computes on, as far as its knobs say."""
        return int(self.knobs.get("tensor_parallel", 1) * self.knobs.get("pipeline_parallel", 1))

    @property
    def overrides(self) -> int:
        """How much is set: of two arms that are as good, the one with less is kept."""
        return len(self.knobs) + len(self.raw) + len(self.env) + (self.replicas > 1)

    def changed(self, change: Change, study: Study) -> "Arm":
        """This arm with a change made to it; a change to another engine begins with what the study sets of that."""
        arm = self
        if change.engine is not None and change.engine != self.engine:
            arm = _begun(change.engine, study.engines[change.engine], self)
        replicas = change.replicas or arm.replicas
        devices = arm.devices if change.devices is None else tuple(change.devices)
        if replicas > 1 and not devices:  # servers that each took what they find would meet on the same ones
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


def baseline(study: Study) -> Arm:
    """The arm that all others are held against."""
    change = study.baseline
    assert change.engine is not None
    assert change.model is not None
    begun = Arm(change.engine, change.model, {}, {}, {})
    return _begun(change.engine, study.engines[change.engine], begun).changed(change, study)


def _begun(engine: str, base: EngineBase, arm: Arm) -> Arm:
    """The arm with nothing but what is set of every server of an engine."""
    return replace(arm, engine=engine, knobs=dict(base.knobs), raw=_flags(base.raw), env=dict(base.env))


def _flags(said: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Flags by name; the later of two takes the place of the earlier, as on a command line."""
    flags = [tuple(shlex.split(flag)) for flag in said]
    return {words[0].partition("=")[0]: words for words in flags}


def _merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**before, **changes}
    return {name: value for name, value in merged.items() if value is not None}
