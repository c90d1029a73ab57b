"""An argparse parser that reports a wrong command line as one BadInput with a field and a
remedy.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NoReturn

from loadgen.errors import BadInput
from loadgen.util import number_format
from loadgen.util.number_format import first_of

MAX_NAMED = 2  # flags that are named
NEGATIONS = {"no", "not", "skip", "disable", "without"}
MIN_PREFIX = 4  # letters of a flag that are enough to suggest the flag
UNKNOWN = "unknown"  # the problem of a flag that the parser does not know
Advice = tuple[str, str] | None  # the problem of a word, and its remedy; None: there is none


class OneLineParser(argparse.ArgumentParser):
    """An argument parser that raises BadInput instead of printing the usage and exiting.

    Flags may be abbreviated where the parser says so, as long as only one of them begins with the
    word.

    Args:
        prog: The name of the command.
        options: Further arguments of `argparse.ArgumentParser`.

    Attributes:
        abbreviable: Flags that may be abbreviated.
        not_suggested: Flags that are not suggested for a word that is similar.
        advise: Says what is wrong with a word that is no flag of it, and what to do.
        on_parse: Is called with each parser before it parses a command line; None: nothing is.
    """

    on_parse: ClassVar[Callable[[argparse.ArgumentParser], None] | None] = None

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)
        self.abbreviable: frozenset[str] = frozenset()
        self.not_suggested: frozenset[str] = frozenset()
        self.advise: Callable[[str], Advice] = lambda word: None

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse a command line."""
        if OneLineParser.on_parse is not None:
            OneLineParser.on_parse(self)
        words = sys.argv[1:] if args is None else args
        return super().parse_args([*map(self._spelled_out, words)], namespace)

    def _spelled_out(self, word: str) -> str:
        """Complete the flag that a word abbreviates.

        Raises:
            BadInput: Several flags begin with it.
        """
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name == "--" or name in self._option_string_actions:
            return word
        flags = [flag for flag in sorted(self.abbreviable) if flag.startswith(name)]
        flags.sort(key=self.not_suggested.__contains__)
        if len(flags) > 1:
            raise BadInput(
                name, UNKNOWN, f"{first_of(flags, MAX_NAMED)} begin with it: write the whole flag"
            )
        return flags[0] + equals + value if flags else word

    def error(self, message: str) -> NoReturn:
        """Raise BadInput from a message of argparse.

        A `type=` function puts its own remedy behind a semicolon.
        """
        field, _, problem = message.removeprefix("argument ").partition(": ")
        problem, _, remedy = problem.partition("; ")
        remedy = remedy or f"see `{self.prog} --help`"
        if field == "unrecognized arguments":
            field = problem.split()[0].partition("=")[0]
            flag = self._similar_flag(field)
            problem, remedy = self.advise(field) or (
                UNKNOWN,
                f"did you mean {flag}?" if flag else remedy,
            )
        elif problem.startswith("ignored explicit argument ") and (
            advice := self.advise(problem.split("'")[1])
        ):
            problem, remedy = "takes no value", advice[1]
        if not problem:
            field, problem = self.prog, message
        raise BadInput(field, problem, remedy)

    def _similar_flag(self, word: str) -> str | None:
        """Return the flag that a word is similar to, or begins; None where there is none."""
        names = {flag.lstrip("-"): flag for flag in self._option_string_actions}
        name = word.lstrip("-")
        import difflib  # 4 ms of CPU time that only a wrong flag needs

        near = difflib.get_close_matches(name, names, MAX_NAMED, cutoff=0.75)
        near += [flag for flag in names if flag.startswith(name) and len(name) >= MIN_PREFIX]
        near = [
            flag
            for flag in near
            if names[flag] not in self.not_suggested and not _are_opposite(flag, name)
        ]
        return names[near[0]] if near else None


def _are_opposite(flag: str, other: str) -> bool:
    """Return whether one flag negates the other: skip-chat-template and use-chat-template."""
    if flag.replace("-", "") == other.replace("-", ""):
        return False
    return bool(NEGATIONS & (set(flag.split("-")) ^ set(other.split("-"))))


def integer(text: str) -> int:
    """Parse a whole number: a `type=` function of argparse."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number; write digits only, for example 10"
        ) from error


def _read(read: Callable[[str], float], remedy: str, text: str) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; {remedy}") from error


# `type=` functions of argparse: for a number, a share of 1, and a time, which is returned in
# seconds.
number = partial(_read, number_format.parse_number, "write digits only, for example 10 or 0.5")
share = partial(_read, number_format.parse_share, "write for example 0.05 or 5%")
seconds = partial(
    _read,
    number_format.parse_seconds,
    "write seconds, or a number with ms, s, m or h, for example 500ms or 2m",
)


def integer_within(low: int, high: int) -> Callable[[str], int]:
    """Return a `type=` function of argparse that accepts a whole number from `low` to `high`."""

    def within(text: str) -> int:
        value = integer(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not within {low} to {high}")
        return value

    return within
