"""Settings of a run in files and as command lines: read them from a mapping, restore them from
JSON, write flags.
"""

import dataclasses
import json
from collections.abc import Mapping
from types import NoneType
from typing import Any

from loadgen.config.data import FULL_ANSWERS
from loadgen.config.load import SWEPT
from loadgen.config.option import (
    EXPECTED,
    choices,
    classes,
    flag,
    lists,
    members,
    shares,
    times,
    types,
)
from loadgen.config.settings import RunSettings
from loadgen.config.target import BALANCE
from loadgen.errors import BadInput
from loadgen.util.number_format import parse_number, parse_seconds, parse_share

SECRET = ("api_key", "api_key_command", "header", "proxy")
REMEDY = "see `loadgen help run`"
IN_FILES: dict[Any, str] = EXPECTED | {
    bool: "true or false",
    tuple: "a list of texts",
    dict: "a mapping",
    NoneType: "",
}
TRUE_WORDS = {"yes": True, "on": True, "no": False, "off": False}  # of YAML 1.1


def fields(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping from a file to fields of `RunSettings`, with their types.

    Args:
        mapping: Names, with dashes or underscores, and values.

    Returns:
        Values by the names of their fields.

    Raises:
        BadInput: A key is unknown, or a value has the wrong type; its field is the key.
    """
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if (name := _field(key)) in values:
            raise BadInput(str(key), "is given twice, with another spelling", "give it once")
        if name in SWEPT and isinstance(value, list) and value:
            several = tuple(_typed(name, item) for item in value)
            values[name] = several if len(several) > 1 else several[0]
        else:
            values[name] = _typed(name, value)
    return values


def _field(key: Any) -> str:
    names = [field.name for field in dataclasses.fields(RunSettings)]
    name = str(key).replace("-", "_").removeprefix("__")
    aliases = {field.metadata["alias"]: field.name for field in dataclasses.fields(RunSettings)}
    name = aliases.get(flag(name), name)
    if name not in names:
        import difflib  # not before: it is slow to import

        remedy = "see `loadgen help run` for the names"
        for near in difflib.get_close_matches(name, names, 1):
            meant = near.replace("_", "-") if "-" in str(key) else near
            remedy = f"did you mean {meant!r}?"
        raise BadInput(str(key), "unknown setting", remedy)
    return name


def _typed(name: str, value: Any) -> Any:
    import msgspec  # used for files alone

    if name == "classes" and isinstance(value, dict):  # `RunSettings` reads them
        return value
    kind, kinds = types(RunSettings)[name], classes(RunSettings)[name]
    shown = "" if name in SECRET else f"{value!r}: "
    try:
        if isinstance(value, str) and float in kinds:
            if name in times(RunSettings):
                return parse_seconds(value)
            return parse_share(value) if name in shares(RunSettings) else parse_number(value)
    except ValueError as error:
        remedy = "give seconds, for example 30 or 30s" if name in times(RunSettings) else REMEDY
        raise BadInput(name, str(error), remedy) from error
    if isinstance(value, list) and name in lists(RunSettings):
        value = ",".join(map(str, value))
    if isinstance(value, str) and bool in kinds:
        value = TRUE_WORDS.get(value.lower(), value)
    try:
        return msgspec.convert(_texts(value, kinds), kind, strict=False)
    except msgspec.ValidationError as error:
        allowed = choices(members(RunSettings)[name])
        expected = (
            f"one of {', '.join(allowed)}"
            if allowed
            else " or ".join(filter(None, map(IN_FILES.get, kinds)))
        )
        raise BadInput(name, f"{shown}expected {expected}", REMEDY) from error


def _texts(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Convert numbers to text where a field takes text, and a text to a list of one where it takes
    a list of texts.

    A file may hold 3 for "3".
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and str in kinds and not {int, float} & set(kinds):
        return str(value)
    if tuple in kinds:
        if isinstance(value, list | tuple):
            return [_texts(item, (str,)) for item in value]
        return [value] if isinstance(value, str) and str not in kinds else value
    return value


def restored(shown: Mapping[str, Any]) -> RunSettings:
    """Restore settings from the JSON of `settings.public`, or a part of it. Secrets are missing.

    Raises:
        TypeError, ValueError: The JSON has other keys or values.
    """
    kinds = types(RunSettings)

    def value(name: str, stored: Any) -> Any:
        if isinstance(stored, list):
            return tuple(stored)
        return float(stored) if kinds.get(name) is float else stored  # JSON has no infinity: "inf"

    return RunSettings(**{name: value(name, stored) for name, stored in shown.items()})


def flags(settings: RunSettings) -> list[str]:
    """Write the settings as flags of `loadgen run`."""
    if len(settings.urls) > 1:
        settings = settings.replace(balance=settings.balance or BALANCE)
    url_first = sorted(explicit(settings).items(), key=lambda item: item[0] != "base_url")
    return [word for name, value in url_first for word in _flag(flag(name), value)]


def explicit(settings: RunSettings) -> dict[str, Any]:
    """Return the fields to name in a file: all that differ from the defaults, and the lengths of
    random prompts.
    """
    lengths = (
        {"random_input_len", "random_output_len"}
        if settings.dataset_name in FULL_ANSWERS
        else set[str]()
    )
    return {
        field.name: value
        for field in dataclasses.fields(RunSettings)
        if (value := getattr(settings, field.name)) != field.default or field.name in lengths
    }


def differences(settings: RunSettings, other: RunSettings) -> dict[str, Any]:
    """Return the fields in which `other` differs from `settings`, with the values of `other`."""
    names = (field.name for field in dataclasses.fields(RunSettings))
    return {
        name: getattr(other, name)
        for name in names
        if getattr(other, name) != getattr(settings, name)
    }


def _flag(name: str, value: Any) -> list[str]:
    if value is True:
        return [name]
    if value is False:  # of a flag whose default is neither true nor false
        return [f"--no-{name[2:]}"]
    if name == flag("base_url"):
        return [
            word for url in ((value,) if isinstance(value, str) else value) for word in (name, url)
        ]
    if isinstance(value, dict):
        return [name, json.dumps(value)]
    if isinstance(value, tuple):
        return [name, *map(str, value)]
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
