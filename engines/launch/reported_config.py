"""Reported configuration: the settings that a running server reports, compared with its command."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting for which the server reports another value than its command requests.

    Attributes:
        name: Name of the flag, with underscores; or `version`.
        requested: Value in the command; for the version, the installed one.
        reported: Value that the server reports.
    """

    name: str
    requested: str
    reported: str

    def __str__(self) -> str:
        return f"{self.name}: {self.requested} was requested, the server has {self.reported}"


def differences(argv: Sequence[str], reported: Any) -> list[Difference]:
    """Return the flags of a command for which the server reports another value.

    Only flags with one value can be compared, and only if the server reports the same name, at any depth. If it reports
    a name several times, one equal value is enough.

    Args:
        argv: The command.
        reported: The JSON of the engine's `resolved` probe.
    """
    values: dict[str, list[Any]] = {}
    for name, value in _leaves(reported):
        values.setdefault(name, []).append(value)
    return [
        Difference(name, requested, ", ".join(map(str, values[name])))
        for name, requested in _flags(argv)
        if name in values and not any(_equal(requested, value) for value in values[name])
    ]


def reported_version(reported: Any) -> str | None:
    """Return the version in the JSON of an engine's `version` probe; None if there is none or it is "unknown"."""
    for wanted in ("version", "build_info", "server_version"):
        for name, value in _leaves(reported):
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


def _leaves(reported: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(reported, Mapping):
        for key, value in reported.items():
            yield from _leaves(value, str(key).replace("-", "_"))
    elif isinstance(reported, list):
        for value in reported:
            yield from _leaves(value, name)
    elif reported is not None:
        yield name, reported


def _equal(requested: str, reported: Any) -> bool:
    if isinstance(reported, bool):
        return requested.lower() == str(reported).lower()
    if isinstance(reported, int | float):
        try:
            return float(requested) == float(reported)
        except ValueError:
            return False
    return requested.lower() == str(reported).lower()
