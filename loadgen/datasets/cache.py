"""Cache: prompts that were made before."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of one data set: its file, name, number of prompts, size, and when it was last used (epoch)."""

    path: Path
    dataset: str
    prompts: int
    bytes: int
    used_s: float


def folder() -> Path:
    """Where they are."""
    return Path.home() / ".cache" / "loadgen" / "datasets"


def entries() -> list[Entry]:
    """All that is kept, the last used first."""
    return []


def clear() -> None:
    """Remove it."""
