"""Options: fields of a settings dataclass that are also command-line flags, with their types and
ranges.
"""

import argparse
import functools
import json
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Struct, structs

from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_number, parse_seconds, parse_share

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
WHOLE = re.compile("[+-]?[0-9]{1,18}", re.ASCII)
FINITE = sys.float_info.max  # the largest number
EXPECTED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    tuple: "a list of texts",
    dict: "a JSON object",
}
SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings_class(fields_class: type[T]) -> type[T]:
    """Make a class of options a part of `RunSettings`: a dataclass without generated methods.

    `RunSettings` has these methods. To generate them for its many fields was a twentieth of the
    instructions that the command executes for a short run.
    """
    return dataclass(kw_only=True, init=False, repr=False, eq=False)(fields_class)


class Unit(Struct, frozen=True):
    """How numbers of a unit are written.

    Attributes:
        metavar: The placeholder of a value in `--help`.
        read: Reads a text; raises ValueError with the reason.
        remedy: What to write.
    """

    metavar: str
    read: Callable[[str], float]
    remedy: str


SECONDS = Unit(
    "TIME", parse_seconds, "write seconds, or a number with ms, s, m or h, for example 500ms or 2m"
)
SHARES = Unit("SHARE", parse_share, "write for example 0.05 or 5%")
NUMBERS = Unit("", parse_number, "write digits only, for example 10 or 0.5")


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

    def check(self, place: str, value: Any) -> None:
        """Check that the value of a setting is None, or a number of this range; NaN is in none."""
        if value is None:
            return
        number: Any = value
        holds = isinstance(value, Real) and (
            self.least <= number <= self.most or number == self.besides
        )
        if not holds:
            shown = f"{value:,.10g}" if isinstance(value, float) else value
            raise BadInput(place, f"{shown} is out of range", f"give {self.expected}")


class Form(Struct, frozen=True):
    """How a text is written.

    Attributes:
        pattern: A regular expression of all of it.
        problem: The problem of another text, which stands for the braces.
        remedy: What to write.
        separator: What is between the parts of a text that each have this form; empty: it is one.
    """

    pattern: str
    problem: str
    remedy: str
    separator: str = ""

    def check(self, place: str, value: str | tuple[str, ...] | None) -> None:
        """Check that the value of a setting is None, or that each of its texts has this form."""
        texts = (value,) if isinstance(value, str) else value or ()
        for text in texts:
            for part in text.split(self.separator) if self.separator else (text,):
                if not re.fullmatch(self.pattern, part, re.DOTALL):
                    raise BadInput(place, self.problem.format(part), self.remedy)


FROM_0, FROM_1 = Range("0 or more", 0, FINITE), Range("1 or more", 1, FINITE)
TOKENS_FROM_0, TOKENS = Range("0 tokens or more", 0), Range("1 token or more", 1)
POSITIVE = Range("a number above 0", ABOVE_0)
SHARE = Range("a number from 0 to 1", 0, 1)


class Option(Struct, frozen=True, kw_only=True):
    """A setting: a field of a settings class that is also a flag, and a key of files.

    Attributes:
        name: The field.
        type: The type of its values, as declared.
        default: The value when it is not given.
        group: The topic of the flag, a key of GROUPS.
        help: The help line. `--help` shows it up to the first semicolon.
        tier: Which pages of help show the flag.
        alias: A second spelling of the flag.
        metavar: The placeholder of the value in `--help`.
        unit: How its numbers are written.
        range: The numbers that it may have; None: all.
        form: How its texts are written; None: as the user likes.
        parse: Reads what its text means, or refuses it; None: it needs no reading.
        excludes: Settings that cannot be given beside it.
        why: What it does, which excludes them, as in "which starts its own server".
        needs: A setting without which it has no effect; empty: none.
        file: Whether the value names a file that a run writes.
        instead: What a program does instead, if only the command can do this; the library refuses
            the field.
        listed: Whether the value is a list in a text, with commas: its parts may be in several
            flags, and a file may have them as a list.
    """

    name: str = ""
    type: Any = None
    default: Any = None
    group: str
    help: str
    tier: Tier = RARE
    alias: str = ""
    metavar: str = ""
    unit: Unit = NUMBERS
    range: Range | None = None
    form: Form | None = None
    parse: Callable[[Any], object] | None = None
    excludes: tuple[str, ...] = ()
    why: str = ""
    needs: str = ""
    file: bool = False
    instead: str = ""
    listed: bool = False

    @property
    def members(self) -> tuple[Any, ...]:
        """The types that it may have, as declared: int and NoneType for `int | None`."""
        union = get_origin(self.type) in (Union, UnionType)
        return get_args(self.type) if union else (self.type,)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes that its values may have: of a choice str, of `dict[str, Any]` dict."""
        origins = [
            str if get_origin(kind) is Literal else get_origin(kind) or kind
            for kind in self.members
        ]
        return tuple(dict.fromkeys(origins))

    @property
    def choices(self) -> list[str]:
        """The texts that it may have, if it is a choice; else nothing."""
        literals = [kind for kind in self.members if get_origin(kind) is Literal]
        return [choice for literal in literals for choice in get_args(literal)]

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, and no texts."""
        return bool({int, float} & {*self.classes}) and str not in self.classes

    def read(self, text: str) -> Any:
        """Read a value from a word of a command line, or from a text of a file.

        Raises:
            BadInput: It cannot be read.
        """
        classes = self.classes
        if int in classes and WHOLE.fullmatch(text):
            return int(text)
        if str in classes:
            return text
        if tuple in classes:
            return (text,)
        if int in classes:
            self._refuse(f"{text!r} is not a whole number", "write digits only, for example 10")
        if float in classes:
            try:
                return self.unit.read(text)
            except ValueError as error:
                self._refuse(str(error), self.unit.remedy)
        if bool in classes:
            if text.lower() in SWITCHES:
                return SWITCHES[text.lower()]
            self._refuse(f"{text!r} is neither true nor false", "write one of them")
        try:
            return json.loads(text)
        except ValueError:
            self._refuse(f"{text!r} is not valid JSON", "write for example '{\"min_tokens\": 10}'")

    def of_file(self, value: Any) -> Any:
        """Convert what a file holds: 3 for "3", a text for a list of one, and a list for a text
        with commas.

        Raises:
            BadInput: It has another type.
        """
        classes = self.classes
        if self.listed and isinstance(value, list):
            return ",".join(map(str, value))
        if isinstance(value, str) and (self.is_number or classes[0] is bool):
            return self.read(value)
        if tuple in classes and isinstance(value, list | tuple):
            return tuple(str(item) if type(item) in (int, float) else item for item in value)
        if tuple in classes and isinstance(value, str) and str not in classes:
            return (value,)
        if type(value) in (int, float) and str in classes and int not in classes:
            return str(value)
        if type(value) is int and value in (0, 1) and classes[0] is bool:
            return bool(value)
        return float(value) if type(value) is int and float in classes else value

    def check_type(self, value: Any) -> None:
        """Check the type of a value. Choices and ranges are checked by `check`.

        Raises:
            BadInput: It has another type.
        """
        if isinstance(value, Integral) and not isinstance(value, bool):
            value = int(value)  # of NumPy
        if type(value) in self.classes and not isinstance(value, tuple):
            return
        texts = [str if get_origin(kind) is Literal else kind for kind in self.members]
        try:
            msgspec.convert(value, functools.reduce(operator.or_, texts))
        except msgspec.ValidationError:
            expected = " or ".join(EXPECTED[kind] for kind in self.classes if kind in EXPECTED)
            self._refuse(f"is a value of type {type(value).__name__}", f"give {expected}")

    def check(self, value: Any) -> None:
        """Check that a value is not empty, one of the choices, in range, and can be read.

        Raises:
            BadInput: It is not.
        """
        if value == "":
            self._refuse("is empty", "give a value, or leave it out")
        if self.choices and value is not None and value not in self.choices:
            self._refuse(f"unknown value {value!r}", f"choose from {', '.join(self.choices)}")
        if self.range is not None and not isinstance(value, str):
            self.range.check(setting(self.name), value)
        if self.form is not None:
            self.form.check(setting(self.name), value)
        if self.parse is not None and value is not None:
            self.parse(value)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        raise BadInput(setting(self.name), problem, remedy)


def option(default: Any, group: str, text: str, **about: Any) -> Any:
    """Declare a field of a settings class that is also a flag.

    Args:
        default: The value when the flag is not given.
        group: The topic of the flag.
        text: The help line.
        about: Further attributes of its `Option`.
    """
    return field(default=default, metadata={"option": Option(group=group, help=text, **about)})


def options_about(group: str) -> Callable[..., Any]:
    """Return what declares the options of a topic: `option` without its group."""

    def declared(default: Any, text: str, **about: Any) -> Any:
        return option(default, group, text, **about)

    return declared


@functools.cache
def options(settings: type) -> dict[str, Option]:
    """Return the options of a settings class by name."""
    return {
        field.name: structs.replace(
            field.metadata["option"], name=field.name, type=field.type, default=field.default
        )
        for field in fields(settings)
    }


def flag(name: str) -> str:
    """Return the flag of a field: request_rate -> --request-rate."""
    return "--" + name.replace("_", "-")


def argument(option: Option) -> dict[str, Any]:
    """Return how argparse takes the values of an option."""
    classes = option.classes
    if classes[0] is bool:  # a field that may also be None gets a --no- form
        return {"action": argparse.BooleanOptionalAction if len(classes) > 1 else "store_true"}
    if option.choices:
        return {"choices": option.choices}
    metavar = option.metavar or option.unit.metavar
    form: dict[str, Any] = {"metavar": metavar} if metavar else {}
    if tuple in classes:
        several = {"action": "append"} if str in classes else {"nargs": "+", "action": "extend"}
        return form | several
    return form | ({"action": "append"} if option.listed else {"type": option.read})


def check_options(
    settings: Any, implied: Mapping[str, Any] | None = None, part: type | None = None
) -> None:
    """Check each value of an instance of a settings class, and which are given together.

    Args:
        settings: The instance.
        implied: Values that others imply, by name: they count as not given.
        part: The settings class whose fields are checked; None: that of the instance.

    Raises:
        BadInput: The first that cannot be used.
    """
    declared = options(part or type(settings))
    given = {}
    for name, option in declared.items():
        value = getattr(settings, name)
        if value is option.default or value == option.default:
            continue
        if implied is None or value != implied.get(name):
            option.check(value)
            if value is not False:  # what is off conflicts with nothing
                given[name] = option
    for name, option in given.items():
        if option.needs and option.needs not in given:
            needed = setting(option.needs)
            raise BadInput(
                setting(name), f"given without {needed}", f"add {needed}, or leave it out"
            )
        for other in filter(given.__contains__, option.excludes):
            why = f", which {option.why}" if option.why else ""
            raise BadInput(
                setting(other),
                f"given together with {setting(name)}{why}",
                "leave one of the two out",
            )


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
