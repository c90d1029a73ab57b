"""A flag of another tool's command line, and its translation into settings."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from loadgen.config.option import flag as spelled
from loadgen.errors import BadInput, Place, setting
from loadgen.util.argument_parser import OneLineParser, integer, number

Settings = Mapping[str, Any]
Convert = Callable[[Any, Settings], dict[str, Any]]
NONE, ONE, SOME = "none", "one", "some"  # how many values a flag takes
# the beginning of markers: what flags leave in the settings for later ones, and is removed at the
# end
MARK = "_"
DEST = "tool_flags"  # the attribute of a namespace that holds such flags


class ToolFlag(Struct, frozen=True):
    """A flag of another tool.

    Attributes:
        name: The flag, with dashes.
        convert: Makes settings from its value and the settings so far; None: the flag is refused.
        reason: Why it is refused.
        remedy: What to do instead of a refused flag.
        values: How many values it takes: NONE, ONE or SOME.
        type_: Converts a word of the command line into a value.
        no_op_value: The value that changes nothing, also if the flag is refused; None: there is
            none.
        command: The command of loadgen that `loadgen run` carries out in its place; "" for none.
        becomes: The settings that it becomes later, once all flags are known.
        text: Its help line, if help lists it among loadgen's own flags of data sets.
    """

    name: str
    convert: Convert | None
    reason: str = ""
    remedy: str = ""
    values: str = ONE
    type_: Callable[[str], Any] = str
    no_op_value: Any = None
    command: str = ""
    becomes: tuple[str, ...] = ()
    text: str = argparse.SUPPRESS

    def fields(self, value: Any, settings: Settings) -> dict[str, Any]:
        """Convert a value of the flag into settings.

        Raises:
            BadInput: It is refused, or the value is wrong.
        """
        if self.no_op_value is not None and value == self.no_op_value:
            return {}
        if self.convert is None:
            raise BadInput(self.name, self.reason, self.remedy)
        return self.convert(value, settings)

    def settings(self, value: Any) -> tuple[str, ...]:
        """Return the names of the settings that the flag with this value sets."""
        try:
            return (*self.becomes, *self.fields(value, {}))
        except BadInput:  # it is refused, or the value itself is wrong
            return self.becomes


def switch(
    name: str, fields: dict[str, Any], values: str = NONE, becomes: tuple[str, ...] = ()
) -> ToolFlag:
    """Return a flag that stands for these settings, whatever its values are; no settings: it
    changes nothing.
    """
    return ToolFlag(name, lambda value, settings: fields, values=values, becomes=becomes)


def renamed(name: str, field: str, type_: Callable[[str], Any] = str) -> ToolFlag:
    """Return a flag that has another name here, or other values, which `type_` converts."""
    return ToolFlag(name, lambda value, settings: {field: value}, type_=type_)


def appended(
    name: str, field: str, form: str, type_: Callable[[str], Any] = str, no_op_value: Any = None
) -> ToolFlag:
    """Return a flag that adds its value, in this form, to a setting with several texts."""

    def convert(value: Any, settings: Settings) -> dict[str, Any]:
        return {field: (*settings.get(field, ()), form.format(value))}

    return ToolFlag(name, convert, type_=type_, no_op_value=no_op_value)


def refused(
    name: str, reason: str, remedy: str, values: str = ONE, no_op_value: Any = None
) -> ToolFlag:
    """Return a flag that is not supported here."""
    types: dict[type, Callable[[str], Any]] = {int: integer, float: number}
    return ToolFlag(
        name, None, reason, remedy, values, types.get(type(no_op_value), str), no_op_value
    )


def other_command(name: str, reason: str, command: str, values: str = NONE) -> ToolFlag:
    """Return a flag that makes the command line one of another command."""
    return ToolFlag(name, None, reason, f"use `loadgen {command}`", values, command=command)


def command_of(settings: Settings) -> tuple[str, Any] | None:
    """Return the other command that a flag stands for, and the value of that flag; None if there
    is none.
    """
    return next(
        ((flag.command, value) for flag, value in settings.get(DEST, ()) if flag.command), None
    )


def without_commands(settings: Settings) -> dict[str, Any]:
    """Return the settings without the flags that stand for another command."""
    return {**settings, DEST: tuple(item for item in settings[DEST] if not item[0].command)}


def names_a_server(settings: Settings) -> bool:
    """Whether the settings name a server or an engine, other than by --host and --port."""
    return bool(settings.get("base_url") or settings.get("engine"))


def body_field(
    name: str,
    setting: str,
    field: str,
    values: str = ONE,
    type_: Callable[[str], Any] = str,
    becomes: tuple[str, ...] = (),
) -> ToolFlag:
    """Return a flag that sets a field of the JSON object in a setting."""

    def convert(value: Any, settings: Settings) -> dict[str, Any]:
        return {setting: (settings.get(setting) or {}) | {field: True if values == NONE else value}}

    return ToolFlag(name, convert, values=values, type_=type_, becomes=becomes)


def marked(
    marker: str,
    name: str,
    type_: Callable[[str], Any] = str,
    becomes: tuple[str, ...] = (),
    values: str = ONE,
) -> ToolFlag:
    """Return a flag that is kept in a marker until all flags are known."""
    return body_field(name, marker, name, values, type_, becomes)


def one_or_several(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of one value, or of several with commas between them as a tuple."""

    def read(text: str) -> Any:
        values = tuple(kind(item.strip()) for item in text.split(","))
        return values if len(values) > 1 else values[0]

    return read


def with_fields(settings: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with fields that a tool puts into every request body; those of the
    user win.
    """
    return settings | {"extra_body": fields | (settings.get("extra_body") or {})}


def add_flags(
    parser: OneLineParser, group: "argparse._ArgumentGroup", flags: Sequence[ToolFlag]
) -> None:
    """Add the flags to a group of a parser; its help lists few of them, and it suggests none that
    is refused.
    """
    parser.not_suggested = frozenset(flag.name for flag in flags if flag.convert is None)
    for flag in flags:
        options: dict[str, Any] = {} if flag.values == NONE else {"type": flag.type_}
        if flag.values != ONE:
            options["nargs"] = 0 if flag.values == NONE else "*"
        if flag.text != argparse.SUPPRESS:
            options["metavar"] = "TOKENS"
        group.add_argument(
            flag.name, action=_AppendFlag, const=flag, dest=DEST, help=flag.text, **options
        )


def translated(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the flags of another tool translated; the later of two for one
    setting wins.

    Raises:
        BadInput: A flag is refused.
    """
    result = dict(settings)
    for flag, value in result.pop(DEST, ()):
        result |= flag.fields(value, result)
    return result


def places(settings: Settings) -> dict[str, Place]:
    """Return, for `written_as`, the flag of another tool that the user wrote for each setting, if
    it is not that of loadgen.

    Args:
        settings: The settings from flags and files, with the flags of the tool as they are.
    """
    written = settings.get(DEST, ())
    names = {flag.name for flag, _ in written}
    by_setting = {name: flag.name for flag, value in written for name in flag.settings(value)}
    return {
        setting(name): (flag,) for name, flag in by_setting.items() if spelled(name) not in names
    }


class _AppendFlag(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        setattr(namespace, DEST, (*getattr(namespace, DEST, ()), (self.const, values)))
