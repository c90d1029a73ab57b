"""Data of prompts that several tools name alike: files of the hub, `timed_trace`, and the range
of random lengths.
"""

import math
from typing import Any

from loadgen.cli.compat.tool_flags import NONE, Settings, ToolFlag, appended, renamed
from loadgen.config.data import FULL_ANSWERS, TRACE
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

HUB_NAMES = {"speed-bench": "speed_bench"}  # vllm-rs's and SGLang's name, vLLM's name

SGLANG_DEFAULTS: dict[str, dict[str, Any]] = {"speed_bench": {"hf_output_len": 512}}
TIMED_TRACE = "timed_trace"
TIMED_TRACE_DEFAULTS: dict[str, Any] = {
    "trace_format": "mooncake",
    "trace_time_unit": 1.0,
    "trace_block_size": 16,
    "ignore_eos": True,
    "num_prompts": 1000,
    "no_oversample": True,
}
CATEGORY = "category={}"
LENGTHS = ("random_input_len", "random_output_len")


def with_dataset_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with loadgen's name of the data set: that of vLLM for files of the hub,
    and `trace`, with vLLM's defaults, for `timed_trace`.
    """
    name = settings.get("dataset_name")
    if name in HUB_NAMES:
        return settings | {"dataset_name": HUB_NAMES[name]}
    if name == TIMED_TRACE:
        return TIMED_TRACE_DEFAULTS | settings | {"dataset_name": TRACE}
    return settings


def _times(flag: str, choice: str) -> ToolFlag:
    """Return a flag that chooses whether a trace keeps its times; vLLM refuses it for other data
    sets.
    """

    def convert(value: object, settings: Settings) -> dict[str, Any]:
        if settings.get("dataset_name") not in (TIMED_TRACE, TRACE):
            raise BadInput(flag, "applies only to --dataset-name timed_trace", "leave it out")
        return {"trace_times": choice}

    return ToolFlag(flag, convert, values=NONE)


def with_length_ranges(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with a range for each length of random prompts, in place of the ratio.

    SGLang and older vLLM mean lengths from this share of the length up to it.

    Raises:
        BadInput: The ratio is not between 0 and 1.
    """
    result = dict(settings)
    text = result.pop("random_range_ratio")
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not 0 <= ratio <= 1:
        raise BadInput(
            "--random-range-ratio", f"{text} is out of range", "give a number from 0 to 1"
        )
    for name in LENGTHS if result["dataset_name"] in FULL_ANSWERS else ():
        most = result[name]
        if isinstance(most, int):
            least = max(int(most * ratio), 1)
            result[name] = most if least == most else f"{least}:{most}"
    return result


SPEED_BENCH = (  # flags that SGLang has, too
    renamed("--speed-bench-output-len", "hf_output_len", integer),
    appended("--speed-bench-category", "hf_where", CATEGORY),
)
HUB_FLAGS = (
    appended("--hf-text-column", "hf_column", "prompt={}"),
    renamed("--spec-bench-output-len", "hf_output_len", integer),
    appended("--spec-bench-category", "hf_where", CATEGORY),
    appended("--blazedit-min-distance", "hf_where", "norm_distance>={}", number, 0.0),
    appended("--blazedit-max-distance", "hf_where", "norm_distance<={}", number, 1.0),
    renamed("--speed-bench-dataset-subset", "hf_subset"),
    renamed("--speed-bench-config", "hf_subset"),
    *SPEED_BENCH,
)
TIMED_TRACE_FLAGS = (
    renamed("--timed-trace-chunk-hash-size", "trace_block_size", integer),
    renamed("--timed-trace-sec-multiplier", "trace_time_unit", number),
    appended("--timed-trace-label-timestamp", "trace_column", "time={}"),
    appended("--timed-trace-label-input-length", "trace_column", "input={}"),
    appended("--timed-trace-label-output-length", "trace_column", "output={}"),
    appended("--timed-trace-label-hash-ids", "trace_column", "blocks={}"),
    _times("--self-timed", "keep"),
    _times("--no-self-timed", "ignore"),
)
