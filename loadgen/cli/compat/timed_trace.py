"""vLLM's and vllm-rs's data set `timed_trace`: a trace whose columns, times and blocks the flags describe."""

from typing import Any

from loadgen.cli.compat.tool_flags import NONE, Given, ToolFlag, appended, renamed
from loadgen.config.data import TRACE
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

NAME = "timed_trace"
DEFAULTS: dict[str, Any] = {
    "trace_format": "mooncake",
    "trace_time_unit": 1.0,
    "trace_block_size": 16,
    "ignore_eos": True,
    "num_prompts": 1000,
    "no_oversample": True,
}


def with_timed_trace(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the data set `timed_trace` as the data set `trace`, with vLLM's defaults."""
    return DEFAULTS | settings | {"dataset_name": TRACE} if settings.get("dataset_name") == NAME else settings


def _column(flag: str, field: str) -> ToolFlag:
    return appended(f"--timed-trace-label-{flag}", "trace_column", field + "={}")


def _times(flag: str, kept: str) -> ToolFlag:
    """Return a flag that chooses whether a trace keeps its times; vLLM refuses it for other data sets."""

    def convert(value: object, given: Given) -> dict[str, Any]:
        if given.get("dataset_name") not in (NAME, TRACE):
            raise BadInput(flag, "applies only to --dataset-name timed_trace", "leave it out")
        return {"trace_times": kept}

    return ToolFlag(flag, convert, values=NONE)


FLAGS = (
    renamed("--timed-trace-chunk-hash-size", "trace_block_size", integer),
    renamed("--timed-trace-sec-multiplier", "trace_time_unit", number),
    _column("timestamp", "time"),
    _column("input-length", "input"),
    _column("output-length", "output"),
    _column("hash-ids", "blocks"),
    _times("--self-timed", "keep"),
    _times("--no-self-timed", "ignore"),
)
