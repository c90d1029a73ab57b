"""Read back: what a running server says that it is, beside what its command asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that the server has otherwise than its command says.

    Attributes:
        name: Of the flag, with underscores; or `version`.
        asked: In the command; for the version, what is installed.
        told: By the server.
    """

    name: str
    asked: str
    told: str

    def __str__(self) -> str:
        return f"{self.name}: {self.asked} was asked for, the server has {self.told}"


def differences(argv: Sequence[str], told: Any) -> list[Difference]:
    """The flags of a command that a server tells to have otherwise.

    Only flags with one value, which the server tells under the same name, at whatever depth, can be compared; where it
    tells a name more than once, one that agrees is enough.

    Args:
        argv: The command.
        told: The JSON of the engine's `resolved` probe.
    """
    values: dict[str, list[Any]] = {}
    for name, value in _leaves(told):
        values.setdefault(name, []).append(value)
    return [
        Difference(name, asked, ", ".join(map(str, values[name])))
        for name, asked in _flags(argv)
        if name in values and not any(_same(asked, value) for value in values[name])
    ]


def version_told(told: Any) -> str | None:
    """The version in the JSON of an engine's `version` probe; None if there is none, or the build does not know it."""
    for wanted in ("version", "build_info", "server_version"):
        for name, value in _leaves(told):
            if name == wanted and isinstance(value, str) and "unknown" not in value:
                return value
    return None


def _flags(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for flag, following in zip(argv, [*argv[1:], "--"], strict=True):
        name, equals, value = flag.partition("=")
        if not name.startswith("--"):
            continue
        if not equals:
            value = following
        if equals or not following.startswith("--"):
            yield name[2:].replace("-", "_"), value


def _leaves(told: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(told, Mapping):
        for key, value in told.items():
            yield from _leaves(value, str(key).replace("-", "_"))
    elif isinstance(told, list):
        for value in told:
            yield from _leaves(value, name)
    elif told is not None:
        yield name, told


def _same(asked: str, told: Any) -> bool:
    if isinstance(told, bool):
        return asked.lower() == str(told).lower()
    if isinstance(told, int | float):
        try:
            return float(asked) == float(told)
        except ValueError:
            return False
    return asked.lower() == str(told).lower()
