"""The prompts of --data, as settings of a run."""

import json
import re
from pathlib import Path
from typing import Any

from loadgen.config.data import MULTI_TURN
from loadgen.config.option import FROM_1
from loadgen.errors import BadInput

FLAG = "--data"
SYNTHETIC = "write prompt_tokens=1024,output_tokens=128"
SHAREGPT = (
    "give lengths, or a file with sharegpt in its name; `loadgen run --dataset-name "
    "jsonl|csv|hf` sends others"
)
WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
SPREADS = ("stdev", "min", "max")
LENGTHS = tuple(
    f"{of}_tokens{spread}"
    for of in ("prompt", "output")
    for spread in ("", *(f"_{s}" for s in SPREADS))
)
TURNS = "turns"
BUCKETS = "prefix_buckets"
BUCKET = ("prefix_tokens", "prefix_count", "bucket_weight")
BUCKETS_REMEDY = 'write [{"prefix_tokens": 1000, "prefix_count": 4, "bucket_weight": 70}]'
# Keys of guidellm that are in the buckets.
ELSEWHERE = dict.fromkeys(("prefix_tokens", "prefix_count"), f"give {BUCKETS}: {BUCKETS_REMEDY}")


def fields(text: str, seed: int) -> dict[str, Any]:
    """Return the fields of `RunSettings` for a value of --data.

    Prompts of one length follow guidellm's rule. Prompts of different lengths follow loadgen's rule
    with guidellm's distribution: normal within bounds or, without a standard deviation, uniform. So
    do those of several turns, each with the answers before it, and those with shared prefixes,
    which are system messages as in guidellm.

    Args:
        text: Lengths as JSON or as a=1,b=2, or the path of a ShareGPT file.
        seed: The seed of the prompts.

    Raises:
        BadInput: The value is none of these.
    """
    try:
        lengths = json.loads(text)
    except ValueError:
        lengths = None
    if not isinstance(lengths, dict) and "=" in text and "/" not in text:
        pairs = [pair.partition("=") for pair in text.split(",")]
        lengths = {key.strip(): value.strip() for key, _, value in pairs}
    if isinstance(lengths, dict):
        return _synthetic(lengths) | {"seed": seed}
    name = Path(text).name.lower()
    if "sharegpt" in name and name.endswith((".json", ".jsonl")):
        return {
            "dataset_name": "sharegpt",
            "dataset_path": text,
            "dataset_rule": "benchmark-runner",
            "seed": seed,
        }
    raise BadInput(FLAG, f"{text!r} is neither a list of lengths nor a ShareGPT file", SHAREGPT)


def _synthetic(keys: dict[str, Any]) -> dict[str, Any]:
    for key in keys:
        if key in ELSEWHERE:
            raise BadInput(f"{FLAG} {key}", "not supported", ELSEWHERE[key])
        if key not in (*LENGTHS, TURNS, BUCKETS, "kind"):
            raise BadInput(
                f"{FLAG} {key}",
                "unknown key",
                f"choose from {', '.join((*LENGTHS, TURNS, BUCKETS))}",
            )
    numbers = {key: _whole(key, keys[key]) for key in LENGTHS if keys.get(key) is not None}
    for key in ("prompt_tokens", "output_tokens"):
        if key not in numbers:
            raise BadInput(f"{FLAG} {key}", "missing", SYNTHETIC)
    prompt = _length(numbers, "prompt_tokens")
    output = _length(numbers, "output_tokens")
    settings = {
        "dataset_name": "random",
        "random_input_len": prompt,
        "random_output_len": output,
        "ignore_eos": True,
    }
    turns = 1 if keys.get(TURNS) is None else _whole(TURNS, keys[TURNS])
    FROM_1.check(f"{FLAG} {TURNS}", turns)
    buckets = _buckets(keys.get(BUCKETS))
    if turns > 1 or buckets:
        return settings | {
            "dataset_name": MULTI_TURN,
            "turns": str(turns),
            "prefix_buckets": buckets,
            "dataset_rule": None,
        }
    fixed = isinstance(prompt, int) and isinstance(output, int)
    return settings | {"dataset_rule": "guidellm-0.5" if fixed else None}


def _buckets(buckets: Any) -> str | None:
    """Return prefix buckets as `--prefix-buckets` of `loadgen run` has them; None if there are
    none.
    """
    if not buckets:
        return None
    field = f"{FLAG} {BUCKETS}"
    if not isinstance(buckets, list) or not all(isinstance(bucket, dict) for bucket in buckets):
        raise BadInput(field, f"{buckets!r} is not a list of buckets", BUCKETS_REMEDY)
    texts = []
    for bucket in buckets:
        if unknown := set(bucket) - set(BUCKET):
            raise BadInput(field, f"unknown key {min(unknown)}", f"choose from {', '.join(BUCKET)}")
        values = {"prefix_count": 1, "bucket_weight": 100} | {
            k: v for k, v in bucket.items() if v is not None
        }
        if not all(type(values.get(key)) is int and values[key] >= 1 for key in BUCKET):
            raise BadInput(
                field, f"{bucket!r} has a number that is missing or below 1", BUCKETS_REMEDY
            )
        texts.append("{prefix_count}x{prefix_tokens}:{bucket_weight}".format(**values))
    return ",".join(texts)


def _length(numbers: dict[str, int], key: str) -> int | str:
    mean = numbers[key]
    stdev = numbers.get(f"{key}_stdev", 0)
    low = numbers.get(f"{key}_min")
    high = numbers.get(f"{key}_max")
    if stdev:
        return f"normal:{mean}:{stdev}:{low or max(1, mean - 5 * stdev)}:{high or mean + 5 * stdev}"
    return mean if low is None and high is None else f"{low or mean}:{high or mean}"


def _whole(key: str, value: Any) -> int:
    if isinstance(value, bool) or not WHOLE.fullmatch(str(value)):
        raise BadInput(f"{FLAG} {key}", f"{value!r} is not a whole number", SYNTHETIC)
    return int(value)
