"""Data sets that vLLM, vllm-rs and SGLang read from files of the hub: their names, and flags of single data sets."""

from typing import Any

from loadgen.cli.compat.tool_flags import Given, ToolFlag, renamed
from loadgen.util.argument_parser import integer, number

NAMES = {"speed-bench": "speed_bench"}  # vllm-rs's and SGLang's name, vLLM's name

SGLANG_DEFAULTS: dict[str, dict[str, Any]] = {"speed_bench": {"hf_output_len": 512}}


def with_hub_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the data set's name as vLLM spells it."""
    name = settings.get("dataset_name")
    return settings | {"dataset_name": NAMES[name]} if name in NAMES else settings


def _where(condition: str, given: Given) -> dict[str, Any]:
    return {"hf_where": (*given.get("hf_where", ()), condition)}


def _category(name: str) -> ToolFlag:
    return ToolFlag(name, lambda value, given: _where(f"category={value}", given), "`--hf-where category=NAME`")


def _distance(name: str, sign: str, no_op_value: float) -> ToolFlag:
    """Return a flag that bounds the distance of the edits in Blazedit's data sets."""

    def convert(value: float, given: Given) -> dict[str, Any]:
        return {} if value == no_op_value else _where(f"norm_distance{sign}{value}", given)

    return ToolFlag(name, convert, f"`--hf-where norm_distance{sign}N`", type_=number)


def _text_column(value: str, given: Given) -> dict[str, Any]:
    return {"hf_column": (*given.get("hf_column", ()), f"prompt={value}")}


SPEED_BENCH: tuple[ToolFlag, ...] = (  # flags that SGLang has, too
    renamed("--speed-bench-output-len", "hf_output_len", integer),
    _category("--speed-bench-category"),
)
FLAGS: tuple[ToolFlag, ...] = (
    ToolFlag("--hf-text-column", _text_column, "`--hf-column prompt=NAME`"),
    renamed("--spec-bench-output-len", "hf_output_len", integer),
    _category("--spec-bench-category"),
    _distance("--blazedit-min-distance", ">=", 0.0),
    _distance("--blazedit-max-distance", "<=", 1.0),
    renamed("--speed-bench-dataset-subset", "hf_subset"),
    renamed("--speed-bench-config", "hf_subset"),
    *SPEED_BENCH,
)
