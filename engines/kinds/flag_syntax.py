"""Flag syntax: how an engine parses its command line, so that two commands can be compared by
meaning.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FlagSyntax:
    """The rules by which one engine parses flags.

    Attributes:
        aliases: Alias of a flag to the name that loadgen uses.
        underscores: Whether `--a_b` means `--a-b`.
        dotted: Whether `--a.b 1` sets a part of the JSON that `--a` takes.
        abbreviates: Whether a prefix of a flag means that flag, as with argparse.
        known: Names of the flags that a prefix may stand for.
        apart: Flags that start like a known flag but are different flags.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    underscores: bool = False
    dotted: bool = False
    abbreviates: bool = False
    known: frozenset[str] = frozenset()
    apart: tuple[str, ...] = ()

    def canonical_name(self, name: str) -> str:
        """Return the name that loadgen uses for a flag; `name` itself if loadgen knows no other."""
        if self.underscores and name.startswith("--"):
            name = name.replace("_", "-")
        if self.dotted:
            name = name.partition(".")[0]
        if name in self.aliases:
            return self.aliases[name]
        if (
            self.abbreviates
            and name not in (*self.known, *self.apart)
            and name.startswith("--")
            and len(name) > 2
        ):
            full_names = (
                full for full in self.known | self.aliases.keys() if full.startswith(name)
            )
            candidates = {self.aliases.get(full, full) for full in full_names}
            if len(candidates) == 1:
                return candidates.pop()
        return name

    def parse(self, words: Iterable[str]) -> list[tuple[str, ...]]:
        """Return each flag with its values, in order; the words before the first flag stand
        under an empty name.
        """
        parsed: list[tuple[str, ...]] = [("",)]
        for word in words:
            if not is_flag(word):
                parsed[-1] = (*parsed[-1], word)
                continue
            name, equals, value = word.partition("=")
            name = self.canonical_name(name)
            parsed.append((name, value) if equals else (name,))
        return parsed

    def normalize(self, words: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return a normal form that is equal for two commands with the same meaning.

        A flag has one name, `=` equals a space, JSON has no spaces and sorted keys, and flags are
        sorted. The words before the first flag keep their order.
        """
        head, *flags = self.parse(words)
        return head, *sorted((name, *map(_normal_value, values)) for name, *values in flags)


def is_flag(word: str) -> bool:
    """Return whether a word of a command line is a flag and not a value; negative numbers are
    values.
    """
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def compact_json(value: object) -> str:
    """Return `value` as JSON on one line, without spaces, with sorted keys."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _normal_value(text: str) -> str:
    if text[:1] not in ("{", "["):
        return text
    try:
        return compact_json(json.loads(text))
    except ValueError:
        return text
