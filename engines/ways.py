"""Ways: how an engine says a knob, declared: a flag, a pair of flags, an entry in its configuration, a variable."""

import abc
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.engines.versions import release

Of = Callable[[Any, Mapping[str, Any]], Any]


def plain(value: Any, knobs: Mapping[str, Any]) -> Any:
    """The knob's value as it stands."""
    return value


def group_size(on: bool, knobs: Mapping[str, Any]) -> int | None:
    """How many accelerators share each layer, where the knob is on: over all of them experts are spread."""
    return knobs.get("tensor_parallel", 1) if on else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way(abc.ABC):
    """One way of saying a knob.

    Attributes:
        since: First version of the engine that knows it; None: all that loadgen knows.
        until: First version that does not know it any more.
        of: From the knob's value and all knobs to what is said; None where nothing needs to be.
        note: What `of` makes of the value, for the documentation.
    """

    since: str | None = None
    until: str | None = None
    of: Of = plain
    note: str = ""

    def known(self, version: str | None) -> bool:
        """Whether a version knows it; None stands for the newest."""
        if version is None:
            return self.until is None
        early = self.since is not None and release(version) < release(self.since)
        return not early and (self.until is None or release(version) < release(self.until))

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """The flags of the command line that say the same thing: name to other names."""
        return {}

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """In documentation and messages, as Markdown."""

    @property
    def reach(self) -> str:
        """The same with the versions that know it."""
        bounds = [f" since {self.since}"] if self.since else []
        return self.text + "".join(bounds + ([f" until {self.until}"] if self.until else []))

    @abc.abstractmethod
    def add(self, value: Any, said: "Said") -> None:
        """Add `value`, made by `of` and not None, to what is said."""


@dataclass(slots=True)
class Said:
    """What knobs come to.

    Attributes:
        words: On the command line.
        env: Variables.
        entries: Of a configuration file: path of keys to value.
    """

    words: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    entries: dict[tuple[str, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flag(Way):
    """A flag with a value.

    Attributes:
        name: As loadgen writes it.
        aliases: Its other names.
        key: Path of the entry in the engine's configuration file that says the same, where there is one.
    """

    name: str
    aliases: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Itself."""
        return {self.name: self.aliases}

    @property
    def text(self) -> str:
        """Its name."""
        return f"`{self.name}`"

    def add(self, value: Any, said: Said) -> None:
        """The flag and its value, a mapping as JSON."""
        written = json.dumps(dict(value), separators=(",", ":")) if isinstance(value, Mapping) else str(value)
        said.words += [self.name, written]


@dataclass(frozen=True, slots=True)
class Switch(Way):
    """Words for on and for off; none where the engine does that by itself.

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
        """The first words of both."""
        return {words[0]: self.aliases if words is self.on else () for words in (self.on, self.off) if words}

    @property
    def text(self) -> str:
        """Both, on first."""
        return " / ".join(f"`{' '.join(words)}`" if words else "by itself" for words in (self.on, self.off))

    def add(self, value: Any, said: Said) -> None:
        """The words for `value`."""
        said.words += self.on if value else self.off


@dataclass(frozen=True, slots=True)
class Entry(Way):
    """An entry in the engine's configuration file.

    Attributes:
        path: Keys from the top.
        same: Flags that say the same thing, which the file would override: name to other names.
    """

    path: tuple[str, ...]
    same: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Those that say the same."""
        return self.same

    @property
    def text(self) -> str:
        """Its path."""
        return f"file: `{'.'.join(self.path)}`"

    def add(self, value: Any, said: Said) -> None:
        """The entry."""
        said.entries[self.path] = value


@dataclass(frozen=True, slots=True)
class Variable(Way):
    """A variable of the environment."""

    name: str

    @property
    def text(self) -> str:
        """Its name."""
        return f"variable `{self.name}`"

    def add(self, value: Any, said: Said) -> None:
        """The variable."""
        said.env[self.name] = str(value)


@dataclass(frozen=True, slots=True)
class Words(Way):
    """Several words that `of` makes of the value.

    Attributes:
        names: Of the flags among them, to their other names.
    """

    names: Mapping[str, tuple[str, ...]]

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """All it may say."""
        return self.names

    @property
    def text(self) -> str:
        """The flags."""
        return ", ".join(f"`{name}`" for name in self.names)

    def add(self, value: Any, said: Said) -> None:
        """The words."""
        said.words += value
