"""A profile of --scenario: the flags that its keys stand for, and the settings that the others set."""

import json
from itertools import chain
from typing import Any

from loadgen.config import gpustack_profile, presets
from loadgen.errors import BadInput
from loadgen.lab.gpustack import arguments

# The keys whose values are those of a flag. GPUStack composes the same flags from them.
VALUES = {
    arguments.name_of(flag): flag
    for flag in (
        *("--lower-bound", "--upper-bound", "--max-points", "--max-total-seconds", "--max-seconds", "--max-errors"),
        *("--max-error-rate", "--stages", "--warmup", "--cooldown", *chain(*arguments.LIMITS.values())),
    )
}
# The keys that are true or false, and the flags of both.
SWITCHES = {
    "auto_tune": ("--auto-tune", None),
    "stop_on_saturation": ("--detect-saturation", None),
    "dataset_seed_increment": ("--seed-increment", "--no-seed-increment"),
}
AXIS, AXES = "load_type", {"fixed_rate": "rate", "concurrency": "concurrency"}
KEYS = (*VALUES, *SWITCHES, AXIS)


def resolve(name_or_file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a scenario gives.

    Args:
        name_or_file: A preset, or a file with profiles of GPUStack; `FILE#NAME` chooses one of several.

    Returns:
        Values by flag name, as `arguments.parse` returns them, and fields of `RunSettings`.
    """
    found = presets.profile_file(name_or_file)
    if found is None:
        return {}, presets.resolve(name_or_file)
    path, name = found
    profile = gpustack_profile.content(path, name)
    words = [word for key in KEYS if profile.get(key) is not None for word in _words(key, profile[key])]
    with gpustack_profile.named_in_errors(path):
        settings = gpustack_profile.fields({key: value for key, value in profile.items() if key not in KEYS})
    return arguments.parse(words), presets.gpustack(settings)


def _words(key: str, value: Any) -> list[str]:
    if key == AXIS:
        if value not in AXES:
            raise BadInput(AXIS, f"invalid value {value!r}", f"choose from {', '.join(AXES)}")
        return ["--axis", AXES[value]]
    if key in SWITCHES:
        if not isinstance(value, bool):
            raise BadInput(key, f"invalid value {value!r}", "write true or false")
        flag = SWITCHES[key][not value]
        return [] if flag is None else [flag]
    return [VALUES[key], value if isinstance(value, str) else json.dumps(value)]
