"""Listing: the engines that there are, what is installed of them, and what each calls the engine-neutral knobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.engines.engine import Engine
from loadgen.engines.knobs import KNOBS

NOT_FOUND = "-"


@dataclass(frozen=True, slots=True)
class Row:
    """One engine.

    Attributes:
        name: In commands.
        version: Of what is installed here; None: nothing is found, or its version is not.
        knobs: Engine-neutral name to its own.
    """

    name: str
    version: str | None
    knobs: Mapping[str, str]

    @classmethod
    def of(cls, engine: Engine) -> "Row":
        """Ask an engine; none of its packages is imported."""
        return cls(engine.name, engine.version(), engine.knobs())


def as_json(rows: list[Row]) -> dict[str, Any]:
    """Engines by name, and what the knobs mean."""
    return {
        "engines": {row.name: {"version": row.version, "knobs": dict(row.knobs)} for row in rows},
        "knobs": {knob.name: {"type": knob.kind.__name__, "help": knob.help} for knob in KNOBS.values()},
    }


def as_text(rows: list[Row]) -> str:
    """The same for people: a line for each engine, then a paragraph for each knob."""
    width = max((len(row.name) for row in rows), default=0)
    lines = [f"{'engine':<{width}}  installed version"]
    lines += [f"{row.name:<{width}}  {row.version or NOT_FOUND}" for row in rows]
    for knob in KNOBS.values():
        lines += ["", f"{knob.name} ({knob.kind.__name__}): {knob.help}"]
        called: dict[str, list[str]] = {}
        for row in rows:
            if knob.name in row.knobs:
                called.setdefault(row.knobs[knob.name], []).append(row.name)
        lines += [f"    {', '.join(names)}: {own}" for own, names in called.items()]
    return "\n".join(lines)
