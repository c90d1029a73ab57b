"""Engine list: the engines, their installed versions, and the name that each has for the engine-neutral knobs."""

from collections.abc import Iterable
from typing import Any

from loadgen.engines.kinds.engine import Engine
from loadgen.engines.kinds.knobs import KNOBS

NOT_FOUND = "-"


def engine_list(engines: Iterable[Engine]) -> dict[str, Any]:
    """Return the list as JSON: engines by name, and the meaning of the knobs; no package of an engine is imported.

    The version of an engine is None if it is not installed, or if its version is unknown.
    """
    return {
        "engines": {each.name: {"version": each.version(), "knobs": dict(each.knobs())} for each in engines},
        "knobs": {knob.name: {"type": knob.kind.__name__, "help": knob.help} for knob in KNOBS.values()},
    }


def as_text(listed: dict[str, Any]) -> str:
    """Return the list as text: a line for each engine, then a paragraph for each knob."""
    engines = listed["engines"]
    width = max(map(len, engines), default=0)
    lines = [f"{'engine':<{width}}  installed version"]
    lines += [f"{name:<{width}}  {engine['version'] or NOT_FOUND}" for name, engine in engines.items()]
    for knob, about in listed["knobs"].items():
        lines += ["", f"{knob} ({about['type']}): {about['help']}"]
        engines_by_name: dict[str, list[str]] = {}
        for name, engine in engines.items():
            if knob in engine["knobs"]:
                engines_by_name.setdefault(engine["knobs"][knob], []).append(name)
        lines += [f"    {', '.join(names)}: {own}" for own, names in engines_by_name.items()]
    return "\n".join(lines)
