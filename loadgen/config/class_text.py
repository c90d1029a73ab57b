"""The text of `--class`: NAME:KEY=VALUE,KEY=VALUE, such as `chat:share=0.8,priority=0,random_input_len=200`.

A part without `KEY=` belongs to the value before it, or is another header. A key with several values is repeated.
"""

import re
from collections.abc import Mapping
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.redaction import HEADER_NAME, MARK, header_name

CLASS = "--class"
FORM = "write NAME:KEY=VALUE,KEY=VALUE, such as chat:share=0.8,priority=0,random_input_len=200"
ALIASES = {"headers": "header", "dataset": "dataset_name"}
_NAME = re.compile(r"[\w.@/+-]{1,64}")
_HEADER = re.compile(rf"\s*{HEADER_NAME.pattern}=")  # with a capital letter: else it is a key
_PAIR = re.compile(r"\s*([a-z][a-z_-]*)\s*=(.*)", re.DOTALL)


def name_of(text: str) -> str:
    """Return the name of a class.

    Raises:
        BadInput: It has none, or one with other characters.
    """
    name, colon, _ = text.partition(":")
    if not colon or not _NAME.fullmatch(name.strip()):
        shown = re.split("[:=]", text)[0]  # the rest may be a secret
        raise BadInput(CLASS, f"{shown!r} is not a name of letters and digits before a colon", FORM)
    return name.strip()


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the keys and values of a class, in their order.

    Raises:
        BadInput: The first part has no key.
    """
    name, _, rest = text.partition(":")
    found: list[tuple[str, str]] = []
    for part in rest.split(",") if rest.strip() else ():
        if pair := _PAIR.fullmatch(part):
            found.append((_key(pair[1]), pair[2].strip()))
        elif found and found[-1][0] == "header" and _HEADER.match(part):
            found.append(("header", part.strip()))
        elif found:
            key, value = found.pop()
            found.append((key, f"{value},{part}"))
        else:
            raise BadInput(CLASS, f"{name}: {part.partition('=')[0].strip()!r} does not begin with KEY=", FORM)
    return found


def texts_of(classes: Mapping[Any, Any]) -> tuple[str, ...]:
    """Write classes that a file or a program gives as mappings of keys by name.

    Raises:
        BadInput: A class is no mapping, or a value of one cannot be written.
    """
    return tuple(_text(str(name), keys) for name, keys in classes.items())


def redacted(text: str) -> str:
    """Return a class without the values of its headers."""
    return _written(
        text.partition(":")[0],
        [(key, f"{header_name(value)}={MARK}" if key == "header" else value) for key, value in pairs(text)],
    )


def _text(name: str, keys: Any) -> str:
    if not isinstance(keys, Mapping):
        raise BadInput(CLASS, f"{name}: expected keys with values, such as share: 0.8", "write them below the name")
    several = {key: value if isinstance(value, list | tuple) else (value,) for key, value in keys.items()}
    given = [(_key(key), _value(each)) for key, values in several.items() for each in values]
    text = _written(name, given)
    if pairs(text) != given:
        raise BadInput(CLASS, f"{name}: a value has a comma before a word and =", "write it without the comma")
    return text


def _key(key: Any) -> str:
    name = str(key).replace("-", "_")
    return ALIASES.get(name, name)


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _written(name: str, given: list[tuple[str, str]]) -> str:
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in given)
