"""Flags of the simulator: command-line flags declared as fields of frozen dataclasses."""

import argparse
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from loadgen.errors import BadInput


def setting(
    default: Any,
    text: str,
    *,
    minimum: float | None = None,
    maximum: float = math.inf,
    choices: Sequence[str] = (),
    short: str = "",
) -> Any:
    """Declare a field with its help line, its range or its choices, and a short name of its flag."""
    metadata = {"help": text, "minimum": minimum, "maximum": maximum, "choices": tuple(choices), "short": short}
    return dataclasses.field(default=default, metadata=metadata)


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def check(settings: Any) -> None:
    """Check the fields of a dataclass against their declared ranges and choices.

    Raises:
        BadInput: A number is out of range, or a word is not one of the choices.
    """
    for field in dataclasses.fields(settings):
        value, about = getattr(settings, field.name), field.metadata
        minimum, maximum, choices = about["minimum"], about["maximum"], about["choices"]
        if minimum is not None and not (minimum <= value <= maximum and value < math.inf):
            bounds = f"{minimum} or more" if maximum == math.inf else f"{minimum} to {maximum}"
            raise BadInput(flag(field.name), f"{value} is out of range", f"give {bounds}")
        if choices and value not in choices:
            words = ", ".join(filter(None, choices))
            raise BadInput(flag(field.name), f"unknown value {value!r}", f"use one of {words}")


def add(parser: argparse.ArgumentParser, settings: type, title: str) -> None:
    """Add a flag for every field of a dataclass; the parsed result has only the flags that were given."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(settings):
        names = [flag(field.name), *filter(None, [field.metadata["short"]])]
        text = field.metadata["help"].replace("%", "%%")
        if isinstance(field.default, bool):
            action = argparse.BooleanOptionalAction
            group.add_argument(*names, action=action, default=argparse.SUPPRESS, help=f"{text} ({field.default})")
            continue
        group.add_argument(
            *names,
            type=type(field.default),
            default=argparse.SUPPRESS,
            metavar=type(field.default).__name__.upper(),
            help=f"{text} ({field.default})" if field.default != "" else text,
        )


def given(flags: argparse.Namespace, settings: type) -> dict[str, Any]:
    """Return the fields of a dataclass that were given on the command line."""
    return {field.name: getattr(flags, field.name) for field in dataclasses.fields(settings) if field.name in flags}
