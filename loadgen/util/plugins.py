"""Plug-ins: objects that installed packages offer through entry points, and built-in ones named in the same way."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


def find(group: str, name: str) -> Any:
    """Load the entry point of a name: for example an engine, or a launcher.

    Args:
        group: The entry-point group without its leading `loadgen.`: "engines", "launchers".
        name: The name of the entry point.

    Raises:
        BadInput: No installed package offers it, or it cannot be imported.
    """
    entries, field = installed(f"loadgen.{group}"), f"--{group.rstrip('s')}"
    if name not in entries.names:
        known = ", ".join(sorted(entries.names)) or "(none is installed)"
        raise BadInput(field, f"unknown name {name!r}", f"choose from {known}")
    return load(field, entries[name])


def load(field: str, entry: "EntryPoint") -> Any:
    """Load what an entry point names.

    Raises:
        BadInput: It cannot be imported; `field` is the flag that names it.
    """
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        problem = f"{entry.name!r} cannot be loaded ({error})"
        raise BadInput(field, problem, "repair the package that adds it") from error


def built_in(place: str) -> Any:
    """Load an object of loadgen by its place, "module:attribute", without a scan of the installed packages."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def installed(group: str) -> "EntryPoints":
    """Scan the installed packages for the entry points of a whole group's name. This takes about 10 ms."""
    from importlib.metadata import entry_points

    return entry_points(group=group)
