"""Arguments: a command line of which what cannot be used is one error with a field and a remedy."""

import argparse
import difflib
from collections.abc import Callable
from typing import Any, NoReturn

from loadgen.errors import BadInput
from loadgen.util import number_format

FEWEST_LETTERS = 4  # of the beginning of a flag that stands for the flag
UNKNOWN = "unknown"  # the problem of a flag that a parser does not know


class OneLineParser(argparse.ArgumentParser):
    """An argument parser that raises BadInput instead of printing the usage and exiting; it wants names in full.

    Args:
        prog: What the command is called.
        options: Others of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Turn argparse's message into a field and a remedy; a type's own remedy stands behind a semicolon."""
        field, _, problem = message.removeprefix("argument ").partition(": ")
        problem, _, remedy = problem.partition("; ")
        remedy = remedy or f"see `{self.prog} --help`"
        if field == "unrecognized arguments":
            field, problem = problem.split()[0].partition("=")[0], UNKNOWN
            near = self._near(field)
            remedy = f"did you mean {near}?" if near else remedy
        if not problem:
            field, problem = self.prog, message
        raise BadInput(field, problem, remedy)

    def _near(self, word: str) -> str | None:
        """The flag that a word is likely to be meant for: one that it begins, or nearly is."""
        names = {flag.lstrip("-"): flag for flag in self._option_string_actions}
        name = word.lstrip("-")
        near = difflib.get_close_matches(name, names, 1, cutoff=0.75)
        near += [flag for flag in names if flag.startswith(name) and len(name) >= FEWEST_LETTERS]
        return names[near[0]] if near else None


def integer(text: str) -> int:
    """A whole number, as `type=` of an argument."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number; write digits alone, as 10") from error


def number(text: str) -> float:
    """A number, as `type=` of an argument."""
    return _read(number_format.number, text, "write digits alone, as 10 or 0.5")


def seconds(text: str) -> float:
    """A time in seconds, as `type=` of an argument."""
    return _read(number_format.seconds, text, "write seconds, or a number with ms, s, m or h, as 500ms or 2m")


def _read(read: Callable[[str], float], text: str, remedy: str) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; {remedy}") from error


def integer_within(least: int, most: int) -> Callable[[str], int]:
    """A whole number from `least` to `most`, as `type=` of an argument."""

    def within(text: str) -> int:
        found = integer(text)
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"{text} is not within {least} to {most}")
        return found

    return within
