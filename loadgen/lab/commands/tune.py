"""`loadgen tune`: reads the flags of its commands, which import what they need only then."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser

USAGE = """\
usage: loadgen tune init [FILE]             write a study with comments, to begin with
       loadgen tune plan FILE [--json]      show what a study would start and how long it may take
       loadgen tune run FILE [--store DIR]  run it, or resume it
       loadgen tune status STORE [--json]   show the findings so far
       loadgen tune report STORE [-o DIR]   write the report
       loadgen tune export STORE            write every start and every number as JSON
       loadgen tune schema                  the JSON schema of study files, for editors
A study is a YAML file: docs/studies.md says how to write one."""
Flag = tuple[str, dict[str, Any]]  # names of a flag, and options of `add_argument`
FILE: Flag = "file", {"metavar": "FILE", "type": Path, "help": "a study"}
STORE: Flag = (
    "store",
    {
        "metavar": "STORE",
        "type": Path,
        "help": "the folder that `loadgen tune run` made, or the study's file if the folder is "
        "NAME.store",
    },
)
JSON: Flag = "--json", {"action": "store_true", "help": "as one JSON object"}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help"):
        print(USAGE)
        return exit_codes.DONE
    if name not in COMMANDS:
        raise BadInput(
            name, "unknown command", f"use {', '.join(list(COMMANDS)[:-1])} or {list(COMMANDS)[-1]}"
        )
    return COMMANDS[name](rest)


def _parsed(argv: list[str], command: str, description: str, *flags: Flag) -> argparse.Namespace:
    parser = OneLineParser(f"loadgen tune {command}", description=description)
    for names, options in flags:
        parser.add_argument(*names.split(), **options)
    return parser.parse_args(argv)


def init(argv: list[str]) -> int:
    """Write a study to begin with."""
    description = (
        "Write a short study with comments. The one for the simulator runs unchanged; in the "
        "others, complete the lines marked CHECK."
    )
    to = {"nargs": "?", "metavar": "FILE", "type": Path, "default": Path("study.yaml")}
    arguments = _parsed(
        argv,
        "init",
        description,
        ("file", to | {"help": "the new file (study.yaml)"}),
        ("--engine", {"metavar": "NAME", "default": "sim", "help": "the engine (sim)"}),
    )
    from loadgen.cli.output import writing
    from loadgen.lab.study.spec.starter import starter

    path: Path = arguments.file
    text = starter(arguments.engine, str(path), path.stem)
    if path.exists():
        raise BadInput((), f"{path} exists", "name a new file")
    with writing("FILE", str(path)):
        path.write_text(text, encoding="utf-8")
    print(f"Wrote: {path}; `loadgen tune plan {path}` shows what it would start")
    return exit_codes.DONE


def plan(argv: list[str]) -> int:
    """Print what a study would start."""
    description = (
        "Print what a study would start, in which order, and how long it may take. Nothing is "
        "started, written or requested. Later stages assume that the expected arms win the earlier "
        "ones."
    )
    arguments = _parsed(argv, "plan", description, FILE, JSON)
    from loadgen.document.terminal_writer import width
    from loadgen.lab.study.plan import plan_text
    from loadgen.lab.study.plan.planner import plan as planned
    from loadgen.lab.study.spec import study_file
    from loadgen.report import to_json
    from loadgen.util.packages import find
    from loadgen.util.terminal_text import Screen

    file = study_file.read(arguments.file)
    with file.named():
        its_plan = planned(file.study, find("launchers", "local").usual_start_s)
    sys.stdout.write(
        to_json(plan_text.as_json(its_plan)) + "\n"
        if arguments.json
        else plan_text.as_text(its_plan, width(Screen.of(sys.stdout)))
    )
    return exit_codes.DONE


def run(argv: list[str]) -> int:
    """Run a study."""
    description = (
        "Run a study: start each arm, run its workloads, decide, and go on. A store keeps the "
        "results; if the study already has one, it resumes from it."
    )
    folder = "folder of the results (NAME.store, with the study's name)"
    arguments = _parsed(
        argv,
        "run",
        description,
        FILE,
        ("--store", {"metavar": "DIR", "type": Path, "help": folder}),
        (
            "--no-live",
            {"action": "store_true", "help": "print lines instead of a table on a terminal"},
        ),
    )
    from loadgen.lab.commands import study_runs

    return study_runs.run(arguments.file, arguments.store, lines=arguments.no_live)


def status(argv: list[str]) -> int:
    """Print the findings of a study so far."""
    arguments = _parsed(argv, "status", "Print the findings of a study so far.", STORE, JSON)
    from loadgen.lab.commands import study_runs

    return study_runs.status(arguments.store, as_json=arguments.json)


def report(argv: list[str]) -> int:
    """Write the report of a study."""
    description = (
        "Write the report of a study, from its store alone: a page in Markdown with its charts, "
        "one in HTML, and a script that repeats the measurement."
    )
    folder = "folder of the report (NAME.report, with the study's name)"
    to: Flag = "-o --output", {"metavar": "DIR", "type": Path, "help": folder}
    arguments = _parsed(argv, "report", description, STORE, to)
    from loadgen.lab.library import load_study

    for file in load_study(arguments.store).write_report(arguments.output):
        print(f"Wrote: {file}")
    return exit_codes.DONE


def export(argv: list[str]) -> int:
    """Print all trials of a study as JSON."""
    arguments = _parsed(
        argv, "export", "Print all trials of a study with all numbers as JSON.", STORE
    )
    from loadgen.lab.commands import study_runs

    return study_runs.status(arguments.store, as_json=True)


def schema(argv: list[str]) -> int:
    """Print the JSON schema of study files."""
    _parsed(argv, "schema", "Print the JSON schema of study files.")
    from loadgen.lab.study.spec import study_file
    from loadgen.report import to_json

    print(to_json(study_file.schema()))
    return exit_codes.DONE


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    command.__name__: command for command in (init, plan, run, status, report, export, schema)
}
