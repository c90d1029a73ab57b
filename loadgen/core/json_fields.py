"""Typed members of JSON objects: a missing member or null is empty, and one of another type is a
ValueError.
"""

import json
from typing import Any

import orjson

MAX_TOKENS = 10**9  # a larger count for one answer is an error of the server


def text_of(holder: dict[str, Any], key: str) -> str:
    """Return a string; empty if it is missing."""
    return str(_typed(holder, key, str, ""))


def word_of(holder: dict[str, Any], key: str) -> str | None:
    """Return a string in which half a surrogate pair has become `?`; None if it is missing or
    empty.
    """
    return text_of(holder, key).encode(errors="replace").decode() or None


def items_of(holder: dict[str, Any], key: str) -> list[Any]:
    """Return a list; empty if it is missing."""
    return list(_typed(holder, key, list, []))


def object_of(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object; empty if it is missing."""
    return dict(_typed(holder, key, dict, {}))


def count_of(holder: dict[str, Any], key: str) -> int:
    """Return a count of tokens; -1 if it is missing. Some gateways write it as a float."""
    value = holder.get(key)
    if isinstance(value, float) and value.is_integer():
        holder = {key: int(value)}
    count = int(_typed(holder, key, int, -1))
    if key in holder and holder[key] is not None and not 0 <= count <= MAX_TOKENS:
        raise ValueError(f"{key} is {count}")
    return count


def to_json(value: Any) -> str:
    """Return parsed JSON as text again."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return json.dumps(value)


def _typed(holder: dict[str, Any], key: str, kind: type, empty: Any) -> Any:
    value = holder.get(key)
    if value is None:
        return empty
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key} is no {kind.__name__}")
    return value
