"""Given: knobs and raw flags as one list of words on a command line or in a file."""

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from loadgen.engines.knobs import KINDS, KNOBS, Knob
from loadgen.errors import BadInput

_SWITCH = {"true": True, "false": False}
_READ: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bool: lambda text: _SWITCH[text.lower()],
    dict: json.loads,
}


def given(words: Sequence[str]) -> tuple[dict[str, object], list[str]]:
    """Tell engine-neutral knobs, KNOB=VALUE, from flags of the engine's own, which begin with a dash.

    Flags may stand in one word with their values, which is cut as a shell does.

    Raises:
        BadInput: A word is neither, is a knob that there is not, or has no value of the knob's kind.
    """
    knobs: dict[str, object] = {}
    raw: list[str] = []
    for word in words:
        if word.startswith("-"):
            raw += _cut(word)
            continue
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in KNOBS:
            remedy = f"write KNOB=VALUE, or a flag of the engine's own; the knobs are {', '.join(KNOBS)}"
            raise BadInput(name, f"{word!r} is no knob and no flag", remedy)
        if name in knobs:
            raise BadInput(name, "is given twice", "give it once")
        knobs[name] = _value(KNOBS[name], text)
    return knobs, raw


def _cut(word: str) -> list[str]:
    try:
        return shlex.split(word)
    except ValueError as error:
        raise BadInput(word.split()[0], f"{word!r} cannot be cut into words ({error})", "close its quotes") from error


def _value(knob: Knob, text: str) -> Any:
    try:
        return _READ[knob.kind](text)
    except (KeyError, ValueError):
        raise BadInput(
            knob.name, f"{text!r} is not {KINDS[knob.kind]}", f"give {KINDS[knob.kind]}: {knob.help}"
        ) from None
