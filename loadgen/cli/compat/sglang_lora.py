"""SGLang's flags of LoRA adapters."""

from collections.abc import Sequence
from typing import Any

from loadgen.cli.compat.tool_flags import SOME, Given, ToolFlag
from loadgen.config import request_class
from loadgen.config.option import ABOVE_1, Range
from loadgen.errors import BadInput
from loadgen.util.argument_parser import number

DISTRIBUTIONS = {"uniform": request_class.RANDOM, "distinct": request_class.IN_TURN}  # beside skewed
ALPHA, ZIPF_ALPHA = "_lora_zipf_alpha", 1.5  # a marker, and its default


def _names(value: Sequence[str], given: Given) -> dict[str, Any]:
    if not value:
        raise BadInput("--lora-name", "names no adapter", "give the names that the server lists in /v1/models")
    return {"lora_modules": tuple(value)}


def _distribution(value: str, given: Given) -> dict[str, Any]:
    if value == request_class.SKEWED:
        return {"lora_assignment": _skewed(given.get(ALPHA, ZIPF_ALPHA))}
    if value not in DISTRIBUTIONS:
        remedy = f"choose from {', '.join(DISTRIBUTIONS)}, {request_class.SKEWED}"
        raise BadInput("--lora-request-distribution", f"unknown distribution {value!r}", remedy)
    return {"lora_assignment": DISTRIBUTIONS[value]}


def _zipf_alpha(value: float, given: Given) -> dict[str, Any]:
    Range("a number above 1", ABOVE_1).check("--lora-zipf-alpha", value)
    is_skewed = str(given.get("lora_assignment")).startswith(request_class.SKEWED)
    return {ALPHA: value} | ({"lora_assignment": _skewed(value)} if is_skewed else {})


def _skewed(alpha: float) -> str:
    return f"{request_class.SKEWED}:{alpha:g}"


FLAGS = (
    ToolFlag("--lora-name", _names, values=SOME),
    ToolFlag("--lora-request-distribution", _distribution),
    ToolFlag("--lora-zipf-alpha", _zipf_alpha, type_=number),
)
