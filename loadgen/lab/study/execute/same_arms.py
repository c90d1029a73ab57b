"""Detection of arms that turn out to be the same, by the configuration that their servers report."""

import json
import math
from collections.abc import Mapping
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.lab.study.execute.arm_result import ArmResult

BOUNDED_BY_LOAD = "max_seqs"  # a value above the number of requests in flight has no effect


def max_in_flight(settings: RunSettings) -> float:
    """Return the maximum number of requests that a workload can have in flight."""
    bounds = [bound for bound in (settings.max_concurrency, settings.num_prompts) if bound]
    return min(bounds, default=math.inf)


def same_config(one: ArmResult, other: ArmResult, names: Mapping[str, str], in_flight: float) -> bool:
    """Return whether the servers of two arms report the same value of every knob in which the arms differ.

    Args:
        one: An arm with a trial.
        other: Another.
        names: The engine's own flag of each knob.
        in_flight: Maximum number of requests in flight.
    """
    first, second = one.planned.spec, other.planned.spec
    for part in ("engine", "model", "raw", "env", "replicas", "devices"):
        if getattr(first, part) != getattr(second, part):
            return False
    differing = [
        knob for knob in {*first.knobs, *second.knobs} if _text(first.knobs.get(knob)) != _text(second.knobs.get(knob))
    ]
    return bool(differing) and all(_same_value(knob, one, other, names, in_flight) for knob in differing)


def _same_value(knob: str, one: ArmResult, other: ArmResult, names: Mapping[str, str], in_flight: float) -> bool:
    name = names.get(knob, knob).lstrip("-").replace("-", "_")
    values: list[Any] = [(arm.trials[-1].server_config or {}).get(name) for arm in (one, other)]
    if any(value is None for value in values):
        return False
    if knob == BOUNDED_BY_LOAD and all(isinstance(value, int | float) for value in values):
        values = [min(value, in_flight) for value in values]
    return _text(values[0]) == _text(values[1])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
