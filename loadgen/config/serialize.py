"""Written: settings of a run as files and command lines say them.

Names have dashes or none, values nearly the right type; and all of them as flags again.
"""

import dataclasses
import difflib
import json
import typing
from collections.abc import Mapping
from typing import Any

from loadgen.config.option import flag, times
from loadgen.config.settings import SWEPT, RunSettings
from loadgen.errors import BadInput
from loadgen.util.number_format import parse_number, parse_seconds

SECRET = ("api_key", "header")


def fields(found: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of `RunSettings` that a mapping out of a file sets, with their types as far as they can be had.

    Raises:
        BadInput: A key is none, or its value is of another type; its field is the key.
    """
    return {(name := _field(key)): _one_or_several(name, value) for key, value in found.items()}


def _field(key: Any) -> str:
    known = [field.name for field in dataclasses.fields(RunSettings)]
    name = str(key).replace("-", "_").removeprefix("__")
    name = {"rate": "request_rate"}.get(name, name)
    if name not in known:
        remedy = "see `loadgen run --help` for the names"
        for near in difflib.get_close_matches(name, known, 1):
            meant = near.replace("_", "-") if "-" in str(key) else near
            remedy = f"did you mean {meant!r}?"
        raise BadInput(str(key), "is no setting of a run", remedy)
    return name


def _one_or_several(name: str, value: Any) -> Any:
    several = name in SWEPT and isinstance(value, list) and len(value) > 1
    return tuple(_typed(name, each) for each in value) if several else _typed(name, value)


def _typed(name: str, value: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    kind = typing.get_type_hints(RunSettings)[name]
    try:
        if isinstance(value, str) and float in (kind, *typing.get_args(kind)):
            return parse_seconds(value) if name in times(RunSettings) else parse_number(value)
    except ValueError as error:
        raise BadInput(name, str(error), "see `loadgen run --help` for what it takes") from error
    try:
        return TypeAdapter(kind, config=ConfigDict(coerce_numbers_to_str=True)).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        shown = "" if name in SECRET else f"{value!r}: "
        problem = f"{shown}{message[:1].lower()}{message[1:]}"
        raise BadInput(name, problem, "see `loadgen run --help` for what it takes") from error


def restored(shown: Mapping[str, Any]) -> RunSettings:
    """The settings of which `settings.public` made all or some of `shown`; secrets are not in it.

    Raises:
        TypeError, ValueError: It made something else.
    """
    kinds = typing.get_type_hints(RunSettings)

    def value(name: str, told: Any) -> Any:
        if isinstance(told, list):
            return tuple(told)
        return float(told) if kinds.get(name) is float else told  # JSON has no infinity: "inf"

    return RunSettings(**{name: value(name, told) for name, told in shown.items()})


def flags(settings: RunSettings) -> list[str]:
    """The settings as flags of `loadgen run`."""
    who_first = sorted(said(settings).items(), key=lambda item: item[0] != "base_url")
    return [word for name, value in who_first for word in _flag(flag(name), value)]


def said(settings: RunSettings) -> dict[str, Any]:
    """The settings that one has to name: all that differ from the defaults, and how long random prompts are."""
    named = {field.name for field in dataclasses.fields(RunSettings) if getattr(settings, field.name) != field.default}
    lengths = {"random_input_len", "random_output_len"} if settings.dataset_name == "random" else set[str]()
    return {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(RunSettings)
        if field.name in named | lengths
    }


def _flag(name: str, value: Any) -> list[str]:
    if value is True:
        return [name]
    if value is False:  # of one that may also be left open
        return [f"--no-{name[2:]}"]
    if name == flag("base_url"):
        return [word for url in ((value,) if isinstance(value, str) else value) for word in (name, url)]
    if isinstance(value, dict):
        return [name, json.dumps(value)]
    if isinstance(value, tuple):
        return [name, *map(str, value)]
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
