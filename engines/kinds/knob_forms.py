"""Knob forms: how an engine writes a knob, as a flag, a pair of flags, a config entry or an
environment variable.
"""

import abc
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.engines.kinds.versions import release
from loadgen.errors import BadInput

Convert = Callable[[Any, Mapping[str, Any]], Any]


def unchanged(value: Any, knobs: Mapping[str, Any]) -> Any:
    """Return the knob's value as it is."""
    return value


def tensor_parallel_size(on: bool, knobs: Mapping[str, Any]) -> int | None:
    """Return the size of the tensor-parallel group if the knob is on: experts are spread over
    all of it.
    """
    return knobs.get("tensor_parallel", 1) if on else None


def attention_share(knobs: Mapping[str, Any]) -> int:
    """Return the accelerators of one copy of the attention: tensor_parallel over the copies.

    Raises:
        BadInput: They cannot be shared equally, or the model is copied too.
    """
    width = int(knobs.get("tensor_parallel", 1))
    copies = int(knobs.get("attention_data_parallel", 1))
    if width % copies:
        raise BadInput(
            "attention_data_parallel",
            f"{copies} copies cannot share {width} accelerators equally",
            "give a divisor of tensor_parallel",
        )
    if copies > 1 and knobs.get("data_parallel", 1) > 1:
        raise BadInput(
            "attention_data_parallel",
            "it cannot be used beside data_parallel",
            "give one of the two",
        )
    return width // copies


@dataclass(slots=True)
class CommandParts:
    """What a set of knobs adds to the launch of a server.

    Attributes:
        words: Words of the command line.
        env: Environment variables.
        entries: Entries of a configuration file: path of keys to value.
    """

    words: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    entries: dict[tuple[str, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobForm(abc.ABC):
    """One form in which an engine takes a knob.

    Attributes:
        since: First version of the engine that has this form; None: every version that loadgen
            supports.
        until: First version that no longer has it; None: it still exists.
        convert: From the knob's value and all knobs to the value that is written; it returns None
            to write nothing.
        note: What `convert` does to the value, for the documentation.
    """

    since: str | None = None
    until: str | None = None
    convert: Convert = unchanged
    note: str = ""

    def supported_by(self, version: str | None) -> bool:
        """Return whether a version has this form; None stands for the newest version."""
        if version is None:
            return self.until is None
        early = self.since is not None and release(version) < release(self.since)
        return not early and (self.until is None or release(version) < release(self.until))

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Return the command-line flags that set the same thing: name to aliases."""
        return {}

    @property
    def label(self) -> str:
        """The form in documentation and messages, as Markdown: the names of its flags."""
        return ", ".join(f"`{name}`" for name in self.flags())

    @property
    def label_with_versions(self) -> str:
        """The label, followed by the versions that have the form."""
        bounds = [f" since {self.since}"] if self.since else []
        return self.label + "".join(bounds + ([f" until {self.until}"] if self.until else []))

    @abc.abstractmethod
    def add(self, value: Any, parts: CommandParts) -> None:
        """Add a value that `convert` returned to the parts of the command."""


@dataclass(frozen=True, slots=True)
class Flag(KnobForm):
    """A flag with a value.

    Attributes:
        name: The flag's name as loadgen writes it.
        aliases: The flag's other names.
        key: Path of the entry in the engine's configuration file that sets the same thing; empty:
            there is none.
    """

    name: str
    aliases: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Return this flag."""
        return {self.name: self.aliases}

    def add(self, value: Any, parts: CommandParts) -> None:
        """Add the flag and its value; a mapping is written as JSON."""
        text = (
            json.dumps(dict(value), separators=(",", ":"))
            if isinstance(value, Mapping)
            else str(value)
        )
        parts.words += [self.name, text]


def plain_flags(names: Mapping[str, str]) -> dict[str, tuple[KnobForm, ...]]:
    """Return the forms of knobs that are one flag with a value in every version.

    Args:
        names: Knob to its flag and the aliases of that, with spaces between them.
    """
    words = {knob: text.split() for knob, text in names.items()}
    return {knob: (Flag(name, tuple(aliases)),) for knob, (name, *aliases) in words.items()}


@dataclass(frozen=True, slots=True)
class Switch(KnobForm):
    """Words that turn something on and off; no words where that is the engine's default.

    Attributes:
        on: Words that turn it on.
        off: Words that turn it off.
        aliases: Other names of the flag in `on`.
        key: As in `Flag`.
    """

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Return the first word of `on` and of `off`."""
        return {
            words[0]: self.aliases if words is self.on else ()
            for words in (self.on, self.off)
            if words
        }

    @property
    def label(self) -> str:
        """The words for on and for off, in this order."""
        return " / ".join(
            f"`{' '.join(words)}`" if words else "by itself" for words in (self.on, self.off)
        )

    def add(self, value: Any, parts: CommandParts) -> None:
        """Add the words for on or for off."""
        parts.words += self.on if value else self.off


@dataclass(frozen=True, slots=True)
class ConfigEntry(KnobForm):
    """An entry in the engine's configuration file.

    Attributes:
        path: Keys from the top of the file.
        overridden_flags: Flags that set the same thing and lose to the file: name to aliases.
    """

    path: tuple[str, ...]
    overridden_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Return the flags that the entry overrides."""
        return self.overridden_flags

    @property
    def label(self) -> str:
        """The path of the entry."""
        return f"file: `{'.'.join(self.path)}`"

    def add(self, value: Any, parts: CommandParts) -> None:
        """Add the entry."""
        parts.entries[self.path] = value


@dataclass(frozen=True, slots=True)
class EnvVariable(KnobForm):
    """An environment variable."""

    name: str

    @property
    def label(self) -> str:
        """The variable's name."""
        return f"variable `{self.name}`"

    def add(self, value: Any, parts: CommandParts) -> None:
        """Add the variable."""
        parts.env[self.name] = str(value)


@dataclass(frozen=True, slots=True)
class FlagGroup(KnobForm):
    """Several flags; `convert` returns all words of them.

    Attributes:
        names: Flags that `convert` may write: name to aliases.
    """

    names: Mapping[str, tuple[str, ...]]

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Return all flags that may be written."""
        return self.names

    def add(self, value: Any, parts: CommandParts) -> None:
        """Add the words."""
        parts.words += value
