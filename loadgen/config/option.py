"""Options: how a field of the settings becomes a flag, and how its value is refused."""

from collections.abc import Callable
from dataclasses import field, fields
from numbers import Real
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

TARGET, ENGINE, SAMPLING, LOAD, DATA = "target", "engine", "sampling parameters", "load", "data set"
CONNECTIONS, SCALE, JUDGEMENT, OUTPUT = "connections and timeouts", "scale", "judgement", "output"
GROUPS = (TARGET, ENGINE, SAMPLING, LOAD, DATA, CONNECTIONS, SCALE, JUDGEMENT, OUTPUT)  # as `--help` lists them


def option(default: Any, group: str, text: str, *, alias: str = "", metavar: str = "", file: bool = False) -> Any:
    """Declare a field that is also a flag.

    Args:
        default: The value when the flag is not given.
        group: The heading it stands under in `--help`.
        text: Its help line.
        alias: A second spelling of the flag.
        metavar: What stands for the value in `--help`.
        file: Whether it names a file that a run writes.
    """
    meta = {"group": group, "help": text, "alias": alias, "metavar": metavar, "file": file}
    return field(default=default, metadata=meta)


def flag(name: str) -> str:
    """The command-line spelling of a field."""
    return "--" + name.replace("_", "-")


def times(settings: Any) -> tuple[str, ...]:
    """The fields of a dataclass of options, or of an instance, that are times in seconds."""
    return tuple(
        each.name for each in fields(settings) if each.metadata["metavar"] == "SECONDS" and each.type is not str
    )


def read_times(settings: Any) -> None:
    """Put seconds in place of the times of a frozen dataclass that are texts, as "30s".

    Raises:
        BadInput: One is no time.
    """
    for name in times(settings):
        if isinstance(value := getattr(settings, name), str):
            try:
                object.__setattr__(settings, name, parse_seconds(value))
            except ValueError as error:
                raise BadInput(flag(name), str(error), "give seconds, as 30, or with their unit, as 30s") from error


def require(name: str, value: Any, holds: Callable[[Any], bool], wanted: str) -> None:
    """Refuse a value that is given and is no number, or not such as `holds` asks; NaN never holds.

    Raises:
        BadInput: It is refused.
    """
    if value is not None and (not isinstance(value, Real) or not holds(value)):
        raise BadInput(flag(name), f"{value} is out of range", f"give {wanted}")
