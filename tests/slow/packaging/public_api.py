"""The public names of the library and their signatures; `python -m
tests.slow.packaging.public_api` records them.
"""

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import loadgen
import loadgen.engines
import loadgen.pytest_plugin
from loadgen.core.sketch import Sketch

PLAIN = (str, int, float, tuple, Sketch, type(None))
RECORDED = Path(__file__).with_name("public_api.txt")
PLUGIN = ("loadgen_run", "loadgen_run_async", "SuspectRun")


def lines() -> Iterator[str]:
    """A line for each name, each public attribute of a class, and each of their parameters'
    defaults.
    """
    for module, names in ((loadgen, loadgen.__all__), (loadgen.engines, loadgen.engines.__all__)):
        for name in (name for name in names if name != "__version__"):
            yield from _described(f"{module.__name__}.{name}", getattr(module, name))
    for name in PLUGIN:
        assert hasattr(loadgen.pytest_plugin, name)
        yield f"loadgen.pytest_plugin.{name}"


def _described(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield f"{name}{_signature(thing)}"
        return
    if issubclass(thing, enum.Enum):
        yield f"{name}: {', '.join(thing.__members__)}"
        return
    fields = _fields(thing)
    yield name if fields else f"{name}{_signature(thing)}"
    for field, default in fields.items():
        yield f"{name}.{field}{default}"
    for attribute in sorted(set(dir(thing)) - set(dir(Exception)) - fields.keys()):
        if not attribute.startswith("_"):
            value = inspect.getattr_static(thing, attribute)
            value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            yield f"{name}.{attribute}{_signature(value) if callable(value) else ''}"


def _signature(thing: Any) -> str:
    """Parameters and defaults, without annotations, which Python versions spell differently."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # of what is compiled, or an exception's own
        return "(...)"
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    shown = [
        one.replace(default=_Shown("..."))
        if callable(one.default) and one.default is not one.empty
        else one
        for one in plain
    ]
    return str(inspect.Signature(shown))


def _fields(thing: type) -> dict[str, str]:
    """The fields of a dataclass or a struct, with their defaults as text; nothing of another
    class.
    """
    if dataclasses.is_dataclass(thing):
        return {field.name: _default(field) for field in dataclasses.fields(thing)}
    if issubclass(thing, msgspec.Struct):  # those without a default come first
        names, defaults = thing.__struct_fields__, thing.__struct_defaults__
        required = dict.fromkeys(names[: len(names) - len(defaults)], "")
        return required | {
            name: _struct_default(default)
            for name, default in zip(names[len(required) :], defaults, strict=True)
        }
    return {}


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {field.default!r}" if isinstance(field.default, PLAIN) else " = ..."
    return " = ..." if field.default_factory is not dataclasses.MISSING else ""


def _struct_default(default: object) -> str:
    if default is msgspec.NODEFAULT:
        return ""
    return f" = {default!r}" if isinstance(default, PLAIN) else " = ..."


class _Shown(str):
    """A default that is shown as it stands: a function's own repr has an address in it."""

    def __repr__(self) -> str:
        return str(self)


def main() -> None:
    """Record them."""
    RECORDED.write_text("\n".join(lines()) + "\n")


if __name__ == "__main__":
    main()
