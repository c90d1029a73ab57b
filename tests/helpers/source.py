"""The source of the project: its folders, and the modules in them."""

import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = {"loadgen": ROOT / "loadgen", "loadgen.engines": ROOT / "engines"}


@cache
def modules() -> dict[str, Path]:
    """Every Python module of the package: its name, without the leading `loadgen.`, and its
    file.
    """
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


@cache
def lazy_packages() -> frozenset[str]:
    """Packages that are imported only where they are used: slow ones, and those that not
    everybody has.
    """
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"][
        "flake8-tidy-imports"
    ]
    return frozenset(rules["banned-module-level-imports"])
