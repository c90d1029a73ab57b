"""The flags of a tool and what becomes of each, and the words of its command line read by them."""

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from loadgen.cli.compat.tool_flags import NONE, ONE, SOME
from loadgen.cli.translate import shell_words
from loadgen.document import Block, Note, Table, cell, prose
from loadgen.util.files import table_rows

if TYPE_CHECKING:
    from loadgen.cli.translate.translation import Translation


class Flag(Struct, frozen=True):
    """Flags of a tool with one meaning, and what becomes of them.

    Attributes:
        names: Its spellings; one that ends with * stands for all that begin so.
        here: What replaces it, with the flags of loadgen in backquotes; or why nothing does.
        to: The flag of loadgen that takes its values; "" if it has none of its own.
        values: How many values it takes: NONE, ONE or SOME.
        differs: What is not the same with it: the name of the difference.
        blocks: Whether no command of loadgen asks for the same load with it.
        needless: Whether it has no counterpart.
        no_op: Values with which it changes nothing.
    """

    names: tuple[str, ...]
    here: str
    to: str = ""
    values: str = ONE
    differs: str = ""
    blocks: bool = False
    needless: bool = False
    no_op: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether its values count, and not its name alone."""
        return not (self.differs or self.blocks or self.needless or self.names[0].endswith("*"))

    def is_named(self, name: str) -> bool:
        """Whether a spelling is one of its own."""
        return any(
            name.startswith(each[:-1]) if each.endswith("*") else name == each
            for each in self.names
        )


@functools.cache
def _tables() -> Mapping[str, Sequence[Flag]]:
    tables: dict[str, list[Flag]] = {}
    tool = ""
    for kind, *cells in table_rows(Path(__file__).with_name("flags.txt")):
        if cells:
            tables[tool].append(_flag(kind, *cells))
        else:
            tool = kind.strip("[]")
            tables[tool] = []
    return tables


def flags_of(tool: str) -> tuple[Flag, ...]:
    """Return the flags of a tool, as flags.txt has them."""
    return tuple(_tables()[tool])


def _flag(what: str, here: str, names: str, values: str = ONE) -> Flag:
    kind, *words = what.split()
    return Flag(
        names=tuple(names.split()),
        here=f"`{here}`" if kind == "same" else here,
        to=here if kind == "same" else "",
        values=values,
        differs=words[0] if kind == "differs" else "",
        blocks=kind == "blocks",
        needless=kind == "needless",
        no_op=tuple(words) if kind == "blocks" else (),
    )


# What becomes of flags, and which flags that is.
EFFECTS: dict[str, Callable[[Flag], bool]] = {
    "Flags that become others": lambda flag: not (flag.needless or flag.blocks or flag.differs),
    "Flags that make a difference": lambda flag: bool(flag.differs),
    "Flags without a counterpart, which need none": lambda flag: flag.needless,
    "Flags that ask for another load": lambda flag: flag.blocks,
}


class Given:
    """The flags of a command line with their values, by the first spelling of each.

    Args:
        values: The values; of a flag without values, none.
    """

    def __init__(self, values: dict[str, list[str]]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a flag."""
        return (self._values.get(name) or [default])[-1]

    def all(self, name: str) -> list[str]:
        """Return all values of a flag."""
        return self._values.get(name, [])

    def is_zero(self, name: str) -> bool:
        """Whether a flag is not given, or given as 0."""
        try:
            return float(self.get(name, "0")) == 0
        except ValueError:
            return False


class Tool(Struct, frozen=True):
    """A tool whose commands are translated.

    Attributes:
        title: Its name.
        commands: How its command line begins, each without an interpreter in front of it.
        flags: Its flags.
        finish: Makes of the flags in their combination what `flags` alone does not say.
        in_file: Returns the flags of a file of this tool; None if it has none.
        file_keys: The top-level keys by which such a file is known.
        passes_others: Whether `finish` also reads flags that are not in `flags`.
    """

    title: str
    commands: tuple[str, ...]
    flags: tuple[Flag, ...]
    finish: "Callable[[Given, Translation], None]"
    in_file: "Callable[[str], dict[str, list[str]]] | None" = None
    file_keys: tuple[str, ...] = ()
    passes_others: bool = False

    def flag(self, name: str) -> Flag | None:
        """Return its flag of this spelling, or None."""
        exact = next((flag for flag in self.flags if name in flag.names), None)
        return exact or next((flag for flag in self.flags if flag.is_named(name)), None)


def read(tool: Tool, words: Sequence[str], result: "Translation") -> Given:
    """Read the words of a command line behind the name of the tool; what is none of its flags, or
    no value of one, is said in the result.
    """
    values: dict[str, list[str]] = {}
    flag, name, key, taken = None, "", "", 0
    for word in words:
        if word == "--":  # in front of the flags of perf_analyzer
            continue
        if _is_flag(word):
            name, equals, value = word.partition("=")
            if name.startswith("--") and tool.flag(name) is None:
                name = f"--{name[2:].replace('_', '-')}"
            flag, taken = tool.flag(name), len(equals)
            if flag is None and result.own is not None:
                result.own.append(word)
                continue
            key = flag.names[0] if flag is not None and flag.is_read else name
            values.setdefault(key, []).extend([value] if equals else [])
        elif flag is None and name and result.own is not None:
            result.own.append(word)
        elif name and taken < _limit(flag) and not shell_words.is_array(word):
            values[key].append(word)
            taken += 1
        elif shell_words.is_variable(word) or shell_words.is_array(word):
            result.leave(word, "holds further flags, which are not seen here")
        elif word.lower() not in ("true", "false"):
            result.leave(word, "belongs to no flag")
    return Given(values)


def _limit(flag: Flag | None) -> float:
    """Return how many values a flag takes; of an unknown one, any number."""
    return {NONE: 0, ONE: 1, SOME: math.inf}[SOME if flag is None else flag.values]


def apply(tool: Tool, given: Given, result: "Translation") -> None:
    """Add to a result what each flag says alone, then what they say together."""
    said: dict[Flag, list[str]] = {}
    for name in given:
        flag, values = tool.flag(name), given.all(name)
        if flag is None:
            if not tool.passes_others:
                result.block(f"{_shown(name)}: not known of {tool.title}, maybe of a fork")
        elif values and values[-1] in flag.no_op:
            continue
        elif flag.to:
            result.put(flag.to, *(values if flag.values == SOME else values[-1:]))
        elif not flag.is_read:
            said.setdefault(flag, []).append(_shown(name))
    for flag, names in said.items():
        if flag.blocks:
            result.block(f"{', '.join(names)}: {flag.here}")
        elif flag.differs:
            result.differ(flag.differs, f"{', '.join(names)}: {flag.here}")
        elif flag.needless:
            result.leave(", ".join(names), flag.here)
    tool.finish(given, result)


def _shown(name: str) -> str:
    """Name a flag, or a setting of a file, which has no dashes."""
    return name.removeprefix("--") if re.search(r"[._]", name) else name


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1:].replace(".", "").isdigit()


def blocks_of(tool: Tool) -> list[Block]:
    """Write a table for each effect that flags of a tool have."""
    written: list[Block] = []
    for title, has_it in EFFECTS.items():
        rows = [(" ".join(flag.names), prose(flag.here)) for flag in tool.flags if has_it(flag)]
        if rows:
            written.append(
                Note("note", title, (Table.of(("", ""), ((a, cell(b)) for a, b in rows)),))
            )
    return written
