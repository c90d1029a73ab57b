"""Types of the fields of settings, and of arguments: whether values have the declared ones."""

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from loadgen.errors import BadInput

EXPECTED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    tuple: "a tuple of texts",
    NoneType: "None",
}
HOLDS: dict[Any, Callable[[Any], bool]] = {
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool),
    dict: lambda value: True,  # the JSON of a flag may be anything, which `validate` refuses
    tuple: lambda value: isinstance(value, tuple | list) and all(isinstance(each, str) for each in value),
}


def check_types(settings: Any) -> None:
    """Check the type of each field of a settings dataclass. Choices and ranges are checked elsewhere.

    Raises:
        BadInput: A value has another type. Its field is the name of the field: no flag or file gives such a value.
    """
    for name, kinds in _members(settings.__class__).items():
        value = getattr(settings, name)
        if not any(_holds(kind, value) for kind in kinds):
            expected = " or ".join(EXPECTED[kind] for kind in kinds)
            raise BadInput(name, f"is a value of type {type(value).__name__}", f"give {expected}")


def check_type(name: str, value: object, kind: type | UnionType, remedy: str) -> None:
    """Check the type of an argument of a function.

    Args:
        kind: The types that it may have, protocols that can be checked at run time among them.

    Raises:
        BadInput: It has another type.
    """
    if not isinstance(value, kind):
        raise BadInput(name, f"is a value of type {type(value).__name__}", remedy)


def _holds(kind: Any, value: Any) -> bool:
    return HOLDS[kind](value) if kind in HOLDS else isinstance(value, kind)


@cache
def _members(settings: type) -> dict[str, tuple[Any, ...]]:
    """Return the plain types of each field: a choice is a text, `dict[str, Any]` a dict."""
    return {name: tuple(dict.fromkeys(_plain(kind))) for name, kind in get_type_hints(settings).items()}


def _plain(kind: Any) -> list[Any]:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return [plain for member in get_args(kind) for plain in _plain(member)]
    return [str] if origin is Literal else [origin or kind]
