"""The fields of RunSettings as flags of an argparse parser, in groups."""

import argparse
import json
from collections.abc import Callable, Container, Sequence
from typing import Any

from loadgen.cli import compat
from loadgen.cli.compat.tool_flags import add_flags, one_or_several
from loadgen.cli.output import say
from loadgen.cli.topic_parser import TopicParser
from loadgen.config.load import SWEPT
from loadgen.config.option import DATA, GROUPS, argument, flag, options
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import UNKNOWN, Advice

RUN = "Measure a server, or loadgen's own simulator with --engine sim."
EXAMPLES = ("loadgen run --base-url http://host:8000 --rate 10 --duration 1m",)
HELP = frozenset(("-h", "--help", "--help-all"))
NAMES = tuple(options(RunSettings))


def run_parser(tool: str | None = None) -> TopicParser:
    """Return the parser of `loadgen run`.

    Args:
        tool: The tool of --compat, a name in `compat.TOOLS`, whose flags it takes, too; None: those
            of vLLM.
    """
    parser = TopicParser("loadgen run", "--base-url URL", RUN, examples=EXAMPLES)
    add_run_flags(parser, tool)
    return parser


def add_run_flags(parser: TopicParser, tool: str | None) -> None:
    """Add the flags of `loadgen run`.

    Args:
        parser: Suppresses defaults, so that only given flags are in its result.
        tool: The tool of --compat, or None.
    """
    parser.add_argument(
        "--config",
        metavar="FILE.yaml",
        help="read settings from a YAML file; keys are flag names without --",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.svg",
        help="with several rates or concurrencies: draw the results as SVG",
    )
    add_settings(parser, tool)


def run_settings(
    argv: Sequence[str], parser: Callable[[str | None], TopicParser] = run_parser
) -> dict[str, Any]:
    """Parse a command line into settings, by field name; flags of the tool of --compat stay as they
    are.

    Args:
        argv: The words of the command line.
        parser: Returns the parser for a tool of --compat, or None.

    Raises:
        BadInput: A flag is unknown, or a value is wrong.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--compat", action="append", default=[])
    others = list(argv)
    try:
        given, others = first.parse_known_args(argv)
        tools = given.compat
    except argparse.ArgumentError:
        tools = []  # the full parser reports the error
    if len(tools) > 1:
        raise BadInput(
            "--compat",
            f"given {len(tools)} times ({', '.join(tools)})",
            "give it once, with the tool whose flags you use",
        )
    name = tools[0] if tools else None
    if name in compat.TRANSLATED and not HELP.intersection(others):
        return parse(_translated(name, others), parser(None))
    reader = parser(name if name in compat.TOOLS else None)
    own = reader.advise
    reader.advise = lambda word: own(word) or _advice(word, argv)
    return parse(argv, reader)


def _translated(tool: str, words: Sequence[str]) -> list[str]:
    """Return the flags of loadgen for those of another tool, and say what is not the same."""
    from loadgen.cli.translate import for_run  # not before: most command lines need no translation

    translation = for_run(tool, words)
    for name, how in translation.differs.items():
        say(f"differs from {translation.title}: {name}: {how}")
    return translation.words


def _advice(word: str, argv: Sequence[str]) -> Advice:
    if word.startswith(("http://", "https://")):
        return UNKNOWN, f"name the server with --base-url {word}"
    if "<" in word:  # a limit, or the beginning of one
        return UNKNOWN, f'separate limits with commas: --slo "ttft_p99<500ms,{word}"'
    from loadgen.cli import translate  # not before: only a wrong flag needs it

    remedy = compat.equivalent(word) or translate.equivalent(word, argv)
    return (UNKNOWN, remedy) if remedy else None


def add_settings(parser: TopicParser, tool: str | None, shown: Container[str] = NAMES) -> None:
    """Add --compat, a flag for each of these fields of the settings, by topic, and the flags of a
    tool.

    Args:
        parser: Suppresses defaults, so that only given flags are in its result.
        tool: The tool of --compat, or None.
        shown: Names of the fields.
    """
    parser.add_argument(
        "--compat",
        choices=(tools := [*compat.TOOLS, *compat.TRANSLATED]),
        metavar="TOOL",
        help=f"use the meanings and the defaults of a tool's flags: {', '.join(tools)}",
    )
    meanings = compat.tool_of(tool)
    topics: dict[str, Any] = {}
    chosen = [
        option
        for option in options(RunSettings).values()
        if option.name in shown and option.name not in meanings.replaced
    ]
    order = list(GROUPS)
    for option in sorted(chosen, key=lambda option: order.index(option.group)):
        if option.group not in topics:
            topics[option.group] = parser.add_topic(option.group, GROUPS[option.group])
        parser.tiers[option.name] = option.tier
        names = [flag(option.name), *([option.alias] if option.alias else [])]
        form = argument(option)
        if option.name in SWEPT:
            form["type"] = one_or_several(option.read)
        topics[option.group].add_argument(
            *names, dest=option.name, help=_help(option.help, option.default), **form
        )
    add_flags(parser, topics[DATA], meanings.flags)
    if tool is not None:
        parser.tool, parser.abbreviable = tool, meanings.names


def parse(argv: Sequence[str], parser: argparse.ArgumentParser | None = None) -> dict[str, Any]:
    """Parse `argv` into values by field name; flags that are not given are left out.

    Underscores in flag names are read as dashes, as vLLM does.

    Args:
        argv: The words of the command line.
        parser: The parser; None: that of `loadgen run`.

    Raises:
        BadInput: A flag is unknown, or a value is wrong.
    """
    dashed = []
    for word in argv:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            word = name.replace("_", "-") + equals + value
        dashed.append(word)
    values = vars((parser or run_parser()).parse_args(dashed))
    declared = options(RunSettings)
    return {
        name: (",".join(value) if name in declared and declared[name].listed else tuple(value))
        if isinstance(value, list)
        else value
        for name, value in values.items()
    }


def json_value(text: str) -> Any:
    """Read the value of a flag as JSON; the type of an argparse argument."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid JSON") from error


def _help(text: str, default: Any) -> str:
    shown = default not in (None, False, ()) and "(" not in text
    value = f"{default:g}" if isinstance(default, float) else default
    return (f"{text} ({value})" if shown else text).replace("%", "%%")
