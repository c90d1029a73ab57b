"""Speculative decoding: the value of the knob `speculative`, parsed for engines that take it as several flags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.engines.kinds.knobs import check_word
from loadgen.errors import BadInput

FIELDS = ("method", "num_speculative_tokens", "model")


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


def parse(value: Mapping[str, Any], methods: Mapping[str, str]) -> Speculation:
    """Parse the knob's value: method, num_speculative_tokens and, for a draft model, model.

    Args:
        value: The knob's value.
        methods: Neutral name to the engine's name of each method that it supports.

    Raises:
        BadInput: A field is missing, unknown or of the wrong type, or the engine does not support the method.
    """
    for name in value:
        if name not in FIELDS:
            remedy = f"use {', '.join(FIELDS)}, and the engine's own flags for more"
            raise BadInput(f"speculative.{name}", "there is no such field", remedy)
    method, tokens, model = (value.get(name) for name in FIELDS)
    if not isinstance(method, str) or method not in methods:
        raise BadInput("speculative.method", f"unknown method {method!r}", f"use one of {', '.join(methods)}")
    if type(tokens) is not int or tokens < 1:
        raise BadInput("speculative.num_speculative_tokens", f"{tokens!r} is not a number of tokens", "give 1 or more")
    return Speculation(methods[method], tokens, None if model is None else check_word("speculative.model", model))
