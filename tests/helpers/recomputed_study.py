"""What a study found, computed again from the lines of its records by arithmetic of the tests'
own.
"""

import json
import math
import statistics
from pathlib import Path
from typing import Any


def run(path: Path) -> dict[str, Any]:
    """The numbers of a run: of requests that ended ok, as the server counted their tokens, times in
    ms.

    Args:
        path: Its records.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    asked = lines[0]["scheduled"]
    records = [line for line in lines[1:] if "index" in line]
    good = [each for each in records if each["outcome"] == "ok"]
    began = min(each["due"] + each["sent"] for each in records if each["sent"] is not None)
    ended = max(each["due"] + each["closed"] for each in records)
    seconds = (ended - began) / 1e9
    input_tokens = sum(each["prompt_tokens"] for each in good)
    output_tokens = sum(each["completion_tokens"] for each in good)
    ttft = [(each["first_token"] - each["sent"]) / 1e6 for each in good]
    tpot = [
        (each["last_token"] - each["first_token"]) / 1e6 / (each["completion_tokens"] - 1)
        for each in good
        if each["completion_tokens"] > 1
    ]
    return {
        "num_prompts": asked,
        "completed": len(good),
        "duration": seconds,
        "total_input_tokens": input_tokens,
        "total_output_tokens": output_tokens,
        "output_throughput": output_tokens / seconds,
        "total_token_throughput": (input_tokens + output_tokens) / seconds,
        "mean_ttft_ms": statistics.fmean(ttft),
        "mean_tpot_ms": statistics.fmean(tpot),
    }


def effect(values: list[float], reference: list[float]) -> float:
    """By what share one arm is above another, in the blocks that both have."""
    pairs = list(zip(values, reference, strict=False))
    return math.exp(statistics.fmean(math.log(one / other) for one, other in pairs)) - 1
