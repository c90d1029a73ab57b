"""`loadgen tune`: studies; plan one, or print the schema of study files."""

import sys
from collections.abc import Callable
from pathlib import Path

from loadgen.arguments import OneLineParser
from loadgen.cli import exits
from loadgen.errors import BadInput

USAGE = """\
usage: loadgen tune plan FILE [--json]   what a study would start, and how long that may take; nothing is started
       loadgen tune schema               the JSON schema of study files, for editors
A study is a YAML file: docs/studies.md says how to write one."""


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help"):
        print(USAGE)
        return exits.DONE
    if name not in COMMANDS:
        raise BadInput(name, "unknown", f"say {' or '.join(COMMANDS)}")
    return COMMANDS[name](rest)


def plan(argv: list[str]) -> int:
    """Print what a study would start."""
    parser = OneLineParser(
        "loadgen tune plan",
        description="Print what a study would start, in which order, and how long that may take. Nothing is started, "
        "written or asked. Later stages rest on the arms that the file expects to win earlier ones.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a study")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    arguments = parser.parse_args(argv)
    from loadgen.plugins import find
    from loadgen.report import to_json
    from loadgen.studies import printed, reading
    from loadgen.studies.plan import plan as planned

    file = reading.read(Path(arguments.file))
    with file.named():
        made = planned(file.study, find("launchers", "local").usual_start_s)
    text = to_json(printed.as_json(made)) + "\n" if arguments.json else printed.as_text(made)
    sys.stdout.write(text)
    return exits.DONE


def schema(argv: list[str]) -> int:
    """Print the JSON schema of study files."""
    OneLineParser(
        "loadgen tune schema", description="Print the JSON schema of study files.", allow_abbrev=False
    ).parse_args(argv)
    from loadgen.report import to_json
    from loadgen.studies.study import Study

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    print(to_json(dialect | Study.model_json_schema(by_alias=True)))
    return exits.DONE


COMMANDS: dict[str, Callable[[list[str]], int]] = {"plan": plan, "schema": schema}
