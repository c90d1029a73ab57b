"""Knobs: what a study may set of a server, in names that are no engine's own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.errors import BadInput

KINDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", dict: "a mapping"}


@dataclass(frozen=True, slots=True)
class Knob:
    """One engine-neutral setting.

    Attributes:
        name: In study files and results.
        kind: int, float, str, bool or dict; a whole number passes for a float.
        help: One line: meaning and unit.
        least: Smallest number.
        most: Largest number.
        choices: The words there are; none: any.
    """

    name: str
    kind: type
    help: str
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """Return `value` as the knob's kind.

        Raises:
            BadInput: It is of another kind, out of range, or a word that a command line would take for something else.
        """
        if self.kind is float and type(value) is int:
            value = float(value)
        if not (type(value) is self.kind or (self.kind is dict and isinstance(value, Mapping))):
            raise BadInput(self.name, f"{value!r} is not {KINDS[self.kind]}", f"give {KINDS[self.kind]}: {self.help}")
        if isinstance(value, int | float) and not (self.least <= value <= self.most):
            bounds = f"{self.least:g} or more" if self.most == math.inf else f"{self.least:g} to {self.most:g}"
            raise BadInput(self.name, f"{value} is out of range", f"give {bounds}")
        if self.choices and value not in self.choices:
            raise BadInput(self.name, f"{value!r} is not known", f"use one of {', '.join(self.choices)}")
        return word(self.name, value) if self.kind is str else value


KNOBS = {
    knob.name: knob
    for knob in (
        Knob("served_name", str, "model name that requests use"),
        Knob("tensor_parallel", int, "accelerators that share each layer", least=1),
        Knob("pipeline_parallel", int, "groups of layers, each on accelerators of its own", least=1),
        Knob("data_parallel", int, "copies of the model, or of its attention, inside one server", least=1),
        Knob("expert_parallel", bool, "experts spread over the accelerators instead of cut across them"),
        Knob("context_len", int, "most tokens of prompt and answer of one request", least=1),
        Knob("max_batched_tokens", int, "most tokens computed in one step", least=1),
        Knob("max_seqs", int, "most requests running at once", least=1),
        Knob("chunked_prefill", bool, "long prompts computed in pieces, between decodes"),
        Knob("prefix_cache", bool, "KV cache of common beginnings kept and used again"),
        Knob("quantization", str, "method of the weights, where the checkpoint does not say it"),
        Knob("kv_dtype", str, "type of the KV cache's elements, in the engine's words"),
        Knob("attention_backend", str, "attention kernels, in the engine's words"),
        Knob("speculative", dict, "speculative decoding: method, num_speculative_tokens, model"),
        Knob("memory_fraction", float, "share of the accelerator's memory, 0 to 1", least=0.01, most=1.0),
        Knob("reasoning_parser", str, "parser that tells reasoning from the answer, in the engine's words"),
        Knob(
            "performance_mode",
            str,
            "preset of the engine's own",
            choices=("balanced", "interactivity", "throughput"),
        ),
    )
}


def word(field: str, value: Any) -> str:
    """Return `value`, a word that every command line takes for a value.

    Raises:
        BadInput: It is empty, no text, has control characters, or begins like a flag.
    """
    if not isinstance(value, str) or not value.isprintable() or not value.strip() or value.startswith("-"):
        raise BadInput(field, f"{value!r} cannot stand on a command line", "give text that does not begin with a dash")
    return value
