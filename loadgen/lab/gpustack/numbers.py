"""Numbers of flags and JSON: read, or refused by the name of the flag."""

from typing import Any

from loadgen.errors import BadInput


def number(given: Any, field: str) -> float:
    """Read a number.

    Raises:
        BadInput: It is none.
    """
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(field, f"{given!r} is not a number", "give a number") from error


def whole_number(given: Any, field: str) -> int:
    """Read a whole number.

    Raises:
        BadInput: It is none.
    """
    found = number(given, field)
    if not found.is_integer():
        raise BadInput(field, f"{given!r} is not a whole number", "give a whole number")
    return int(found)
