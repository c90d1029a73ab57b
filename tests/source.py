"""The source of the project: its folders, and the modules in them."""

from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = {"loadgen": ROOT / "loadgen", "loadgen.engines": ROOT / "engines", "loadgen.bench": ROOT / "bench"}


@cache
def modules() -> dict[str, Path]:
    """Every Python module of the package: its name, without the leading `loadgen.`, and its file."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = [*package.split(".")[1:], *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(part for part in parts if part != "__init__")
            if name and name != "__init__":
                found[name] = path
    return found


def compiled() -> list[tuple[str, ...]]:
    """The parts of the name of every compiled module."""
    return [
        (*package.split("."), *path.relative_to(folder).with_suffix("").parts)
        for package, folder in FOLDERS.items()
        for path in folder.rglob("*.pyx")
    ]
