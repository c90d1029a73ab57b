"""Cache: prompts that are kept from run to run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept: its name, its size in bytes, and when it was made and last used, seconds since the epoch."""

    name: str
    bytes: int
    made: float
    used: float


def folder() -> Path:
    """Where they are."""
    return Path.home() / ".cache" / "loadgen" / "datasets"


def entries() -> list[Entry]:
    """All that is kept."""
    return []


def clear() -> None:
    """Remove it."""
