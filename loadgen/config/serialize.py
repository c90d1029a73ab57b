"""Settings of a run in files and as command lines: read them from a mapping, restore them from JSON, write flags."""

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from loadgen.config.data import FULL_ANSWERS
from loadgen.config.load import SWEPT
from loadgen.config.option import flag, lists, shares, times
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.number_format import parse_number, parse_seconds, parse_share

SECRET = ("api_key", "header")
REMEDY = "see `loadgen run --help-all`"
KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    tuple: "a list of texts",
    dict: "a mapping",
}
TRUE_WORDS = {"yes": True, "on": True, "no": False, "off": False}  # of YAML 1.1


def fields(found: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping from a file to fields of `RunSettings`, with their types.

    Args:
        found: Names, with dashes or underscores, and values.

    Raises:
        BadInput: A key is unknown, or a value has the wrong type; its field is the key.
    """
    read: dict[str, Any] = {}
    for key, value in found.items():
        if (name := _field(key)) in read:
            raise BadInput(str(key), "is given twice, with another spelling", "give it once")
        read[name] = _one_or_several(name, value)
    return read


def _field(key: Any) -> str:
    known = [field.name for field in dataclasses.fields(RunSettings)]
    name = str(key).replace("-", "_").removeprefix("__")
    aliases = {field.metadata["alias"]: field.name for field in dataclasses.fields(RunSettings)}
    name = aliases.get(flag(name), name)
    if name not in known:
        import difflib  # not before: it is slow to import

        remedy = "see `loadgen run --help-all` for the names"
        for near in difflib.get_close_matches(name, known, 1):
            meant = near.replace("_", "-") if "-" in str(key) else near
            remedy = f"did you mean {meant!r}?"
        raise BadInput(str(key), "unknown setting", remedy)
    return name


def _one_or_several(name: str, value: Any) -> Any:
    if name in SWEPT and isinstance(value, list) and value:
        several = tuple(_typed(name, each) for each in value)
        return several if len(several) > 1 else several[0]
    return _typed(name, value)


def _typed(name: str, value: Any) -> Any:
    import msgspec  # used for files alone

    if name == "classes" and isinstance(value, dict):  # `RunSettings` reads them
        return value
    kind = typing.get_type_hints(RunSettings)[name]
    members = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    shown = "" if name in SECRET else f"{value!r}: "
    try:
        if isinstance(value, str) and float in members:
            return _parser_of(name)(value)
    except ValueError as error:
        remedy = "give seconds, for example 30 or 30s" if name in times(RunSettings) else REMEDY
        raise BadInput(name, str(error), remedy) from error
    if isinstance(value, list) and name in lists(RunSettings):
        value = ",".join(map(str, value))
    if isinstance(value, str) and bool in members:
        value = TRUE_WORDS.get(value.lower(), value)
    try:
        return msgspec.convert(_texts(value, members), kind, strict=False)
    except msgspec.ValidationError as error:
        expected = " or ".join(text for member in members if (text := _expected(member)))
        raise BadInput(name, f"{shown}expected {expected}", REMEDY) from error


def _parser_of(name: str) -> Callable[[str], float]:
    if name in times(RunSettings):
        return parse_seconds
    return parse_share if name in shares(RunSettings) else parse_number


def _texts(value: Any, members: tuple[Any, ...]) -> Any:
    """Convert numbers to text where a field takes text, and a text to a list of one where it takes a list of texts.

    A file may hold 3 for "3".
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and str in members and not {int, float} & set(members):
        return str(value)
    if any(typing.get_origin(member) is tuple for member in members):
        if isinstance(value, list | tuple):
            return [_texts(each, (str,)) for each in value]
        return [value] if isinstance(value, str) and str not in members else value
    return value


def _expected(kind: Any) -> str:
    """Describe a type of a field for people; empty for None."""
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(typing.get_args(kind))}"
    return KINDS.get(typing.get_origin(kind) or kind, "")


def restored(shown: Mapping[str, Any]) -> RunSettings:
    """Restore settings from the JSON of `settings.public`, or a part of it. Secrets are missing.

    Raises:
        TypeError, ValueError: The JSON has other keys or values.
    """
    kinds = typing.get_type_hints(RunSettings)

    def value(name: str, stored: Any) -> Any:
        if isinstance(stored, list):
            return tuple(stored)
        return float(stored) if kinds.get(name) is float else stored  # JSON has no infinity: "inf"

    return RunSettings(**{name: value(name, stored) for name, stored in shown.items()})


def flags(settings: RunSettings) -> list[str]:
    """Write the settings as flags of `loadgen run`."""
    url_first = sorted(explicit(settings).items(), key=lambda item: item[0] != "base_url")
    return [word for name, value in url_first for word in _flag(flag(name), value)]


def explicit(settings: RunSettings) -> dict[str, Any]:
    """Return the fields to name in a file: all that differ from the defaults, and the lengths of random prompts."""
    changed = {
        field.name for field in dataclasses.fields(RunSettings) if getattr(settings, field.name) != field.default
    }
    lengths = {"random_input_len", "random_output_len"} if settings.dataset_name in FULL_ANSWERS else set[str]()
    return {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(RunSettings)
        if field.name in changed | lengths
    }


def differences(one: RunSettings, other: RunSettings) -> dict[str, Any]:
    """Return the fields in which `other` differs from `one`, with the values of `other`."""
    each = (field.name for field in dataclasses.fields(RunSettings))
    return {name: getattr(other, name) for name in each if getattr(other, name) != getattr(one, name)}


def _flag(name: str, value: Any) -> list[str]:
    if value is True:
        return [name]
    if value is False:  # of a flag whose default is neither true nor false
        return [f"--no-{name[2:]}"]
    if name == flag("base_url"):
        return [word for url in ((value,) if isinstance(value, str) else value) for word in (name, url)]
    if isinstance(value, dict):
        return [name, json.dumps(value)]
    if isinstance(value, tuple):
        return [name, *map(str, value)]
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
