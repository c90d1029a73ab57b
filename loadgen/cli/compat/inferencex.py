"""InferenceX (InferenceMAX) and other copies of an older `benchmark_serving.py` of vLLM."""

from typing import Any

from loadgen.cli.compat import vllm
from loadgen.cli.compat.length_range import with_length_ranges
from loadgen.cli.compat.tool_flags import Given, ToolFlag, refused, renamed, switch, with_fields
from loadgen.util.argument_parser import number
from loadgen.workload import vllm_load
from loadgen.workload.endpoints.generation import COMPLETIONS

REPLACED = ("random_range_ratio",)  # settings whose flags mean something else there
DEFAULTS: dict[str, Any] = {
    "dataset_name": "sharegpt",
    "random_input_len": 1024,
    "random_output_len": 128,
    "random_range_ratio": 1.0,
    "temperature": 0.0,
    "ignore_eos": False,
    "latency_from": "sent",
    "warmup_prompt": "first",
}
FLAGS = (
    *vllm.FLAGS,
    renamed("--random-range-ratio", "random_range_ratio", number),
    ToolFlag("--dataset", lambda value, given: {"dataset_name": "sharegpt", "dataset_path": value}),
    refused("--best-of", "a request has one answer", "leave it out", no_op_value=1),
    switch("--use-chat-template", {"render_chat_template": "whole", "input_len_counts": "server"}),
)


def defaults(given: Given) -> dict[str, Any]:
    """Return the defaults."""
    return DEFAULTS | vllm.server(given) | ({"dataset_name": "random"} if given.get("workload") else {})


def as_sent(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the ranges of lengths, and the fields that completions always have.

    Raises:
        BadInput: The ratio of the ranges is not between 0 and 1.
    """
    found = with_length_ranges(vllm.without_ignored(settings))
    if vllm_load.api_of(found) is not COMPLETIONS:
        return {"content_parts": True} | found
    return with_fields(found, {"best_of": 1, "logprobs": None})
