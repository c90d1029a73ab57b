"""Commands that are only mentioned, or that a page does not let run, are commands, with flags
that they have.
"""

import argparse
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from loadgen.cli import command_list
from loadgen.cli.commands.help import with_topics
from loadgen.cli.translate import TOOLS
from tests.helpers.command_line import loadgen
from tests.helpers.source import ROOT
from tests.slow.docs.blocks import blocks, pages

# Words behind the name of a command that choose another help.
CHOOSING = {"serve": 1, "tune": 1, "benchmark-runner": 2}
SUBCOMMANDS = {"dataset": ("fetch", "cache")}
INLINE = re.compile(r"`(loadgen [^`]+)`")


@cache
def flags(*command: str) -> frozenset[str]:
    """The flags that the pages of a command's help name."""
    if (parser := with_topics([*command])) is not None:
        actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        return frozenset(word for action in actions for word in action.option_strings)
    done = loadgen(*command, "--help")
    assert done.returncode == 0, f"loadgen {' '.join(command)} --help: {done.stderr}"
    return frozenset(re.findall(r"--[a-z][\w-]*", done.stdout)) | {"--help"}


@cache
def commands() -> frozenset[str]:
    return frozenset(command_list.names())


def unknown(command: str) -> list[str]:
    """What of a command line of loadgen is not had; nothing where it names no command, as in
    `loadgen COMMAND`.
    """
    words = shlex.split(command, comments=True)[1:]
    if not words or not re.fullmatch("[a-z-]+", words[0]) or words[0] == "--help":
        return []
    if words[0] not in commands():
        return [words[0]]
    if words[0] == "help":
        return []
    count = 1 + CHOOSING.get(
        words[0], words[1:2] != [] and words[1] in SUBCOMMANDS.get(words[0], ())
    )
    path, rest = words[:count], words[count:]
    if not all(re.fullmatch("[a-z0-9-]+", word) for word in path):  # serve ENGINE MODEL
        return []
    own = rest[: rest.index("--")] if "--" in rest else rest
    given = [word.partition("=")[0] for word in own if re.match("--[a-z]", word)]
    tool = TOOLS.get(own[own.index("--compat") + 1]) if "--compat" in own else None
    return [
        flag
        for flag in given
        if flag not in flags(*path) and (tool is None or tool.flag(flag) is None)
    ]


def mentioned(page: Path) -> list[str]:
    """The command lines of loadgen in a page's text, and in its blocks that are not run."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = INLINE.findall(" ".join(prose.replace("\\|", "|").split()))
    for block in blocks(page):
        if block.language == "bash" and "needs" in block.marks:
            lines = block.text.replace("\\\n", " ").splitlines()
            found += [
                match[1]
                for line in lines
                if (match := re.match(r"(?:\w+=\S* )*(loadgen .*)", line))
            ]
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_that_is_mentioned_is_one_and_has_its_flags(page: Path) -> None:
    assert {command: found for command in mentioned(page) if (found := unknown(command))} == {}


def test_a_test_that_is_said_to_run_a_block_is_there_and_reads_the_page() -> None:
    for page in pages():
        for block in blocks(page):
            if test := block.marks.get("run by"):
                assert page.name in (ROOT / test).read_text(), (
                    f"{block.place}: {test} does not name {page.name}"
                )
