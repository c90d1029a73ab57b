"""Speculative decoding: what the knob `speculative` holds, read for engines that say it in several words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.engines.knobs import word
from loadgen.errors import BadInput

FIELDS = ("method", "num_speculative_tokens", "model")


@dataclass(frozen=True, slots=True)
class Speculation:
    """A draft of so many tokens a step.

    Attributes:
        method: As the engine calls it.
        tokens: Drafted in each step.
        model: That drafts; None: the model itself, or its prompt.
    """

    method: str
    tokens: int
    model: str | None


def read(value: Mapping[str, Any], methods: Mapping[str, str]) -> Speculation:
    """Read the knob's value: method, num_speculative_tokens and, where one drafts, model.

    Args:
        value: As given.
        methods: Neutral name to the engine's name of what it can do.

    Raises:
        BadInput: A field is missing, unknown or of the wrong kind, or the engine does not have the method.
    """
    for name in value:
        if name not in FIELDS:
            remedy = f"use {', '.join(FIELDS)}, and the engine's own flags for more"
            raise BadInput(f"speculative.{name}", "there is no such field", remedy)
    method, tokens, model = (value.get(name) for name in FIELDS)
    if not isinstance(method, str) or method not in methods:
        raise BadInput("speculative.method", f"{method!r} is not known here", f"use one of {', '.join(methods)}")
    if type(tokens) is not int or tokens < 1:
        raise BadInput("speculative.num_speculative_tokens", f"{tokens!r} is not a number of tokens", "give 1 or more")
    return Speculation(methods[method], tokens, None if model is None else word("speculative.model", model))
