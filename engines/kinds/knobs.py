"""Knobs: the settings of a server under names that all engines share, and the value of the knob
`speculative`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.errors import BadInput

KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
    dict: "a mapping",
}
FIELDS = ("method", "num_speculative_tokens", "model")


@dataclass(frozen=True, slots=True)
class Knob:
    """One engine-neutral setting.

    Attributes:
        name: The name in study files and results.
        kind: Type of the value: int, float, str, bool or dict; a whole number is accepted as a
            float.
        help: Meaning and unit, in one line.
        minimum: Smallest number.
        maximum: Largest number.
        choices: Allowed words; empty: any word.
    """

    name: str
    kind: type
    help: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """Return `value` converted to the knob's type.

        Raises:
            BadInput: It has another type, is out of range, or is a word that a command line would
                take for a flag.
        """
        if self.kind is float and type(value) is int:
            value = float(value)
        if not (type(value) is self.kind or (self.kind is dict and isinstance(value, Mapping))):
            raise BadInput(
                self.name,
                f"{value!r} is not {KINDS[self.kind]}",
                f"give {KINDS[self.kind]}: {self.help}",
            )
        if isinstance(value, int | float) and not (self.minimum <= value <= self.maximum):
            bounds = (
                f"{self.minimum:g} or more"
                if self.maximum == math.inf
                else f"{self.minimum:g} to {self.maximum:g}"
            )
            raise BadInput(self.name, f"{value} is out of range", f"give {bounds}")
        if self.choices and value not in self.choices:
            raise BadInput(
                self.name, f"unknown value {value!r}", f"use one of {', '.join(self.choices)}"
            )
        return check_word(self.name, value) if self.kind is str else value


KNOBS = {
    knob.name: knob
    for knob in (
        Knob("served_name", str, "model name that requests use"),
        Knob("tensor_parallel", int, "accelerators that share each layer", minimum=1),
        Knob("pipeline_parallel", int, "groups of layers, each on its own accelerators", minimum=1),
        Knob(
            "data_parallel",
            int,
            "copies of the model in one server, each on its own accelerators",
            minimum=1,
        ),
        Knob(
            "attention_data_parallel",
            int,
            "copies of the attention, among which the accelerators of tensor_parallel are divided",
            minimum=1,
        ),
        Knob(
            "expert_parallel",
            bool,
            "experts are spread over the accelerators instead of split across them",
        ),
        Knob("context_len", int, "maximum tokens of prompt and answer of one request", minimum=1),
        Knob("max_batched_tokens", int, "maximum tokens computed in one step", minimum=1),
        Knob("max_seqs", int, "maximum requests running at once", minimum=1),
        Knob("chunked_prefill", bool, "long prompts are computed in chunks, between decodes"),
        Knob("prefix_cache", bool, "the KV cache of common prefixes is kept and reused"),
        Knob(
            "quantization",
            str,
            "quantization method of the weights, if the checkpoint does not name it",
        ),
        Knob("kv_dtype", str, "element type of the KV cache, as the engine names it"),
        Knob("attention_backend", str, "attention kernels, as the engine names them"),
        Knob("speculative", dict, "speculative decoding: method, num_speculative_tokens, model"),
        Knob("memory_fraction", float, "share of the accelerator's memory, 0 to 1", 0.01, 1.0),
        Knob(
            "reasoning_parser",
            str,
            "parser that separates reasoning from the answer, as the engine names it",
        ),
        Knob(
            "performance_mode",
            str,
            "the engine's own preset",
            choices=("balanced", "interactivity", "throughput"),
        ),
    )
}


def own_knobs(names: Iterable[str]) -> list[str]:
    """Select the knobs that an engine has beside those that all engines share; their values are
    texts.
    """
    return [name for name in names if name not in KNOBS]


def check_word(field: str, value: Any) -> str:
    """Return `value` if every command line takes it for a value.

    Raises:
        BadInput: It is empty, not text, has control characters, or starts like a flag.
    """
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not value.strip()
        or value.startswith("-")
    ):
        raise BadInput(
            field,
            f"{value!r} cannot stand on a command line",
            "give text that does not start with a dash",
        )
    return value


@dataclass(frozen=True, slots=True)
class Speculation:
    """The settings of speculative decoding.

    Attributes:
        method: The engine's name of the method.
        tokens: Tokens drafted in each step.
        model: The draft model; None: the model itself, or its prompt, drafts.
    """

    method: str
    tokens: int
    model: str | None


def parse_speculation(value: Mapping[str, Any], methods: Mapping[str, str]) -> Speculation:
    """Parse the knob's value: method, num_speculative_tokens and, for a draft model, model.

    Args:
        value: The knob's value.
        methods: Neutral name to the engine's name of each method that it supports.

    Raises:
        BadInput: A field is missing, unknown or of the wrong type, or the engine does not support
            the method.
    """
    for name in value:
        if name not in FIELDS:
            remedy = f"use {', '.join(FIELDS)}, and the engine's own flags for more"
            raise BadInput(f"speculative.{name}", "there is no such field", remedy)
    method, tokens, model = (value.get(name) for name in FIELDS)
    if not isinstance(method, str) or method not in methods:
        raise BadInput(
            "speculative.method", f"unknown method {method!r}", f"use one of {', '.join(methods)}"
        )
    if type(tokens) is not int or tokens < 1:
        raise BadInput(
            "speculative.num_speculative_tokens",
            f"{tokens!r} is not a number of tokens",
            "give 1 or more",
        )
    return Speculation(
        methods[method], tokens, None if model is None else check_word("speculative.model", model)
    )
