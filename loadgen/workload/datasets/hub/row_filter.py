"""`--hf-where`: conditions on the columns of the records that are used."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadgen.errors import BadInput

FLAG = "--hf-where"
CONDITION = re.compile(r"([^<>=]+)(<=|>=|=)(.+)", re.DOTALL)
COMPARE: Mapping[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}

Keeps = Callable[[Mapping[str, Any]], bool]


def row_filter(conditions: Sequence[str]) -> Keeps:
    """Return whether a record meets all conditions, as a function.

    Args:
        conditions: Each `COLUMN=TEXT`, `COLUMN<=NUMBER` or `COLUMN>=NUMBER`.

    Raises:
        BadInput: A condition has another form. The function raises it for a record without the column.
    """
    tests = [_test(condition) for condition in conditions]
    return lambda record: all(test(record) for test in tests)


def _test(condition: str) -> Keeps:
    found = CONDITION.fullmatch(condition)
    remedy = "write COLUMN=TEXT, COLUMN<=NUMBER or COLUMN>=NUMBER"
    if found is None:
        raise BadInput(FLAG, f"{condition!r} is not a condition", remedy)
    column, sign, wanted = found.groups()

    def value(record: Mapping[str, Any]) -> Any:
        if column not in record:
            raise BadInput(FLAG, f"unknown column {column!r}", f"choose from {', '.join(record)}")
        return record[column]

    if sign == "=":
        return lambda record: str(value(record)) == wanted
    try:
        bound = float(wanted)
    except ValueError as error:
        raise BadInput(FLAG, f"{wanted!r} in {condition!r} is not a number", remedy) from error

    def holds(record: Mapping[str, Any]) -> bool:
        try:
            return COMPARE[sign](float(value(record)), bound)
        except (TypeError, ValueError) as error:
            raise BadInput(FLAG, f"{record[column]!r} in {column!r} is not a number", remedy) from error

    return holds
