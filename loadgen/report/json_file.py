"""JSON files of results and series: one object, or one in each line; what a terminal might obey
is escaped.
"""

import re
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.report.result import SCHEMA, RunResult
from loadgen.report.result.series import Series
from loadgen.report.series import is_series
from loadgen.util import files
from loadgen.util.files import write_atomic

NOT_ASCII = re.compile("[^ -~]")


def load(path: str) -> list[dict[str, Any]]:
    """Read a saved result, or the several that --append-result has put into one file.

    Raises:
        BadInput: It cannot be read, or is no result of loadgen.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(
            (),
            f"{path}: {error.strerror}",
            "name a result that `loadgen run --save-result` wrote",
        ) from error
    whole = _json(text)
    results = [(path, whole)]
    if whole is None:  # not one object: one in each line
        lines = [
            (f"{path}: line {number}", _json(line))
            for number, line in enumerate(text.splitlines(), 1)
            if line
        ]
        results = lines if len(lines) > 1 else results
    for where, result in results:
        try:
            is_complete = is_series(result) or result["loadgen"]["schema"] == SCHEMA
        except (KeyError, TypeError):
            is_complete = False
        if not is_complete:
            raise BadInput(
                (),
                f"{where} is not a loadgen result, or not a whole one",
                "name a result that `loadgen run --save-result` wrote, or a file of records",
            )
    return [result for _, result in results]


def from_dict(data: dict[str, Any]) -> RunResult | Series:
    """Convert what `load` returns to its type.

    Raises:
        KeyError, TypeError, ValueError: It is not whole.
    """
    return Series.from_dict(data) if is_series(data) else RunResult.from_dict(data)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def write_json(path: str | Path, data: dict[str, Any], *, private: bool = False) -> None:
    """Write a result to a file, which is complete or not written at all.

    Args:
        path: The file.
        data: The result.
        private: Whether only the owner may read the file.

    Raises:
        BadInput: It cannot be written.
    """
    try:
        write_atomic(Path(path), to_json(data) + "\n", files.private_opener if private else None)
    except OSError as error:
        raise BadInput(
            (), f"{path} cannot be written ({error.strerror})", "name another"
        ) from error


def to_json(data: dict[str, Any]) -> str:
    """Write a result as one line of JSON, with escapes for what a terminal might obey."""
    return NOT_ASCII.sub(_escape, orjson.dumps(data).decode())


def _escape(match: re.Match[str]) -> str:
    c = match.group()
    return (
        c
        if c.isprintable()
        else "".join(f"\\u{unit:04x}" for unit in memoryview(c.encode("utf-16-le")).cast("H"))
    )
