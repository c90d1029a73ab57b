"""Flags of the simulator, declared as the fields of frozen dataclasses."""

import argparse
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from loadgen.errors import BadInput


def knob(
    default: Any,
    text: str,
    *,
    least: float | None = None,
    most: float = math.inf,
    choices: Sequence[str] = (),
    short: str = "",
) -> Any:
    """Declare a field with its help line, its range or its words, and another name of its flag."""
    about = {"help": text, "least": least, "most": most, "choices": tuple(choices), "short": short}
    return dataclasses.field(default=default, metadata=about)


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def check(knobs: Any) -> None:
    """Hold the fields of a dataclass to what they were declared with.

    Raises:
        BadInput: A number is out of range, or a word is not known.
    """
    for field in dataclasses.fields(knobs):
        value, about = getattr(knobs, field.name), field.metadata
        least, most, choices = about["least"], about["most"], about["choices"]
        if least is not None and not (least <= value <= most and value < math.inf):
            bounds = f"{least} or more" if most == math.inf else f"{least} to {most}"
            raise BadInput(flag(field.name), f"{value} is not a usable value", f"give {bounds}")
        if choices and value not in choices:
            words = ", ".join(filter(None, choices))
            raise BadInput(flag(field.name), f"{value!r} is not a usable value", f"use one of {words}")


def add(parser: argparse.ArgumentParser, knobs: type, title: str) -> None:
    """Give `parser` a flag for every field of a dataclass; what is not given will not stand in what it returns."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(knobs):
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


def given(flags: argparse.Namespace, knobs: type) -> dict[str, Any]:
    """Return the fields of a dataclass that were given on the command line."""
    return {field.name: getattr(flags, field.name) for field in dataclasses.fields(knobs) if field.name in flags}
