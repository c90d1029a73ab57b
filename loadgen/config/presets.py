"""Presets: named workloads, for runs that can be compared by a name.

Presets with plain names send all requests at once, like `vllm bench serve` without a rate. Presets
`gpustack-*` are the load of GPUStack's benchmark profiles, by whose own names they are known, too:
the prompts of its tool, evenly spaced requests, at most 512 in flight, and answers of full length.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.config.load import LoadSettings
from loadgen.config.option import options
from loadgen.errors import BadInput, setting

FLAG = setting.workload
AT_ONCE = {"request_rate": math.inf}
GPUSTACK = {"burstiness": math.inf, "max_concurrency": 512, "ignore_eos": True}
# Of GPUStack's tool, by data set.
GPUSTACK_RULES = {"random": "guidellm-0.5", "sharegpt": "benchmark-runner"}
SHAREGPT = {"dataset_name": "sharegpt", "num_prompts": 1000}


def _random(input_len: int, output_len: int, count: int) -> dict[str, Any]:
    lengths = {"random_input_len": input_len, "random_output_len": output_len}
    return {"dataset_name": "random", **lengths, "num_prompts": count, "seed": 42}


def gpustack(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the load of GPUStack's tool for the fields that a profile sets."""
    rule = GPUSTACK_RULES.get(profile.get("dataset_name", ""))
    return {**GPUSTACK, **({"dataset_rule": rule} if rule else {}), **profile}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "sharegpt": SHAREGPT | AT_ONCE,
    "sharegpt-bs4": SHAREGPT | AT_ONCE | {"max_concurrency": 4},
    "short": _random(128, 4, 1000) | AT_ONCE,
    "medium": _random(2000, 100, 500) | AT_ONCE,
    "long": _random(4000, 200, 500) | AT_ONCE,
    "very-long": _random(32000, 100, 100) | AT_ONCE,
    "gpustack-sharegpt": gpustack(SHAREGPT | {"request_rate": 1000.0}),
    "gpustack-throughput": gpustack(_random(1024, 128, 1000) | {"request_rate": 1000.0}),
    "gpustack-long-context": gpustack(_random(32000, 100, 100) | {"request_rate": 1.0}),
    "gpustack-generation-heavy": gpustack(_random(1000, 2000, 200) | {"request_rate": 1.0}),
    "gpustack-latency": gpustack(_random(32, 128, 100) | {"request_rate": 1.0}),
}
# The names that GPUStack shows for its profiles.
PROFILES = {
    "ShareGPT": "gpustack-sharegpt",
    "Throughput": "gpustack-throughput",
    "Long Context": "gpustack-long-context",
    "Generation Heavy": "gpustack-generation-heavy",
    "Latency": "gpustack-latency",
}


def names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return *PRESETS, *PROFILES


def merge(name_or_file: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a preset or profile with the user's own, which override what they
    exclude, too.

    Args:
        name_or_file: As in `resolve`.
        fields: The fields of `RunSettings` that the user sets.

    Raises:
        BadInput: As `resolve`.
    """
    excluded: set[str] = set()
    for load, option in options(LoadSettings).items():
        if fields.get(load) is not None:
            excluded.update(option.excludes)
    return {
        name: value for name, value in resolve(name_or_file).items() if name not in excluded
    } | dict(fields)


def resolve(name_or_file: str) -> dict[str, Any]:
    """Return the fields of `RunSettings` that a preset or a GPUStack profile in a YAML file sets.

    Args:
        name_or_file: The name of a preset, or a file; `FILE#NAME` chooses one of several profiles.

    Raises:
        BadInput: There is neither a preset nor a file of that name, or the file is invalid.
    """
    preset = PRESETS.get(PROFILES.get(name_or_file, name_or_file))
    if preset is not None:
        return dict(preset)
    if profile := profile_file(name_or_file):
        from loadgen.config import gpustack_profile

        return gpustack(gpustack_profile.read(*profile))
    raise BadInput(
        FLAG, f"unknown preset or file {name_or_file!r}", f"choose one of: {', '.join(names())}"
    )


def profile_file(name_or_file: str) -> tuple[Path, str | None] | None:
    """Return the file of a profile, and the name after its `#`; None if this is a preset, or
    there is no such file.
    """
    if name_or_file in PRESETS or name_or_file in PROFILES:
        return None
    file, _, name = name_or_file.partition("#")
    for text, chosen in ((name_or_file, None), (file, name or None)):
        path = Path(os.path.expanduser(text))
        if path.is_file():
            return path, chosen
    return None
