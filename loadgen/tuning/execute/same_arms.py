"""Alike: whether two arms that are started differently are the same once they run, by what their servers tell."""

import json
import math
from collections.abc import Mapping
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.tuning.execute.trial import Trial
from loadgen.tuning.spec.arm import Arm

BOUNDED_BY_LOAD = "max_seqs"  # above what is ever asked at once it binds nothing


def most_in_flight(settings: RunSettings) -> float:
    """Requests that a workload can have in flight at once."""
    bounds = [bound for bound in (settings.max_concurrency, settings.num_prompts) if bound]
    return min(bounds, default=math.inf)


def alike(one: tuple[Arm, Trial], other: tuple[Arm, Trial], names: Mapping[str, str], in_flight: float) -> bool:
    """Whether two arms are the same as far as their servers tell: in every knob in which they differ.

    Args:
        one: An arm, and a trial of it.
        other: Another.
        names: The engine's own name of each knob, as a flag.
        in_flight: Requests that there can be at once.
    """
    if one[1].told is None or other[1].told is None:
        return False
    first, second = one[0], other[0]
    for part in ("engine", "model", "raw", "env", "replicas", "devices"):
        if getattr(first, part) != getattr(second, part):
            return False
    differ = [
        knob for knob in {*first.knobs, *second.knobs} if _text(first.knobs.get(knob)) != _text(second.knobs.get(knob))
    ]
    return bool(differ) and all(_same(knob, one[1], other[1], names, in_flight) for knob in differ)


def _told_of(knob: str, trial: Trial, names: Mapping[str, str]) -> Any:
    """What the server told of a knob; None if nothing."""
    name = names.get(knob, knob).lstrip("-").replace("-", "_")
    return None if trial.told is None else trial.told.get(name)


def _same(knob: str, one: Trial, other: Trial, names: Mapping[str, str], in_flight: float) -> bool:
    values = [_told_of(knob, trial, names) for trial in (one, other)]
    if any(value is None for value in values):
        return False
    if knob == BOUNDED_BY_LOAD and all(isinstance(value, int | float) for value in values):
        values = [min(value, in_flight) for value in values]
    return _text(values[0]) == _text(values[1])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
