"""The base class of the parts of a study file, and their strict conversion with the place of each
error.

`Share`, `Hours` and `Seconds` are quantities that may be written with a unit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import itertools
import json
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from loadgen.errors import BadInput, Place
from loadgen.util.number_format import parse_seconds, parse_share

HOUR_S = 3600.0
_WITH_UNIT = {"type": ["number", "string"]}
MAX_SHOWN = 60  # characters of a refused value in its message
_KEYS = "write keys and values, `NAME: VALUE`; `loadgen tune schema` says which"
_REMEDIES: dict[type, str] = {
    str: "write a string, in quotes if YAML reads it as another type",
    int: "write a whole number",
    float: "write a number",
    list: "write a list, [A, B]",
    dict: _KEYS,
}
# Limits of `msgspec.Meta`: what must hold of a value and its limit, and what to write instead.
_LIMITS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("le", operator.le, "write {:g} or less"),
    ("lt", operator.lt, "write less than {:g}"),
    ("ge", operator.ge, "write {:g} or more"),
    ("gt", operator.gt, "write more than {:g}"),
    ("min_length", lambda value, limit: len(value) >= limit, "give {} or more"),
    ("max_length", lambda value, limit: len(value) <= limit, "give {} or fewer"),
)


class AtFault(BadInput):
    """An error in a study file, whose path is the place there."""

    @property
    def field(self) -> str:
        """The place, as keys with dots."""
        return ".".join(self.spelled(str(part)) for part in self.path)


class UnknownKey(AtFault):
    """A key that its mapping does not have."""


class Strict(msgspec.Struct, frozen=True):
    """A mapping with known keys and values of exact types.

    The types of its fields are annotated with `msgspec.Meta`: limits, descriptions for the JSON
    Schema, and in `extra` the functions `before`, which converts what the file holds, and `check`.
    These, and `__post_init__`, raise BadInput, without a field. Of several such types, a mapping
    has the one of which it has the only key that no other requires.
    """

    def as_json(self) -> dict[str, Any]:
        """Return the mapping with the keys of the file, as `convert` reads it."""
        # YAML has keys that are not text
        mapping: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(self)))
        return mapping


T = TypeVar("T", bound=Strict)


def convert(data: Any, kind: type[T], lines: Mapping[Place, int] = types.MappingProxyType({})) -> T:
    """Convert the contents of a file to a type.

    Args:
        data: The contents.
        kind: The type.
        lines: Line of each place in the file.

    Raises:
        AtFault: The error to show: an unknown key, which explains others, or else the first in the
            file.
    """
    reader = _Reader()
    model = reader.part(data, kind, ())
    if reader.faults:
        raise min(
            reader.faults,
            key=lambda fault: (not isinstance(fault, UnknownKey), line_of(fault.path, lines)),
        )
    assert isinstance(model, kind)
    return model


def line_of(at: Place, lines: Mapping[Place, int]) -> int:
    """Return the line of a place, or of what it is part of."""
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at, 1)


def suggestion(word: str, names: Sequence[str]) -> str:
    """Return "did you mean NAME?" for a name that is similar to a word; empty if there is none."""
    near = difflib.get_close_matches(word, names, 1)
    return f"did you mean {near[0]}?" if near else ""


def refused(problem: str, remedy: str) -> AtFault:
    """Return the error of a value that a check refuses; its place is added."""
    return AtFault((), problem, remedy)


def bare(kind: Any) -> tuple[Any, tuple[Any, ...], tuple[msgspec.Meta, ...]]:
    """Return a type without parameters and annotations, and these; a union is `Union`."""
    metas: tuple[msgspec.Meta, ...] = ()
    if get_origin(kind) is Annotated:
        metas = kind.__metadata__
        kind = kind.__origin__
    origin = get_origin(kind) or kind
    return Union if origin is types.UnionType else origin, get_args(kind), metas


@functools.cache
def fields(kind: type[Strict]) -> tuple[FieldInfo, ...]:
    """Return the fields of a type."""
    return msgspec.structs.fields(kind)


@dataclasses.dataclass
class _Reader:
    """Converts the parts of a study.

    Attributes:
        faults: What could not be used so far.
    """

    faults: list[AtFault] = dataclasses.field(default_factory=list)

    def part(self, data: Any, kind: Any, at: Place) -> Any:
        """Convert a part; what cannot be used is None, with an entry in `faults`."""
        try:
            return self._converted(data, kind, at)
        except AtFault as fault:
            fault.path = fault.path or at  # a check knows no place
            self.faults.append(fault)
        except BadInput as error:  # of a limit
            self.faults.append(AtFault(at, *error.texts))
        return None

    def _converted(self, data: Any, kind: Any, at: Place) -> Any:
        origin, parameters, metas = bare(kind)
        steps = [meta.extra or {} for meta in metas]
        for step in steps:
            data = step["before"](data) if "before" in step else data
        if origin is Any:
            return data
        if origin is Union:
            return self._one_of(
                [part for part in parameters if part is not types.NoneType], data, at
            )
        if origin is Literal:
            if data not in parameters:
                *others, last = map(repr, parameters)
                raise _invalid(data, f"write {', '.join(others)} or {last}", at)
            return data
        if issubclass(origin, Strict):
            return self._struct(data, origin, at)
        value = self._plain(data, origin, parameters, metas, at)
        for step in steps:
            if "check" in step:
                step["check"](value)
        return value

    def _plain(
        self,
        data: Any,
        origin: Any,
        parameters: tuple[Any, ...],
        metas: tuple[msgspec.Meta, ...],
        at: Place,
    ) -> Any:
        accepted: Any = (int, float) if origin is float else origin
        if isinstance(data, bool) or not isinstance(data, accepted):
            raise _invalid(data, _REMEDIES[origin], at)
        for (name, holds, remedy), meta in itertools.product(_LIMITS, metas):
            limit = getattr(meta, name)
            if limit is not None and not holds(data, limit):
                empty = "write something, or leave the key out"
                raise _invalid(data, empty if data == "" else remedy.format(limit), at)
        if origin is list:
            return [
                self.part(part, parameters[0], (*at, number)) for number, part in enumerate(data)
            ]
        if origin is dict:
            keys, values = parameters
            entries = [(key, value, (*at, str(key))) for key, value in data.items()]
            return {
                self.part(key, keys, place): self.part(value, values, place)
                for key, value, place in entries
            }
        try:
            return origin(data)
        except OverflowError as error:
            raise _invalid(data, _REMEDIES[origin], at) from error

    def _one_of(self, kinds: list[Any], data: Any, at: Place) -> Any:
        """Convert to the only type of an optional part, or to the type that the keys of a
        mapping choose.
        """
        if len(kinds) == 1:
            return None if data is None else self._converted(data, kinds[0], at)
        required: list[tuple[str, Any]] = []
        for kind in kinds:
            required += [(field.encode_name, kind) for field in fields(kind) if field.required]
        names = [name for name, _ in required]
        by_key = {name: kind for name, kind in required if names.count(name) == 1}
        keys = [name for name in by_key if isinstance(data, dict) and name in data]
        if len(keys) != 1:
            raise AtFault(at, f"needs exactly one of {', '.join(by_key)}", "write one of them")
        return self._struct(data, by_key[keys[0]], at)

    def _struct(self, data: Any, kind: type[Strict], at: Place) -> Any:
        if not isinstance(data, dict):
            raise _invalid(data, _KEYS, at)
        names = [field.encode_name for field in fields(kind)]
        for key in data:
            if key not in names:
                remedy = suggestion(str(key), names) or f"use {', '.join(names)}"
                raise UnknownKey((*at, str(key)), "unknown key", remedy)
        faults = len(self.faults)
        values = {}
        for field in fields(kind):
            name = field.encode_name
            if name in data:
                values[field.name] = self.part(data[name], field.type, (*at, name))
            elif field.required:
                self.faults.append(
                    AtFault(
                        (*at, name), "is missing", "give it; `loadgen tune schema` describes it"
                    )
                )
        return kind(**values) if len(self.faults) == faults else None


def _invalid(data: Any, remedy: str, at: Place) -> AtFault:
    if "env" in at:
        return AtFault(at, "invalid value", remedy)  # not shown: it may be a secret
    shown = repr(data)
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."
    return AtFault(at, f"invalid value {shown}", remedy)


def _share(value: Any) -> Any:
    if isinstance(value, str):
        if value.endswith("%"):
            with contextlib.suppress(ValueError):
                return parse_share(value)
        raise refused(
            f"{value!r} is not a share", "write a number from 0 to 1, or a percentage, as 5%"
        )
    if type(value) in (int, float) and 1 < value <= 100:
        raise refused(f"{value:g} is not a share", f"write {value / 100:g}, or {value:g}%")
    return value


def _time(unit_s: float, example: str) -> Callable[[Any], Any]:

    def converted(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value[-1:].isalpha():
            with contextlib.suppress(ValueError):
                return parse_seconds(value) / unit_s
        raise refused(f"{value!r} is not a time", f"write {example}")

    return converted


Share = Annotated[float, Meta(extra={"before": _share}, extra_json_schema=_WITH_UNIT)]

Hours = Annotated[
    float,
    Meta(
        extra={"before": _time(HOUR_S, "hours, as 0.5, or a time as 30m or 8h")},
        extra_json_schema=_WITH_UNIT,
    ),
]

Seconds = Annotated[
    float,
    Meta(
        extra={"before": _time(1.0, "seconds, as 600, or a time as 30s or 10m")},
        extra_json_schema=_WITH_UNIT,
    ),
]
