"""A parser of more flags than a screen shows.

--help is one screen; the rest is shown by topic, or all at once.
"""

import argparse
import copy
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

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

    --help shows the first screen, --help-all every flag. A topic is shown by `topic`.

    Args:
        command: The name of the command, such as "loadgen run".
        description: What it does.
        main_flags: The flags of the first screen, in its order, as they are shown there.
        examples: Lines with examples.

    Attributes:
        main_flags: As given.
    """

    def __init__(
        self, command: str, description: str, *, main_flags: Sequence[str], examples: Sequence[str]
    ) -> None:
        super().__init__(
            command,
            usage=f"{command} [FLAGS]",
            description=description,
            argument_default=argparse.SUPPRESS,
            add_help=False,
            formatter_class=partial(_WholeWords, max_help_position=FLAG_COLUMNS),
        )
        self.main_flags = main_flags
        self._examples = "\n".join(["Examples:", *(f"  {line}" for line in examples), ""])
        self._optionals.title = GENERAL
        self._optionals.description = "flags that belong to no other topic"
        self._topics = [self._optionals]
        self.add_argument(
            "-h", "--help", action=_Print, page=self.first_screen, help="show the main flags"
        )
        self.add_argument("--help-all", action=_Print, page=self.format_help, help="show all flags")

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
        """Return the help of the main flags, with examples and the topics."""
        names = " ".join(self.topic_names)
        return "\n".join(
            [
                self._page(map(self._main, self.main_flags), usage=True),
                self._examples,
                f"More flags, by topic: {self._asked('TOPIC')}",
                *textwrap.wrap(names, WIDTH, initial_indent="  ", subsequent_indent="  "),
                f"All flags: {self.prog} --help-all",
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
                f"To show a topic, or a flag: {self._asked('TOPIC')}, "
                f"{self._asked(self.main_flags[0])}",
                f"To show the main flags: {self.prog} --help",
                f"To show all flags: {self.prog} --help-all",
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
                return self._page(group._group_actions, group)
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
        """Return the help of all flags."""
        return f"{super().format_help()}\n{self._examples}"

    def _asked(self, words: str) -> str:
        program, _, command = self.prog.partition(" ")
        return f"{program} help {command} {words}"

    def _page(
        self,
        actions: Iterable[argparse.Action],
        group: "argparse._ArgumentGroup | None" = None,
        *,
        usage: bool = False,
    ) -> str:
        formatter = self._get_formatter()
        if usage:
            formatter.add_usage(self.usage, [], [])
            formatter.add_text(self.description)
        formatter.start_section(group.title if group else None)
        formatter.add_text(group.description if group else None)
        formatter.add_arguments(actions)
        formatter.end_section()
        return formatter.format_help()

    def _main(self, flag: str) -> argparse.Action:
        """Return a flag as the first screen shows it: one spelling, and a short help text."""
        shown = copy.copy(self._option_string_actions[flag])
        shown.option_strings, shown.help = [flag], _DETAILS.sub("", shown.help or "")
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
