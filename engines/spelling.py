"""Spelling: the ways in which a command line says one thing, made one, so that commands can be compared."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one engine's command line is read.

    Attributes:
        aliases: Other names of flags to the names that loadgen uses.
        underscores: Whether `--a_b` means `--a-b`.
        dotted: Whether `--a.b 1` sets a part of the JSON that `--a` takes.
        abbreviates: Whether a beginning of a flag means that flag, as with argparse.
        known: Names of the flags that abbreviations are looked up among.
        apart: Flags that begin like one of those, and are others.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    underscores: bool = False
    dotted: bool = False
    abbreviates: bool = False
    known: frozenset[str] = frozenset()
    apart: tuple[str, ...] = ()

    def flag(self, name: str) -> str:
        """The name that loadgen uses for the flag that is spelled `name`; `name` itself where it knows no other."""
        if self.underscores and name.startswith("--"):
            name = name.replace("_", "-")
        if self.dotted:
            name = name.partition(".")[0]
        if name in self.aliases:
            return self.aliases[name]
        if self.abbreviates and name not in (*self.known, *self.apart) and name.startswith("--") and len(name) > 2:
            meant = {self.aliases.get(full, full) for full in self.known | self.aliases.keys() if full.startswith(name)}
            if len(meant) == 1:
                return meant.pop()
        return name

    def said(self, words: Iterable[str]) -> list[tuple[str, ...]]:
        """Each flag with its values, in order; words before the first flag stand under an empty name."""
        found: list[tuple[str, ...]] = [("",)]
        for word in words:
            if not is_flag(word):
                found[-1] = (*found[-1], word)
                continue
            name, equals, value = word.partition("=")
            found.append((self.flag(name), value) if equals else (self.flag(name),))
        return found

    def normal(self, words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """A form in which two commands are equal that say the same.

        One name for a flag, `=` and a space alike, JSON without its spaces and order, flags in any order; the words
        before the first flag keep theirs.
        """
        head, *flags = self.said(words)
        return head, *sorted((name, *map(_value, values)) for name, *values in flags)


def is_flag(word: str) -> bool:
    """Whether a word of a command line is a flag, not a value; negative numbers are values."""
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _value(text: str) -> str:
    if text[:1] not in ("{", "["):
        return text
    try:
        return compact(json.loads(text))
    except ValueError:
        return text


def compact(value: object) -> str:
    """JSON on one line, without spaces, its keys sorted."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
