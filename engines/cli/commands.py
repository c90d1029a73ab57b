"""Entry points of the commands `loadgen serve` (runs an engine) and `loadgen engines` (lists
engines).
"""

import json
from typing import Any

from loadgen.engines.kinds.knobs import KNOBS
from loadgen.errors import BadInput
from loadgen.util import packages
from loadgen.util.argument_parser import OneLineParser

NOT_FOUND = "-"
GROUP = "loadgen.engines"
USAGE = """\
usage: loadgen serve ENGINE MODEL [flags] [-- the engine's own flags]
`loadgen serve ENGINE --help` lists the flags; `loadgen serve sim` is the simulator, which needs no
model."""


def serve(argv: list[str]) -> int:
    """Run an inference server in the foreground, with any engine.

    Without the name of an engine, list the engines.

    Returns:
        The exit code.

    Raises:
        BadInput: There is no such engine, or a flag cannot be used.
        EngineError: The server did not start, or did not stop.
    """
    entries = packages.installed(GROUP)
    names = ", ".join(sorted(entries.names)) or "none"
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{USAGE}\nengines: {names}")
        return 0
    name, *rest = argv
    if name not in entries.names:
        raise BadInput(name, "unknown engine", f"use one of: {names}")
    from loadgen.engines.cli.serve import serve_engine

    return serve_engine(packages.load(name, entries[name]), rest)


def engines(argv: list[str]) -> int:
    """List the engines, their installed versions and their knobs.

    Returns:
        The exit code.

    Raises:
        BadInput: A flag cannot be used.
    """
    parser = OneLineParser(
        "loadgen engines", description="List the engines that `loadgen serve` can start."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    flags = parser.parse_args(argv)

    entries = sorted(packages.installed(GROUP), key=lambda entry: entry.name)
    installed = [packages.load(entry.name, entry) for entry in entries]
    listed = {
        "engines": {
            engine.name: {"version": engine.version(), "knobs": dict(engine.knobs())}
            for engine in installed
        },
        "knobs": {
            knob.name: {"type": knob.kind.__name__, "help": knob.help} for knob in KNOBS.values()
        },
    }
    print(json.dumps(listed, indent=2) if flags.json else as_text(listed))
    return 0


def as_text(listed: dict[str, Any]) -> str:
    """Return the list as text: a line for each engine, then a paragraph for each knob."""
    engines = listed["engines"]
    width = max(map(len, engines), default=0)
    lines = [f"{'engine':<{width}}  installed version"]
    lines += [
        f"{name:<{width}}  {engine['version'] or NOT_FOUND}" for name, engine in engines.items()
    ]
    for knob, about in listed["knobs"].items():
        lines += ["", f"{knob} ({about['type']}): {about['help']}"]
        engines_by_name: dict[str, list[str]] = {}
        for name, engine in engines.items():
            if knob in engine["knobs"]:
                engines_by_name.setdefault(engine["knobs"][knob], []).append(name)
        lines += [f"    {', '.join(names)}: {flag}" for flag, names in engines_by_name.items()]
    return "\n".join(lines)
