"""Data sets that vLLM, vllm-rs and SGLang read from files of the hub: their names, and flags of single data sets."""

from typing import Any

from loadgen.cli.compat.tool_flags import ToolFlag, appended, renamed
from loadgen.util.argument_parser import integer, number

NAMES = {"speed-bench": "speed_bench"}  # vllm-rs's and SGLang's name, vLLM's name

SGLANG_DEFAULTS: dict[str, dict[str, Any]] = {"speed_bench": {"hf_output_len": 512}}


def with_hub_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the data set's name as vLLM spells it."""
    name = settings.get("dataset_name")
    return settings | {"dataset_name": NAMES[name]} if name in NAMES else settings


def _category(name: str) -> ToolFlag:
    return appended(name, "hf_where", "category={}")


def _distance(name: str, sign: str, no_op_value: float) -> ToolFlag:
    """Return a flag that bounds the distance of the edits in Blazedit's data sets."""
    return appended(name, "hf_where", f"norm_distance{sign}{{}}", number, no_op_value)


SPEED_BENCH = (  # flags that SGLang has, too
    renamed("--speed-bench-output-len", "hf_output_len", integer),
    _category("--speed-bench-category"),
)
FLAGS = (
    appended("--hf-text-column", "hf_column", "prompt={}"),
    renamed("--spec-bench-output-len", "hf_output_len", integer),
    _category("--spec-bench-category"),
    _distance("--blazedit-min-distance", ">=", 0.0),
    _distance("--blazedit-max-distance", "<=", 1.0),
    renamed("--speed-bench-dataset-subset", "hf_subset"),
    renamed("--speed-bench-config", "hf_subset"),
    *SPEED_BENCH,
)
