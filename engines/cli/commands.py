"""Entry points of the commands `loadgen serve` (runs an engine) and `loadgen engines` (lists engines)."""

import json

from loadgen.errors import BadInput
from loadgen.util import packages
from loadgen.util.argument_parser import OneLineParser

GROUP = "loadgen.engines"
USAGE = """\
usage: loadgen serve ENGINE MODEL [flags] [-- the engine's own flags]
`loadgen serve ENGINE --help` lists the flags; `loadgen serve sim` is the simulator, which needs no model."""


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
    parser = OneLineParser("loadgen engines", description="List the engines that `loadgen serve` can start.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    flags = parser.parse_args(argv)
    from loadgen.engines.cli.engine_list import as_text, engine_list

    entries = sorted(packages.installed(GROUP), key=lambda entry: entry.name)
    listed = engine_list(packages.load(entry.name, entry) for entry in entries)
    print(json.dumps(listed, indent=2) if flags.json else as_text(listed))
    return 0
