"""Engine arguments: knobs (`KNOB=VALUE`) and the engine's own flags, given in one list of words."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from loadgen.engines.kinds.knobs import KINDS, KNOBS, Knob, own_knobs
from loadgen.errors import BadInput

_BOOLEANS = {"true": True, "false": False}
_PARSERS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bool: lambda text: _BOOLEANS[text.lower()],
    dict: json.loads,
}


def split_engine_args(words: Sequence[str], own: Iterable[str] = ()) -> tuple[dict[str, object], list[str]]:
    """Split words into knobs, `KNOB=VALUE`, and the engine's own flags, which start with a dash.

    A flag may stand in one word with its values; that word is split as a shell does.

    Args:
        words: The words.
        own: Names of the knobs that the engine has; the values of those that engines do not share stay texts.

    Returns:
        The knobs, and the words of the flags.

    Raises:
        BadInput: A word is neither, names an unknown knob, or has a value of the wrong type.
    """
    knobs: dict[str, object] = {}
    raw: list[str] = []
    names = [*KNOBS, *own_knobs(own)]
    for word in words:
        if word.startswith("-"):
            raw += _split_flag(word)
            continue
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in names:
            remedy = f"write KNOB=VALUE, or a flag of the engine's own; the knobs are {', '.join(names)}"
            raise BadInput(name, f"{word!r} is neither a knob nor a flag", remedy)
        if name in knobs:
            raise BadInput(name, "is given twice", "give it once")
        knobs[name] = _parse_value(KNOBS[name], text) if name in KNOBS else text
    return knobs, raw


def _split_flag(word: str) -> list[str]:
    try:
        return shlex.split(word)
    except ValueError as error:
        raise BadInput(word.split()[0], f"{word!r} cannot be split into words ({error})", "close its quotes") from error


def _parse_value(knob: Knob, text: str) -> Any:
    try:
        return _PARSERS[knob.kind](text)
    except (KeyError, ValueError):
        raise BadInput(
            knob.name, f"{text!r} is not {KINDS[knob.kind]}", f"give {KINDS[knob.kind]}: {knob.help}"
        ) from None
