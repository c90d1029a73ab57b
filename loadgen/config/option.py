"""Options: fields of a settings dataclass that are also command-line flags."""

from dataclasses import field, fields
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

TARGET, ENGINE, SAMPLING, LOAD, DATA = "target", "engine", "sampling parameters", "load", "data set"
CONNECTIONS, SCALE, JUDGEMENT, OUTPUT = "connections and timeouts", "scale", "judgement", "output"
GROUPS = {  # the topics of flags in their order, and what each is about
    TARGET: "servers, API, model, tokenizer, headers, metrics, profiler",
    ENGINE: "the engine that loadgen starts and stops",
    SAMPLING: "sampling parameters of every request",
    LOAD: "rate, concurrency, length, ramps, warm-up, seeds",
    DATA: "prompts: data sets, lengths, sessions, traces",
    CONNECTIONS: "connections, source addresses, timeouts",
    SCALE: "processes and machines that share the requests",
    JUDGEMENT: "SLO, goodput, and what counts as a failure",
    OUTPUT: "what is printed, and the files that are written",
}


def option(
    default: Any,
    group: str,
    text: str,
    *,
    alias: str = "",
    metavar: str = "",
    file: bool = False,
    instead: str = "",
    listed: bool = False,
) -> Any:
    """Declare a dataclass field that is also a flag.

    Args:
        default: The value when the flag is not given.
        group: The topic of the flag, a key of GROUPS.
        text: The help line. The first screen of `--help` shows it up to the first semicolon.
        alias: A second spelling of the flag.
        metavar: The placeholder of the value in `--help`.
        file: Whether the value names a file that a run writes.
        instead: What a program does instead, if only the command can do this; the library refuses the field.
        listed: Whether the value is a list in a text, with commas: its parts may be in several flags, and a file may
            have them as a list.
    """
    meta = {"group": group, "help": text, "alias": alias, "metavar": metavar, "file": file, "instead": instead}
    return field(default=default, metadata=meta | {"listed": listed})


def flag(name: str) -> str:
    """Return the flag of a field: request_rate -> --request-rate."""
    return "--" + name.replace("_", "-")


def lists(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold a list in a text."""
    return tuple(each.name for each in fields(settings) if each.metadata["listed"])


def times(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold seconds."""
    return tuple(each.name for each in fields(settings) if each.metadata["metavar"] == "TIME" and each.type is not str)


def shares(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold a share of 1."""
    return tuple(each.name for each in fields(settings) if each.metadata["metavar"] == "SHARE")


def read_times(settings: Any) -> None:
    """Convert the times of a frozen options dataclass that are texts, such as "30s", to seconds in place.

    Raises:
        BadInput: A text is not a time.
    """
    for name in times(settings):
        if isinstance(value := getattr(settings, name), str):
            try:
                object.__setattr__(settings, name, parse_seconds(value))
            except ValueError as error:
                raise BadInput(flag(name), str(error), "give seconds, for example 30 or 30s") from error
