"""The command `loadgen serve`: run an engine in the foreground."""

from importlib.metadata import entry_points
from typing import Any

from loadgen.errors import BadInput

GROUP = "loadgen.engines"
USAGE = "usage: loadgen serve ENGINE MODEL [flags] [-- the engine's own flags]; loadgen serve sim --help lists its own"


def serve(argv: list[str]) -> int:
    """Run the engine that `argv` names, with its flags; without a name, list the engines.

    Returns:
        The exit code.

    Raises:
        BadInput: There is no such engine, or a flag is of no use.
        EngineError: It did not start, or did not stop.
    """
    engines = {entry.name: entry for entry in entry_points(group=GROUP)}
    names = ", ".join(sorted(engines)) or "none"
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{USAGE}\nengines: {names}")
        return 0
    name, *rest = argv
    if name not in engines:
        raise BadInput("ENGINE", f"there is no engine named {name!r}", f"use one of: {names}")
    engine: Any = engines[name].load()
    # What is a part of loadgen needs no second process.
    if hasattr(engine, "serve"):
        return int(engine.serve(rest))
    from loadgen.engines.foreground import foreground

    return foreground(engine, rest)
