"""Plugins: what installed packages offer by a name, so that the core imports none of them."""

import importlib.metadata
from functools import cache
from typing import Any

from loadgen.errors import BadInput


def find(group: str, name: str) -> Any:
    """What is offered under the name: an engine, or who starts it.

    Args:
        group: The entry-point group, without its leading `loadgen.`: "engines", "launchers".
        name: Of the entry.

    Raises:
        BadInput: None offers it.
    """
    entries = _offered(group)
    for entry in entries.select(name=name):
        return entry.load()
    known = ", ".join(sorted(entries.names)) or "none is installed"
    raise BadInput(f"--{group.rstrip('s')}", f"there is none named {name!r}", f"choose from {known}")


@cache
def _offered(group: str) -> importlib.metadata.EntryPoints:
    """Scan the installed packages, which takes some 10 ms."""
    return importlib.metadata.entry_points(group=f"loadgen.{group}")
