"""`loadgen completion`: print the shell code that completes commands, flags and their values; and
answer that code.

The answer executes nothing of the command line that a user has begun.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable
from functools import partial
from typing import NoReturn

from loadgen.cli import command_list, exit_codes
from loadgen.cli.commands.help import with_topics
from loadgen.cli.output import say
from loadgen.config.backends import BACKENDS
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.packages import installed
from loadgen.workload import datasets

START_FILES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc, after compinit",
    "fish": "~/.config/fish/config.fish",
}
LINES = {
    "bash": 'eval "$(loadgen completion bash)"',
    "zsh": 'eval "$(loadgen completion zsh)"',
    "fish": "loadgen completion fish | source",
}

# the environment variable that a shell sets when it asks; the command line is in COMP_LINE
ASKED = "_ARGCOMPLETE"
# Flags whose values are names: those that are built in, and the group of entry points of others.
NAMED: dict[str, tuple[Iterable[str], str]] = {
    "backend": (BACKENDS, "loadgen.endpoints"),
    "dataset_name": (datasets.BUILT_IN, datasets.GROUP),
    "engine": ((), "loadgen.engines"),
}
OWN_PACKAGE = "loadgen."


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    rows = [f"  {LINES[shell]:<35} {file}" for shell, file in START_FILES.items()]
    parser = OneLineParser(
        "loadgen completion",
        description="Print the code with which a shell completes commands, flags and their values.",
        epilog="\n".join(
            ["To use it, add a line to the file that the shell reads when it starts:", *rows]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=list(LINES), help="the shell")
    shell = parser.parse_args(argv).shell
    from argcomplete.shell_integration import shellcode

    print(shellcode(["loadgen"], True, shell))
    if sys.stdout.isatty():
        say(f"to use it, add this line to {START_FILES[shell]}: {LINES[shell]}")
    return exit_codes.DONE


def complete() -> NoReturn:
    """Write the completions of the begun command line to the file that the shell reads, and exit.

    The command is called up to the point at which it would parse its flags: there its parser
    answers.
    """
    with contextlib.suppress(BaseException):  # the shell shows no error: it offers nothing
        from argcomplete.lexers import split_line

        _, prefix, _, words, _ = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
        OneLineParser.on_parse = _answer
        if (choices := next_words(words[1:], prefix)) is not None:
            parser = argparse.ArgumentParser(add_help=False)
            parser.add_argument("word", choices=choices)
            _answer(parser, len(words))
        call_own(words[1], words[2:])
    os._exit(1)


def next_words(words: list[str], prefix: str) -> Iterable[str] | None:
    """Return the words that may follow a command, where they are not flags or values of flags; else
    None.

    Args:
        words: The whole words before the cursor, without `loadgen`.
        prefix: The beginning of the word at the cursor.
    """
    match words:
        case []:
            return [*command_list.names(), "--help", "--version"]
        case ["help"]:
            return [*command_list.names(), "exit-codes"]
        case ["help", command, *_]:
            parser = with_topics([command])
            return parser.topic_names if parser else []
        case ["dataset"] if not prefix.startswith("-"):
            return ["fetch", "cache"]
        case ["tune"]:
            return list(command_list.module("tune").COMMANDS)
        case ["serve"]:
            return sorted(installed("loadgen.engines").names)
    return None


def call_own(name: str, words: list[str]) -> None:
    """Call a command of loadgen's; those of other packages may do their work before they parse."""
    command = command_list.find(name)
    if command is not None and command.__module__.startswith(OWN_PACKAGE):
        command(words)


def _names(built_in: Iterable[str], group: str, **context: object) -> list[str]:
    return sorted({*built_in, *installed(group).names})


def _answer(parser: argparse.ArgumentParser, words: int | None = None) -> None:
    """Let a parser complete the command line, and exit.

    Args:
        parser: The parser of a command.
        words: How many words name the command; None: those of the parser's name.
    """
    import argcomplete

    for action in parser._actions:
        if named := NAMED.get(action.dest):
            action.completer = partial(_names, *named)  # type: ignore[attr-defined]
    takes_files = any(not action.option_strings for action in parser._actions)
    os.environ[ASKED] = str(words or len(parser.prog.split()))
    argcomplete.autocomplete(parser, always_complete_options=False if takes_files else "long")
