"""Table: all that one engine can be told, and the one function that makes words of knobs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from loadgen.engines.knobs import KNOBS, word
from loadgen.engines.spelling import Spelling, is_flag
from loadgen.engines.ways import Said, Way
from loadgen.errors import BadInput

PLACED = ("host", "port", "model")  # said in the same way, but set by whoever starts the server


@dataclass(frozen=True, eq=False)
class Table:
    """How one engine says the knobs.

    Attributes:
        engine: Its name.
        ways: Knob to the ways in which it is said; the first that a version knows is taken. `host`, `port` and `model`
            stand here too.
        nearest: Knobs that the engine cannot say, to what it has instead.
        underscores, dotted, abbreviates, apart: As in `Spelling`.
    """

    engine: str
    ways: Mapping[str, tuple[Way, ...]]
    nearest: Mapping[str, str] = field(default_factory=dict)
    underscores: bool = False
    dotted: bool = False
    abbreviates: bool = False
    apart: tuple[str, ...] = ()

    @property
    def knobs(self) -> list[str]:
        """Names of the knobs that the engine has."""
        return [name for name in KNOBS if name in self.ways]

    def names(self, version: str | None) -> dict[str, str]:
        """The knobs that a version can be told, each with the engine's own name; None: taken for the newest."""
        known = {name: [way for way in self.ways[name] if way.known(version)] for name in self.knobs}
        return {name: ways[0].text.replace("`", "") for name, ways in known.items() if ways}

    @cached_property
    def dated(self) -> bool:
        """Whether anything depends on the version."""
        return any(way.since or way.until for ways in self.ways.values() for way in ways)

    @cached_property
    def spelling(self) -> Spelling:
        """How its command line is read."""
        flags = [item for ways in self.ways.values() for way in ways for item in way.flags().items()]
        aliases = {other: name for name, others in flags for other in others}
        known = frozenset(name for name, _ in flags)
        return Spelling(aliases, self.underscores, self.dotted, self.abbreviates, known, self.apart)

    def check(self, knobs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the knobs with their values checked, in the order of `KNOBS`.

        Raises:
            BadInput: The engine does not have one of them, or it has no usable value.
        """
        for name in knobs:
            if name in PLACED:
                raise BadInput(name, "it is set by whoever starts the server", "leave it out")
            if name in self.nearest:
                raise BadInput(name, f"{self.engine} has no such setting", f"the nearest is {self.nearest[name]}")
            if name not in self.ways:
                raise BadInput(name, f"{self.engine} has no such knob", f"use one of {', '.join(self.knobs)}")
        return {name: KNOBS[name].check(knobs[name]) for name in KNOBS if name in knobs}

    def say(self, given: Mapping[str, Any], version: str | None) -> Said:
        """What checked knobs, and those of `PLACED`, come to.

        Args:
            given: Knob to value.
            version: Of the engine; None: taken for the newest.

        Raises:
            BadInput: The version does not know a way of saying one of them, or its value cannot be said.
        """
        said = Said()
        for name, value in given.items():
            way = self._way(name, version)
            if (meant := way.of(value, given)) is not None:
                way.add(meant, said)
        return said

    def refuse(self, raw: Sequence[str], given: Collection[str], version: str | None) -> None:
        """Look at the user's own flags.

        Args:
            raw: Flags and values, as they stand on the command line.
            given: Names of the knobs that are said beside them.
            version: As in `say`.

        Raises:
            BadInput: One says what a knob says or what the user has no say in, or the version does not know it.
        """
        for flag in self.raw_flags(raw):
            owners = [(name, way) for name, ways in self.ways.items() for way in ways if flag in way.flags()]
            for name, _ in owners:
                if name in PLACED:
                    raise BadInput(flag, f"the {name} is set by whoever starts the server", "leave the flag out")
                if name in given:
                    raise BadInput(flag, f"it says what the knob {name} says", f"say it once, best with {name}")
            ways = [way for _, way in owners]
            if ways and not any(way.known(version) for way in ways):
                raise BadInput(flag, *self._too_old(ways, version))

    def raw_flags(self, raw: Sequence[str]) -> list[str]:
        """Names, as loadgen writes them, of the flags among the user's own words.

        Raises:
            BadInput: What stands there cannot stand on a command line.
        """
        for item in raw:
            if not isinstance(item, str) or "\0" in item:
                raise BadInput("raw", f"{item!r} cannot stand on a command line", "give flags and values as text")
        if raw and not is_flag(raw[0]):
            raise BadInput("raw", f"{raw[0]!r} follows no flag", "give flags, each followed by its values")
        return [name for name, *_ in self.spelling.said(raw)[1:]]

    def _way(self, name: str, version: str | None) -> Way:
        for way in self.ways[name]:
            if way.known(version):
                return way
        raise BadInput(name, *self._too_old(self.ways[name], version))

    def _too_old(self, ways: Sequence[Way], version: str | None) -> tuple[str, str]:
        reach = "; ".join(way.reach for way in ways)
        return (
            f"{self.engine} {version or 'today'} cannot be told it",
            f"leave it out, or use a version that has {reach}",
        )


def check_model(model: str) -> str:
    """Return `model`, a name or path that can stand on a command line.

    Raises:
        BadInput: It cannot.
    """
    return word("model", model)
