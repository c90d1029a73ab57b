"""The command `loadgen serve`: run an engine in the foreground."""

import sys
from importlib.metadata import entry_points

from loadgen.engines import Engine

GROUP = "loadgen.engines"


def serve(argv: list[str]) -> int:
    """Run the engine that `argv` names, with its flags; without a name, list the engines.

    Returns:
        The exit code: the engine's own, or 2 for a name that no installed package knows.
    """
    engines = {entry.name: entry for entry in entry_points(group=GROUP)}
    names = ", ".join(sorted(engines)) or "none"
    if not argv or argv[0] in ("-h", "--help"):
        print(f"usage: loadgen serve ENGINE [flags]; loadgen serve ENGINE --help lists its flags\nengines: {names}")
        return 0
    name, *flags = argv
    if name not in engines:
        print(f"error: serve: there is no engine named {name!r}; use one of: {names}", file=sys.stderr)
        return 2
    engine: Engine = engines[name].load()
    return engine.serve(flags)
