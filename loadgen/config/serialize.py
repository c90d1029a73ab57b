"""Settings of a run in files and as command lines: read them from a mapping, restore them from
JSON, write flags.
"""

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from loadgen.config.data import FULL_ANSWERS
from loadgen.config.load import SWEPT
from loadgen.config.option import flag, options
from loadgen.config.settings import RunSettings
from loadgen.config.target import BALANCE
from loadgen.errors import BadInput, setting, written_as


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
        with written_as({setting(name): (str(key),)}):
            if name in SWEPT and isinstance(value, list) and value:
                several = tuple(_typed(name, item) for item in value)
                values[name] = several if len(several) > 1 else several[0]
            else:
                values[name] = _typed(name, value)
    return values


def _field(key: Any) -> str:
    declared = options(RunSettings)
    name = str(key).replace("-", "_").removeprefix("__")
    aliases = {option.alias: option.name for option in declared.values()}
    name = aliases.get(flag(name), name)
    if name not in declared:
        import difflib  # not before: it is slow to import

        remedy = "see `loadgen help run` for the names"
        for near in difflib.get_close_matches(name, declared, 1):
            meant = near.replace("_", "-") if "-" in str(key) else near
            remedy = f"did you mean {meant!r}?"
        raise BadInput(str(key), "unknown setting", remedy)
    return name


def _typed(name: str, value: Any) -> Any:
    if name == "classes" and isinstance(value, dict):  # `RunSettings` reads them
        return value
    option = options(RunSettings)[name]
    converted = option.of_file(value)
    option.check_type(converted)
    option.check(converted)
    return converted


def restored(shown: Mapping[str, Any]) -> RunSettings:
    """Restore settings from the JSON of `settings.public`, or a part of it. Secrets are missing.

    Raises:
        TypeError, ValueError: The JSON has other keys or values.
    """
    return _restored(json.dumps(shown))


@functools.lru_cache(maxsize=1)  # the records and the result of a run have the same
def _restored(text: str) -> RunSettings:
    declared = options(RunSettings)
    values = json.loads(text)
    for name, stored in values.items():
        if isinstance(stored, list):
            values[name] = tuple(stored)
        elif declared[name].type is float:  # JSON has no infinity: "inf"
            values[name] = float(stored)
    return RunSettings(**values)


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
