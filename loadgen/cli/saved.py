"""Saved: results as they are read from files, of a run or of the records that it has left."""

import contextlib
from collections.abc import Iterator
from typing import Any

from loadgen.errors import BadInput


def results(path: str) -> list[dict[str, Any]]:
    """All that a file holds; one of records holds one.

    Raises:
        BadInput: It cannot be read, or holds neither.
    """
    from loadgen.records import RecordFile

    if RecordFile.is_one(path):
        from loadgen.results import from_records

        return [from_records(path).data]
    from loadgen.report import load

    return load(path)


@contextlib.contextmanager
def whole(path: str) -> Iterator[None]:
    """Refuse, in the block, a result in which something is missing that it would have had as it was saved."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{path} is no whole result of loadgen ({type(error).__name__}: {error})"
        raise BadInput("FILE", problem, "name a result as it was saved") from error
