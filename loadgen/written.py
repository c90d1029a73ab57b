"""Written: settings of a run as files say them: names with dashes or without, values of nearly the right type."""

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from typing import Any

from loadgen.errors import BadInput
from loadgen.settings import SWEPT, RunSettings

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
        near = difflib.get_close_matches(name, known, 1)
        remedy = f"did you mean {near[0]!r}?" if near else "see `loadgen run --help` for the names"
        raise BadInput(str(key), "is no setting of a run", remedy)
    return name


def _one_or_several(name: str, value: Any) -> Any:
    several = name in SWEPT and isinstance(value, list) and len(value) > 1
    return tuple(_typed(name, each) for each in value) if several else _typed(name, value)


def _typed(name: str, value: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    kind = typing.get_type_hints(RunSettings)[name]
    try:
        return TypeAdapter(kind, config=ConfigDict(coerce_numbers_to_str=True)).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        shown = "" if name in SECRET else f"{value!r}: "
        problem = f"{shown}{message[:1].lower()}{message[1:]}"
        raise BadInput(name, problem, "see `loadgen run --help` for what it takes") from error
