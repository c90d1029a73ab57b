"""`loadgen tune`: reads the flags of its commands, which import what they need only then."""

import sys
from collections.abc import Callable
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser

USAGE = """\
usage: loadgen tune plan FILE [--json]      show what a study would start, and how long it may take; start nothing
       loadgen tune run FILE [--store DIR]  run it, or resume it
       loadgen tune status STORE [--json]   show the findings so far
       loadgen tune report STORE [-o DIR]   write the report
       loadgen tune export STORE            write every start and every number as JSON
       loadgen tune schema                  the JSON schema of study files, for editors
A study is a YAML file: docs/studies.md says how to write one."""
STORE_HELP = "the folder that `loadgen tune run` made, or the study's file where that is NAME.store"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help"):
        print(USAGE)
        return exit_codes.DONE
    if name not in COMMANDS:
        raise BadInput(name, "unknown command", f"use {', '.join(list(COMMANDS)[:-1])} or {list(COMMANDS)[-1]}")
    return COMMANDS[name](rest)


def plan(argv: list[str]) -> int:
    """Print what a study would start."""
    parser = OneLineParser(
        "loadgen tune plan",
        description="Print what a study would start, in which order, and how long it may take. Nothing is started, "
        "written or requested. Later stages assume that the expected arms win the earlier ones.",
    )
    parser.add_argument("file", metavar="FILE", help="a study")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    arguments = parser.parse_args(argv)
    from loadgen.report import to_json
    from loadgen.tuning.plan import plan_text
    from loadgen.tuning.plan.planner import plan as planned
    from loadgen.tuning.spec import study_file
    from loadgen.util.plugins import find

    file = study_file.read(Path(arguments.file))
    with file.named():
        its_plan = planned(file.study, find("launchers", "local").usual_start_s)
    text = to_json(plan_text.as_json(its_plan)) + "\n" if arguments.json else plan_text.as_text(its_plan)
    sys.stdout.write(text)
    return exit_codes.DONE


def run(argv: list[str]) -> int:
    """Run a study."""
    parser = OneLineParser(
        "loadgen tune run",
        description="Run a study: start each arm, run its workloads, decide, go on. A store keeps the results; if "
        "there is one of this study, the study resumes from it.",
    )
    parser.add_argument("file", metavar="FILE", help="a study")
    parser.add_argument(
        "--store", metavar="DIR", type=Path, help="folder of the results (NAME.store, with the study's name)"
    )
    parser.add_argument("--no-live", action="store_true", help="print lines instead of a table on a terminal")
    arguments = parser.parse_args(argv)
    from loadgen.cli import study_runs

    return study_runs.run(Path(arguments.file), arguments.store, lines=arguments.no_live)


def status(argv: list[str]) -> int:
    """Print the findings of a study so far."""
    parser = OneLineParser("loadgen tune status", description="Print the findings of a study so far.")
    parser.add_argument("store", metavar="STORE", help=STORE_HELP)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    arguments = parser.parse_args(argv)
    from loadgen.cli import study_runs

    return study_runs.status(Path(arguments.store), as_json=arguments.json)


def report(argv: list[str]) -> int:
    """Write the report of a study."""
    parser = OneLineParser(
        "loadgen tune report",
        description="Write the report of a study, from its store alone: a page in Markdown with its charts, one in "
        "HTML, and a script that repeats the measurement.",
    )
    parser.add_argument("store", metavar="STORE", help=STORE_HELP)
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="folder of the report (NAME.report, with the study's name)"
    )
    arguments = parser.parse_args(argv)
    from loadgen.cli import study_runs

    return study_runs.report(Path(arguments.store), arguments.output)


def export(argv: list[str]) -> int:
    """Print all trials of a study as JSON."""
    parser = OneLineParser("loadgen tune export", description="Print all trials of a study with all numbers as JSON.")
    parser.add_argument("store", metavar="STORE", help=STORE_HELP)
    arguments = parser.parse_args(argv)
    from loadgen.cli import study_runs

    return study_runs.status(Path(arguments.store), as_json=True)


def schema(argv: list[str]) -> int:
    """Print the JSON schema of study files."""
    OneLineParser("loadgen tune schema", description="Print the JSON schema of study files.").parse_args(argv)
    from loadgen.report import to_json
    from loadgen.tuning.spec import schema as study_schema

    print(to_json(study_schema.schema()))
    return exit_codes.DONE


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "plan": plan,
    "run": run,
    "status": status,
    "report": report,
    "export": export,
    "schema": schema,
}
