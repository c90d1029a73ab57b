"""Plug-ins: objects that installed packages offer through entry points."""

from functools import cache
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput

if TYPE_CHECKING:
    import importlib.metadata


def find(group: str, name: str) -> Any:
    """Load the entry point of a name: for example an engine, or a launcher.

    Args:
        group: The entry-point group without its leading `loadgen.`: "engines", "launchers".
        name: The name of the entry point.

    Raises:
        BadInput: No installed package offers it.
    """
    entries = _entry_points(group)
    for entry in entries.select(name=name):
        return entry.load()
    known = ", ".join(sorted(entries.names)) or "(none is installed)"
    raise BadInput(f"--{group.rstrip('s')}", f"unknown name {name!r}", f"choose from {known}")


@cache
def _entry_points(group: str) -> "importlib.metadata.EntryPoints":
    """Scan the installed packages. This takes about 10 ms."""
    import importlib.metadata

    return importlib.metadata.entry_points(group=f"loadgen.{group}")
