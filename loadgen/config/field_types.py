"""Types of the fields of settings, and of arguments: what they are, and whether values have them."""

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


@cache
def members(settings: type) -> dict[str, tuple[Any, ...]]:
    """Return the types that each field may have, as declared: int and NoneType for `int | None`."""
    hints = get_type_hints(settings).items()
    return {name: get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,) for name, kind in hints}


@cache
def classes(settings: type) -> dict[str, tuple[Any, ...]]:
    """Return the classes that the values of each field may have: of a choice str, of `dict[str, Any]` dict."""
    return {name: tuple(dict.fromkeys(map(_class_of, kinds))) for name, kinds in members(settings).items()}


def choices(kinds: tuple[Any, ...]) -> list[str]:
    """Return the values of a field that is a choice among texts, else nothing."""
    return [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]


def check_types(settings: Any) -> None:
    """Check the type of each field of a settings dataclass. Choices and ranges are checked elsewhere.

    Raises:
        BadInput: A value has another type. Its field is the name of the field: no flag or file gives such a value.
    """
    for name, kinds in classes(settings.__class__).items():
        value = getattr(settings, name)
        if not any(HOLDS[kind](value) if kind in HOLDS else isinstance(value, kind) for kind in kinds):
            expected = " or ".join(EXPECTED[kind] for kind in kinds)
            raise BadInput(name, f"is a value of type {type(value).__name__}", f"give {expected}")


def check_type(name: str, value: object, kind: type | UnionType, remedy: str) -> None:
    """Check the type of an argument of a function.

    Args:
        name: The argument.
        value: Its value.
        kind: The types that it may have, protocols that can be checked at run time among them.
        remedy: What to give.

    Raises:
        BadInput: It has another type.
    """
    if not isinstance(value, kind):
        raise BadInput(name, f"is a value of type {type(value).__name__}", remedy)


def _class_of(kind: Any) -> Any:
    origin = get_origin(kind)
    return str if origin is Literal else origin or kind
