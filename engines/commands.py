"""The commands `loadgen serve`, which runs an engine in the foreground, and `loadgen engines`, which lists them."""

import json
from importlib.metadata import EntryPoint, entry_points

from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser

GROUP = "loadgen.engines"
USAGE = """\
usage: loadgen serve ENGINE MODEL [flags] [-- the engine's own flags]
`loadgen serve ENGINE --help` lists the flags; `loadgen serve sim` is the simulator, which needs no model."""


def serve(argv: list[str]) -> int:
    """Run an inference server in the foreground, with any engine.

    Without a name, list the engines.

    Returns:
        The exit code.

    Raises:
        BadInput: There is no such engine, or a flag is of no use.
        EngineError: It did not start, or did not stop.
    """
    entries = _entries()
    names = ", ".join(sorted(entries)) or "none"
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{USAGE}\nengines: {names}")
        return 0
    name, *rest = argv
    if name not in entries:
        raise BadInput("ENGINE", f"there is no engine named {name!r}", f"use one of: {names}")
    from loadgen.engines.foreground import foreground

    return foreground(entries[name].load(), rest)


def engines(argv: list[str]) -> int:
    """List the engines: what is installed of them, and what each calls the engine-neutral knobs.

    Returns:
        The exit code.

    Raises:
        BadInput: A flag is of no use.
    """
    parser = OneLineParser("loadgen engines", description="List the engines that can be served.")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    flags = parser.parse_args(argv)
    from loadgen.engines.listing import Row, as_json, as_text

    rows = [Row.of(entry.load()) for _, entry in sorted(_entries().items())]
    print(json.dumps(as_json(rows), indent=2) if flags.json else as_text(rows))
    return 0


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
