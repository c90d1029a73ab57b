"""Flags: the fields of RunSettings as an argparse parser, grouped as they are in the settings."""

import argparse
import dataclasses
import difflib
import json
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from loadgen.errors import BadInput
from loadgen.options import GROUPS, flag
from loadgen.settings import RunSettings


class OneLineParser(argparse.ArgumentParser):
    """An argument parser that raises BadInput instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        """Turn argparse's message into a field and a remedy."""
        field, _, problem = message.removeprefix("argument ").partition(": ")
        remedy = f"see `{self.prog} --help`"
        if field == "unrecognized arguments":
            field, problem = problem.split()[0].partition("=")[0], "unknown"
            near = difflib.get_close_matches(field, self._option_string_actions, 1, cutoff=0.7)
            remedy = f"did you mean {near[0]}?" if near else remedy
        if not problem:
            field, problem = self.prog, message
        raise BadInput(field, problem, remedy)


def run_parser() -> argparse.ArgumentParser:
    """The parser of `loadgen run`."""
    parser = OneLineParser(
        prog="loadgen run",
        description="Measure a server. With no server named, loadgen's own simulator is started and measured for 10 s.",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--config", metavar="FILE.yaml", help="read settings from a file: the same names, without --")
    groups = {name: parser.add_argument_group(name) for name in GROUPS}
    kinds = typing.get_type_hints(RunSettings)
    for field in dataclasses.fields(RunSettings):
        meta = field.metadata
        options: dict[str, Any] = _by_kind(kinds[field.name])
        if meta["metavar"] and "choices" not in options:
            options["metavar"] = meta["metavar"]
        names = [flag(field.name), *([meta["alias"]] if meta["alias"] else [])]
        text = _help(meta["help"], field.default).replace("%", "%%")
        groups[meta["group"]].add_argument(*names, dest=field.name, help=text, **options)
    return parser


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """The settings that `argv` gives, by field name; `config` beside them where it is given.

    Underscores in flag names are read as dashes, as vLLM does.
    """
    dashed = []
    for argument in argv:
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            argument = name.replace("_", "-") + equals + value
        dashed.append(argument)
    given = vars(run_parser().parse_args(dashed))
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _by_kind(kind: Any) -> dict[str, Any]:
    """argparse's options for a field of this type."""
    members = [k for k in typing.get_args(kind) if k is not type(None)] if isinstance(kind, types.UnionType) else [kind]
    if typing.get_origin(kind) is typing.Union:
        members = [k for k in typing.get_args(kind) if k is not type(None)]
    if members == [int, str]:
        return {"type": _integer_or_text}
    kind = members[0]
    if kind is bool:
        return {"action": "store_true"}
    if typing.get_origin(kind) is typing.Literal:
        return {"choices": list(typing.get_args(kind))}
    if typing.get_origin(kind) is tuple:
        return {"nargs": "*", "action": "extend"}
    if typing.get_origin(kind) is dict:
        return {"type": _json}
    names: dict[Any, Callable[[str], Any]] = {int: _integer, float: _number, str: str}
    return {"type": names[kind]}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON") from error


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from error


def _integer_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII) else text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error


def _help(text: str, default: Any) -> str:
    shown = default not in (None, False, ()) and "(" not in text
    return f"{text} ({default})" if shown else text
