"""Fields of the typed result: the conversion of a tree to JSON values and back."""

# The text in the annotation of a field describes it in the JSON Schema and in docs/result.md;
# without one, the docstring of its class does.

from operator import methodcaller
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
# Of a type whose JSON is not a mapping of its fields, as a Distribution.
_to_dict = methodcaller("to_dict")


def to_json_values(part: object) -> Any:
    """Convert a part of a result to dicts, lists and scalars."""
    return msgspec.to_builtins(part, enc_hook=_to_dict)


def from_json_values(values: object, kind: type[T]) -> T:
    """Convert dicts, lists, scalars, and objects with the attributes of the type, to a part of a
    result.

    Args:
        values: As `to_json_values` returns them, or as they were read from a file. Unknown keys are
            ignored.
        kind: The type of the part.

    Raises:
        ValueError: A field is missing, or has a value of another type.
    """
    try:
        return msgspec.convert(
            values, kind, dec_hook=lambda field, value: field.from_dict(value), from_attributes=True
        )
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
