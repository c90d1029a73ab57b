"""Theirs: a flag of another tool's command line, and what becomes of it here."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.config.option import flag as spelled
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

Given = Mapping[str, Any]
Into = Callable[[Any, Given], dict[str, Any]]
NONE, ONE, SOME = "none", "one", "some"  # how many values a flag takes
KEPT = "theirs"  # where in a namespace such flags are kept

# What several tools have and is refused: why, and what to use.
PROFILER = "the server's profiler is not started here"
POST = "POST to /start_profile before the run and to /stop_profile after it"
ONE_MODEL = "a run asks one model"
ADAPTER = "give one adapter with --served-model-name, a run each"
TEMPLATE = "chats are put into their template by the server"


@dataclass(frozen=True, slots=True)
class Theirs:
    """One flag.

    Attributes:
        name: As it is written, with dashes.
        into: The settings that its value makes, given those that are known already; None: it is refused.
        says: What becomes of it, for people; where it is refused, why.
        use: Where it is refused, what to do instead.
        takes: NONE, ONE or SOME values.
        kind: What makes a value of a word.
        harmless: A value that asks for nothing: it is accepted even if the flag is refused.
    """

    name: str
    into: Into | None
    says: str
    use: str = ""
    takes: str = ONE
    kind: Callable[[str], Any] = str
    harmless: Any = None

    def fields(self, value: Any, given: Given) -> dict[str, Any]:
        """The settings that the flag makes with this value.

        Raises:
            BadInput: It is refused.
        """
        if self.into is not None:
            return self.into(value, given)
        if self.harmless is not None and value == self.harmless:
            return {}
        raise BadInput(self.name, self.says, self.use)


def idle(name: str, says: str, takes: str = NONE) -> Theirs:
    """A flag that asks for nothing that is not so anyway."""
    return Theirs(name, lambda value, given: {}, says, takes=takes)


def same(name: str, field: str, kind: Callable[[str], Any] = str, takes: str = ONE) -> Theirs:
    """A flag that has another name here."""
    return Theirs(name, lambda value, given: {field: value}, f"`{spelled(field)}`", kind=kind, takes=takes)


def refused(name: str, says: str, use: str, takes: str = ONE, harmless: Any = None) -> Theirs:
    """A flag that is not had here."""
    kind = {int: integer, float: number}.get(type(harmless), str)
    return Theirs(name, None, says, use, takes, kind, harmless)


def names_a_server(given: Given) -> bool:
    """Whether it is said whom to ask, otherwise than by --host and --port."""
    return bool(given.get("base_url") or given.get("engine"))


def add(parser: argparse.ArgumentParser, flags: Sequence[Theirs]) -> None:
    """Let the parser take these flags too; `--help` does not list them."""
    for flag in flags:
        options: dict[str, Any] = {} if flag.takes == NONE else {"type": flag.kind}
        if flag.takes != ONE:
            options["nargs"] = 0 if flag.takes == NONE else "*"
        parser.add_argument(flag.name, action=_Keep, const=flag, dest=KEPT, help=argparse.SUPPRESS, **options)


def settled(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that are given, with those that flags of another tool make; of two for one setting, the later wins.

    Raises:
        BadInput: One of them is refused.
    """
    found = dict(given)
    for flag, value in found.pop(KEPT, ()):
        found |= flag.fields(value, found)
    return found


class _Keep(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        kept = (*getattr(namespace, KEPT, ()), (self.const, values))
        setattr(namespace, KEPT, kept)
