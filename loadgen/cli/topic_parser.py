"""A parser of more flags than a screen shows.

The tier of a flag says which pages of help show it: --help, --help-all, or only its topic.
"""

import argparse
import copy
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

from loadgen.config.option import COMPAT, EVERYDAY, FIRST, RARE, Tier
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser

GENERAL = "general"  # the topic of the flags that no other topic has
WIDTH = 80  # columns of the texts that argparse does not lay out
FLAG_COLUMNS = 30  # for flags and their values, before the help texts
# What the first screen leaves out of a help text: what follows the first semicolon, but for the
# default at the end.
_DETAILS = re.compile(r"; .*?(?=(?: \([^()]*\))?$)")


class _WholeWords(argparse.HelpFormatter):
    """Breaks no line inside a name such as random-mm."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class TopicParser(OneLineParser):
    """A parser with many flags, in topics.

    --help shows the main flags, --help-all the everyday ones, too, and `topic` all of a topic. With
    `tool`, --help shows the flags that only this tool's commands need.

    Args:
        command: The name of the command, such as "loadgen run".
        needed: The flags that every command line of it has, as usage shows them.
        description: What it does, in one line.
        examples: Lines with examples.

    Attributes:
        needed: As given.
        tiers: The tiers of flags by field; EVERYDAY where none is named.
        tool: The tool of --compat, whose flags are `abbreviable`; None: there is none.
    """

    def __init__(
        self, command: str, needed: str, description: str, *, examples: Sequence[str]
    ) -> None:
        super().__init__(
            command,
            description=description,
            argument_default=argparse.SUPPRESS,
            add_help=False,
            formatter_class=partial(_WholeWords, max_help_position=FLAG_COLUMNS),
        )
        self.needed = needed
        self.tiers: dict[str, Tier] = {}
        self.tool: str | None = None
        self._examples = "\n".join(["Examples:", *(f"  {line}" for line in examples)])
        self._optionals.title = GENERAL
        self._optionals.description = "flags that belong to no other topic"
        self._topics = [self._optionals]
        self.add_argument(
            "-h", "--help", action=_Print, page=self.first_screen, help="show the main flags"
        )
        self.add_argument(
            "--help-all", action=_Print, page=self.format_help, help="show the everyday flags"
        )

    @property
    def topic_names(self) -> list[str]:
        """The names of the topics."""
        return [str(group.title).split()[0] for group in self._topics]

    def add_topic(self, title: str, about: str) -> "argparse._ArgumentGroup":
        """Add a topic, whose name is the first word of its title, and return the group for its
        flags.
        """
        self._topics.append(self.add_argument_group(title, about))
        return self._topics[-1]

    def describe(self, field: str, text: str | None) -> None:
        """Replace the help text of a flag; None hides the flag."""
        for action in self._actions:
            if action.dest == field:
                action.help = text or argparse.SUPPRESS

    def first_screen(self) -> str:
        """Return the help of the main flags; with a tool, of those that only its commands need."""
        if self.tool is not None:
            return self._tool_screen()
        return "\n".join(
            [
                *self._head(self.needed, str(self.description)),
                self._page(map(_short, self._of_tiers(self._actions, FIRST))),
                self._examples,
                f"More flags: {self.prog} --help-all, or by topic: {self._asked('TOPIC')}",
                "",
            ]
        )

    def _tool_screen(self) -> str:
        rows = [
            action
            for action in self._of_tiers(self._actions, COMPAT)
            if self.abbreviable.intersection(action.option_strings)
        ]
        names = sorted(
            name
            for name in self.abbreviable - self.not_suggested
            if self._option_string_actions[name].help == argparse.SUPPRESS
        )
        return "\n".join(
            [
                *self._head(
                    f"--compat {self.tool}",
                    f"These flags are needed only by commands of {self.tool}.",
                ),
                self._page(rows),
                "Also read, with the meaning that the tool gives them:",
                *wrap(
                    " ".join(names),
                    WIDTH,
                    initial_indent="  ",
                    subsequent_indent="  ",
                    break_on_hyphens=False,
                ),
                "",
            ]
        )

    def topics(self) -> str:
        """Return the list of topics, and what each is about."""
        rows = [
            f"  {name:<16} {group.description}"
            for name, group in zip(self.topic_names, self._topics, strict=True)
        ]
        return "\n".join(
            [
                f"The flags of `{self.prog}`, by topic:",
                "",
                *rows,
                "",
                f"To show a topic, or a flag: {self._asked('TOPIC')}, {self._asked('--FLAG')}",
                f"To show the main flags: {self.prog} --help",
                f"To show the everyday flags: {self.prog} --help-all",
                "",
            ]
        )

    def topic(self, word: str) -> str:
        """Return the help of a topic, or of a flag.

        Args:
            word: A word of the topic's title, or a flag with or without dashes.

        Raises:
            BadInput: There is neither a topic nor a flag of this name.
        """
        for group in self._topics:
            if word in str(group.title).split():
                return self._page(
                    self._of_tiers(group._group_actions, FIRST, EVERYDAY, RARE), group
                )
        action = self._option_string_actions.get("--" + word.lstrip("-").replace("_", "-"))
        if action is None or action.help == argparse.SUPPRESS:
            flag = self._similar_flag(word)
            topics = f"choose from {', '.join(self.topic_names)}"
            raise BadInput(
                word,
                f"no topic or flag of {self.prog}",
                f"did you mean {flag}?" if flag else topics,
            )
        return self._page([action])

    def format_help(self) -> str:
        """Return the help of the main and the everyday flags, by topic."""
        pages = self._head(self.needed, str(self.description))
        for group in self._topics:
            if actions := self._of_tiers(group._group_actions, FIRST, EVERYDAY):
                pages.append(self._page(actions, group))
        names = " ".join(self.topic_names)
        return "\n".join(
            [
                *pages,
                self._examples,
                "",
                f"More flags, by topic: {self._asked('TOPIC')}",
                *wrap(names, WIDTH, initial_indent="  ", subsequent_indent="  "),
                f"Flags that only commands of another tool need: {self.prog} --compat TOOL --help",
                "",
            ]
        )

    def _of_tiers(self, actions: Iterable[argparse.Action], *tiers: Tier) -> list[argparse.Action]:
        """Return the flags of these tiers, without hidden ones."""
        return [
            action
            for action in actions
            if action.help != argparse.SUPPRESS and self.tiers.get(action.dest, EVERYDAY) in tiers
        ]

    def _head(self, needed: str, description: str) -> list[str]:
        """Return the first lines of a page: how the command is called, and what it does."""
        return [" ".join(filter(None, ("usage:", self.prog, needed, "[FLAGS]"))), description, ""]

    def _asked(self, words: str) -> str:
        program, _, command = self.prog.partition(" ")
        return f"{program} help {command} {words}"

    def _page(
        self,
        actions: Iterable[argparse.Action],
        group: "argparse._ArgumentGroup | None" = None,
    ) -> str:
        formatter = self._get_formatter()
        formatter.start_section(group.title if group else None)
        formatter.add_text(group.description if group else None)
        formatter.add_arguments(actions)
        formatter.end_section()
        return formatter.format_help()


def _short(action: argparse.Action) -> argparse.Action:
    """Return a flag as the first screen shows it: its shortest spelling, and a short help text."""
    shown = copy.copy(action)
    shown.option_strings = [min(action.option_strings, key=len)]
    shown.help = _DETAILS.sub("", action.help or "")
    return shown


class _Print(argparse.Action):
    """Prints a page of help and ends the command.

    Args:
        page: Makes the page.
    """

    def __init__(
        self, option_strings: Sequence[str], dest: str, *, page: Callable[[], str], **options: Any
    ) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)
        self._page = page

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **_options: Any) -> None:
        print(self._page(), end="")
        parser.exit()
