"""Engine list: the engines, their installed versions, and the name that each has for the engine-neutral knobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.engines.kinds.engine import Engine
from loadgen.engines.kinds.knobs import KNOBS

NOT_FOUND = "-"


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine of the list.

    Attributes:
        version: The installed version; None: the engine is not installed, or its version is unknown.
        knobs: Engine-neutral name to the engine's own name.
    """

    name: str
    version: str | None
    knobs: Mapping[str, str]

    @classmethod
    def from_engine(cls, engine: Engine) -> "EngineRow":
        """Return the row of an engine; none of the engine's packages is imported."""
        return cls(engine.name, engine.version(), engine.knobs())


def as_json(rows: list[EngineRow]) -> dict[str, Any]:
    """Return the list as JSON: engines by name, and the meaning of the knobs."""
    return {
        "engines": {row.name: {"version": row.version, "knobs": dict(row.knobs)} for row in rows},
        "knobs": {knob.name: {"type": knob.kind.__name__, "help": knob.help} for knob in KNOBS.values()},
    }


def as_text(rows: list[EngineRow]) -> str:
    """Return the list as text: a line for each engine, then a paragraph for each knob."""
    width = max((len(row.name) for row in rows), default=0)
    lines = [f"{'engine':<{width}}  installed version"]
    lines += [f"{row.name:<{width}}  {row.version or NOT_FOUND}" for row in rows]
    for knob in KNOBS.values():
        lines += ["", f"{knob.name} ({knob.kind.__name__}): {knob.help}"]
        engines_by_name: dict[str, list[str]] = {}
        for row in rows:
            if knob.name in row.knobs:
                engines_by_name.setdefault(row.knobs[knob.name], []).append(row.name)
        lines += [f"    {', '.join(names)}: {own}" for own, names in engines_by_name.items()]
    return "\n".join(lines)
