"""The prompts of --data, as settings of a run."""

import json
import re
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput

FIELD = "--data"
SYNTHETIC = "write prompt_tokens=1024,output_tokens=128"
SHAREGPT = "give lengths, or a file with sharegpt in its name; `loadgen run --dataset-name jsonl|csv|hf` sends others"
WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
SPREADS = ("stdev", "min", "max")
LENGTHS = tuple(f"{of}_tokens{spread}" for of in ("prompt", "output") for spread in ("", *(f"_{s}" for s in SPREADS)))
# Keys of guidellm for which `loadgen run` has flags of its own.
ELSEWHERE = {
    "turns": "use `loadgen run --dataset-name multi_turn --turns N`",
    "prefix_tokens": "use `loadgen run --random-prefix-len N`",
    "prefix_count": "use `loadgen run --dataset-name prefix_repetition`",
    "prefix_buckets": "use `loadgen run --dataset-name prefix_repetition`",
}


def fields(text: str, seed: int) -> dict[str, Any]:
    """Return the fields of `RunSettings` for a value of --data.

    Prompts of one length follow guidellm's rule. Prompts of different lengths follow loadgen's rule with guidellm's
    distribution: normal within bounds or, without a standard deviation, uniform.

    Args:
        text: Lengths as JSON or as a=1,b=2, or the path of a ShareGPT file.
        seed: The seed of the prompts.

    Raises:
        BadInput: The value is none of these.
    """
    lengths = _object(text)
    if lengths is not None:
        return _synthetic(lengths) | {"seed": seed}
    name = Path(text).name.lower()
    if "sharegpt" in name and name.endswith((".json", ".jsonl")):
        return {"dataset_name": "sharegpt", "dataset_path": text, "dataset_rule": "benchmark-runner", "seed": seed}
    raise BadInput(FIELD, f"{text!r} is neither a list of lengths nor a ShareGPT file", SHAREGPT)


def _object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object, or pairs as a=1,b=2; None for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    if "=" not in text or "/" in text:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _synthetic(given: dict[str, Any]) -> dict[str, Any]:
    for key in given:
        if key in ELSEWHERE:
            raise BadInput(f"{FIELD} {key}", "not supported", ELSEWHERE[key])
        if key not in (*LENGTHS, "kind"):
            raise BadInput(f"{FIELD} {key}", "unknown key", f"choose from {', '.join(LENGTHS)}")
    numbers = {key: _whole(key, given[key]) for key in LENGTHS if given.get(key) is not None}
    for key in ("prompt_tokens", "output_tokens"):
        if key not in numbers:
            raise BadInput(f"{FIELD} {key}", "missing", SYNTHETIC)
    prompt, output = _length(numbers, "prompt_tokens"), _length(numbers, "output_tokens")
    settings = {"dataset_name": "random", "random_input_len": prompt, "random_output_len": output, "ignore_eos": True}
    fixed = isinstance(prompt, int) and isinstance(output, int)
    return settings | ({"dataset_rule": "guidellm-0.5"} if fixed else {})


def _length(numbers: dict[str, int], key: str) -> int | str:
    mean, stdev = numbers[key], numbers.get(f"{key}_stdev", 0)
    low, high = numbers.get(f"{key}_min"), numbers.get(f"{key}_max")
    if stdev:
        return f"normal:{mean}:{stdev}:{low or max(1, mean - 5 * stdev)}:{high or mean + 5 * stdev}"
    return mean if low is None and high is None else f"{low or mean}:{high or mean}"


def _whole(key: str, value: Any) -> int:
    if isinstance(value, bool) or not WHOLE.fullmatch(str(value)):
        raise BadInput(f"{FIELD} {key}", f"{value!r} is not a number of tokens", SYNTHETIC)
    return int(value)
