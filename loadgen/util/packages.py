"""Installed packages: optional ones, their versions, and plug-ins that they offer through entry
points.

Objects of loadgen itself are named in the same way as those of plug-ins.
"""

import os
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadgen.errors import BadInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

SUFFIX = ".dist-info"  # of the metadata folder of a package


def require(field: str, purpose: str, *packages: str, otherwise: str | None = None) -> None:
    """Import optional packages, or raise an error with the command that installs the missing ones.

    Args:
        field: The flag or key that needs them.
        purpose: The use that needs them, such as "reading model.gguf".
        packages: Their names on the package index, which are those of modules with - for a dot.
        otherwise: An alternative to installing them.

    Raises:
        BadInput: A package cannot be imported.
    """
    errors: dict[str, ImportError] = {}
    for name in packages:
        try:
            import_module(name.replace("-", "."))
        except ImportError as error:
            errors[name] = error
    if errors:
        remedy = f"pip install {' '.join(errors)}" + (f", or {otherwise}" if otherwise else "")
        noun = "package" if len(errors) == 1 else "packages"
        problem = f"{purpose} needs the {noun} {' and '.join(errors)}"
        raise BadInput(field, problem, remedy) from next(iter(errors.values()))


def package_version(package: str) -> str | None:
    """Return the version of an installed package, by the name of its metadata folder: to read it
    takes far longer.

    Args:
        package: Its name, as its metadata folder spells it: with _ for -.

    Returns:
        The version; None if the package is not installed.
    """
    return _versions().get(package)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the installed packages; the first folder of `sys.path` counts."""
    versions: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):
            if name.endswith(SUFFIX):
                package, _, version = name.removesuffix(SUFFIX).partition("-")
                versions.setdefault(package.lower(), version)
    return versions


def find(group: str, name: str) -> Any:
    """Load the entry point of a name: for example an engine, or a launcher.

    Args:
        group: The entry-point group without its leading `loadgen.`: "engines", "launchers".
        name: The name of the entry point.

    Raises:
        BadInput: No installed package offers it, or it cannot be imported.
    """
    entries = installed(f"loadgen.{group}")
    field = f"--{group.rstrip('s')}"
    if name not in entries.names:
        names = ", ".join(sorted(entries.names)) or "(none is installed)"
        raise BadInput(field, f"unknown name {name!r}", f"choose from {names}")
    return load(field, entries[name])


def load(field: str, entry: "EntryPoint") -> Any:
    """Load the object that an entry point names.

    Args:
        field: The flag that names it.
        entry: The entry point.

    Raises:
        BadInput: It cannot be imported.
    """
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        problem = f"{entry.name!r} cannot be loaded ({error})"
        raise BadInput(field, problem, "repair the package that adds it") from error


def built_in(place: str) -> Any:
    """Load an object of loadgen by its place, "module:attribute", without a scan of the
    installed packages.
    """
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


@cache
def installed(group: str) -> "EntryPoints":
    """Scan the installed packages for the entry points of a group, by its whole name.

    This takes about 10 ms, the first time for each group.
    """
    from importlib.metadata import entry_points  # slow to import; most commands need no plug-in

    return entry_points(group=group)
