"""Reads back what a run has written of its requests."""

from pathlib import Path
from typing import Any

import orjson


def recorded(path: Path) -> list[dict[str, Any]]:
    """The records of a run in the order of its schedule; `due` counts from the run's start, all else from due."""
    lines = (orjson.loads(line) for line in path.read_bytes().splitlines())
    return sorted((line for line in lines if "index" in line), key=lambda record: int(record["index"]))
