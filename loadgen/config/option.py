"""Options: fields of a settings dataclass that are also command-line flags, with their types and
ranges.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from msgspec import Struct

from loadgen.errors import BadInput, setting
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
# Where the help of a command shows a flag: FIRST on `--help`, those and EVERYDAY on `--help-all`,
# those and RARE under its topic, and COMPAT, which only command lines of other tools need, with
# that of `--compat TOOL`.
Tier = Literal["first", "everyday", "rare", "compat"]
FIRST, EVERYDAY, RARE, COMPAT = get_args(Tier)
ABOVE_0 = math.ulp(0.0)  # the smallest number above 0
BELOW_1, ABOVE_1 = math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)
FINITE = sys.float_info.max  # the largest number
EXPECTED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    tuple: "a tuple of texts",
    NoneType: "None",
}
HOLDS: dict[Any, Callable[[Any], bool]] = {
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    float: lambda value: isinstance(value, Real) and not isinstance(value, bool),
    dict: lambda value: True,  # the JSON of a flag may be anything, which `validate` refuses
    tuple: lambda value: (
        isinstance(value, tuple | list) and all(isinstance(item, str) for item in value)
    ),
}

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings_class(fields_class: type[T]) -> type[T]:
    """Make a class of options a part of `RunSettings`: a dataclass without generated methods.

    `RunSettings` has these methods. To generate them for its many fields was a twentieth of the
    instructions that the command executes for a short run.
    """
    return dataclass(kw_only=True, init=False, repr=False, eq=False)(fields_class)


def option(
    default: Any,
    group: str,
    text: str,
    *,
    tier: Tier = RARE,
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
        text: The help line. `--help` shows it up to the first semicolon.
        tier: Which pages of help show the flag.
        alias: A second spelling of the flag.
        metavar: The placeholder of the value in `--help`.
        file: Whether the value names a file that a run writes.
        instead: What a program does instead, if only the command can do this; the library refuses
            the field.
        listed: Whether the value is a list in a text, with commas: its parts may be in several
            flags, and a file may have them as a list.
    """
    meta = {
        "group": group,
        "help": text,
        "tier": tier,
        "alias": alias,
        "metavar": metavar,
        "file": file,
        "instead": instead,
    }
    return field(default=default, metadata=meta | {"listed": listed})


def flag(name: str) -> str:
    """Return the flag of a field: request_rate -> --request-rate."""
    return "--" + name.replace("_", "-")


def lists(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold a
    list in a text.
    """
    return tuple(field.name for field in fields(settings) if field.metadata["listed"])


def times(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold
    seconds.
    """
    return tuple(
        field.name
        for field in fields(settings)
        if field.metadata["metavar"] == "TIME" and field.type is not str
    )


def shares(settings: Any) -> tuple[str, ...]:
    """Return the names of the fields of an options dataclass, or of an instance, that hold a
    share of 1.
    """
    return tuple(field.name for field in fields(settings) if field.metadata["metavar"] == "SHARE")


def read_times(settings: Any) -> None:
    """Convert the times of a frozen options dataclass that are texts, such as "30s", to seconds in
    place.

    Raises:
        BadInput: A text is not a time.
    """
    for name in times(settings):
        if isinstance(value := getattr(settings, name), str):
            try:
                object.__setattr__(settings, name, parse_seconds(value))
            except ValueError as error:
                raise BadInput(
                    setting(name), str(error), "give seconds, for example 30 or 30s"
                ) from error


@cache
def types(settings: type) -> dict[str, Any]:
    """Return the type of each field, as declared."""
    return {field.name: field.type for field in fields(settings)}


@cache
def members(settings: type) -> dict[str, tuple[Any, ...]]:
    """Return the types that each field may have, as declared: int and NoneType for `int | None`."""
    return {
        name: get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        for name, kind in types(settings).items()
    }


@cache
def classes(settings: type) -> dict[str, tuple[Any, ...]]:
    """Return the classes that the values of each field may have: of a choice str, of `dict[str,
    Any]` dict.
    """
    classes_of_fields = {}
    for name, kinds in members(settings).items():
        origins = [
            str if get_origin(kind) is Literal else get_origin(kind) or kind for kind in kinds
        ]
        classes_of_fields[name] = tuple(dict.fromkeys(origins))
    return classes_of_fields


@cache
def choices(kinds: tuple[Any, ...]) -> list[str]:
    """Return the values of a field that is a choice among texts, else nothing."""
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    return [choice for literal in literals for choice in get_args(literal)]


def check_types(settings: Any) -> None:
    """Check the type of each field of a settings dataclass. Choices and ranges are checked
    elsewhere.

    Raises:
        BadInput: A value has another type. Its field is the name of the field: no flag or file
            gives such a value.
    """
    for name, kinds in classes(settings.__class__).items():
        value = getattr(settings, name)
        if not any(
            HOLDS[kind](value) if kind in HOLDS else isinstance(value, kind) for kind in kinds
        ):
            expected = " or ".join(EXPECTED[kind] for kind in kinds)
            problem = f"is a value of type {type(value).__name__}"
            raise BadInput(setting(name), problem, f"give {expected}")


def check_type(name: str, value: object, kind: type | UnionType, remedy: str) -> None:
    """Check the type of an argument of a function.

    Args:
        name: The argument.
        value: Its value.
        kind: The types that it may have, protocols that can be checked at run time among them.
        remedy: What to give.

    Raises:
        BadInput: It has another type.
    """
    if not isinstance(value, kind):
        raise BadInput(name, f"is a value of type {type(value).__name__}", remedy)


class Range(Struct, frozen=True):
    """A range of numbers.

    Attributes:
        expected: The numbers, for people.
        least: The lowest number.
        most: The highest number.
        besides: Another number that is allowed.
    """

    expected: str
    least: float
    most: float = math.inf
    besides: float | None = None

    def check(self, flag: str, value: Any) -> None:
        """Check that the value of a flag is None, or a number of this range; NaN is in none."""
        if value is None:
            return
        number: Any = value
        holds = isinstance(value, Real) and (
            self.least <= number <= self.most or number == self.besides
        )
        if not holds:
            shown = f"{value:,.10g}" if isinstance(value, float) else value
            raise BadInput(flag, f"{shown} is out of range", f"give {self.expected}")


FROM_1 = Range("1 or more", 1)
TOKENS = Range("1 token or more", 1)
SHARE = Range("a number from 0 to 1", 0, 1)
