"""Presets: named workloads, for runs that can be compared by a name.

Presets with plain names send all requests at once, like `vllm bench serve` without a rate. Presets `gpustack-*` are the
load of GPUStack's benchmark profiles: evenly spaced requests, at most 512 in flight, and answers of full length.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput

FIELD = "--workload"
AT_ONCE = {"request_rate": math.inf}
GPUSTACK = {"burstiness": math.inf, "max_concurrency": 512, "ignore_eos": True}
SHAREGPT = {"dataset_name": "sharegpt", "num_prompts": 1000}


def _random(input_len: int, output_len: int, count: int) -> dict[str, Any]:
    """Return the settings of `count` random prompts of `input_len` tokens, with answers of `output_len` tokens."""
    lengths = {"random_input_len": input_len, "random_output_len": output_len}
    return {"dataset_name": "random", **lengths, "num_prompts": count, "seed": 42}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "sharegpt": SHAREGPT | AT_ONCE,
    "sharegpt-bs4": SHAREGPT | AT_ONCE | {"max_concurrency": 4},
    "short": _random(128, 4, 1000) | AT_ONCE,
    "medium": _random(2000, 100, 500) | AT_ONCE,
    "long": _random(4000, 200, 500) | AT_ONCE,
    "very-long": _random(32000, 100, 100) | AT_ONCE,
    "gpustack-sharegpt": SHAREGPT | GPUSTACK | {"request_rate": 1000.0},
    "gpustack-throughput": _random(1024, 128, 1000) | GPUSTACK | {"request_rate": 1000.0},
    "gpustack-long-context": _random(32000, 100, 100) | GPUSTACK | {"request_rate": 1.0},
    "gpustack-generation-heavy": _random(1000, 2000, 200) | GPUSTACK | {"request_rate": 1.0},
}


def resolve(name_or_file: str) -> dict[str, Any]:
    """Return the fields of `RunSettings` that a preset or a GPUStack profile in a YAML file sets.

    Args:
        name_or_file: The name of a preset, or a file; `FILE#NAME` chooses one of several profiles.

    Raises:
        BadInput: There is neither a preset nor a file of that name, or the file is invalid.
    """
    if name_or_file in PRESETS:
        return dict(PRESETS[name_or_file])
    file, _, name = name_or_file.partition("#")
    for path, chosen in ((name_or_file, None), (file, name or None)):
        if Path(os.path.expanduser(path)).is_file():
            from loadgen.config import gpustack_profile

            return GPUSTACK | gpustack_profile.read(Path(os.path.expanduser(path)), chosen)
    raise BadInput(FIELD, f"unknown preset or file {name_or_file!r}", f"choose one of: {', '.join(PRESETS)}")
