"""Shape: what a line of records and a result have to be, so that numbers can be computed of them.

Each file is checked once, where it is read. Keys that no number needs are not looked at.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What a single value is."""

    WHOLE = "an integer"
    COUNT = "an integer of 0 or more"
    NUMBER = "a number"
    TEXT = "a text"
    NUMERAL = "a number, or a text that is one"
    FLAG = "true or false"
    RANGE = "a first number and a count"
    ANY = "a value"


class Maybe(NamedTuple):
    """A value that may be null, or missing."""

    shape: "Shape"


class Each(NamedTuple):
    """An object, and the shape of all its values."""

    shape: "Shape"


Shape = Kind | Maybe | Each | list["Shape"] | Mapping[str, "Shape"]
LIMIT = 2**63  # of integers: times and counts have 64 bits
WHOLE, COUNT, NUMBER, TEXT, NUMERAL, FLAG, RANGE, ANY = Kind
MAYBE_WHOLE, MAYBE_COUNT, MAYBE_NUMBER = map(Maybe, (WHOLE, COUNT, NUMBER))
SENT: Mapping[str, Shape] = {"ready": WHOLE, "connect": WHOLE}
STREAMED: Mapping[str, Shape] = {"sent": WHOLE, "first_token": WHOLE, "last_token": WHOLE}
RECORD: Mapping[str, Shape] = {
    "index": COUNT,
    "outcome": TEXT,
    "due": WHOLE,
    "token_times": [WHOLE],
    "tokens_per_event": Maybe([COUNT]),
    "finish_reason": Maybe(TEXT),
    "turn": MAYBE_COUNT,
    "status": MAYBE_COUNT,
    "reads": MAYBE_COUNT,
    "nan_events": MAYBE_COUNT,
    **dict.fromkeys(("content_events", "reasoning_events", "other_events"), COUNT),
    **dict.fromkeys(("ready", "sent", "connect", "first_byte", "closed"), MAYBE_WHOLE),
    **dict.fromkeys(("first_token", "last_token"), MAYBE_WHOLE),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), MAYBE_COUNT),
    **dict.fromkeys(("planned_input_tokens", "planned_output_tokens"), MAYBE_COUNT),
}
SETTINGS: Shape = {
    "latency_from": TEXT,
    "seed": COUNT,
    "request_rate": Maybe(NUMERAL),
    "burstiness": Maybe(NUMERAL),
    "result_dir": Maybe(TEXT),
    "result_filename": Maybe(TEXT),
}
PROVENANCE: Shape = {
    "settings": SETTINGS,
    "seeds": {"arrivals": COUNT},
    "prompts": Each(ANY),
    "schedule": {
        "sha256": TEXT,
        "requests": COUNT,
        "sessions": COUNT,
        "duration_s": MAYBE_NUMBER,
    },
}
HEAD: Shape = {"scheduled": COUNT, "heading": {"provenance": PROVENANCE, "settings": SETTINGS}}
END: Shape = {"end": {"never_sent": Maybe([RANGE])}}
CHECK: Shape = {
    "name": TEXT,
    "group": TEXT,
    "ok": Maybe(FLAG),
    "measured": MAYBE_NUMBER,
    "allowed": MAYBE_NUMBER,
    "comparison": Maybe(TEXT),
    "counts": FLAG,
}
RESULT: Shape = {
    "loadgen": {
        "verdict": TEXT,
        "checks": [CHECK],
        "latency_ms": Each(Each(ANY)),
        "timeline": Maybe({"width_s": MAYBE_NUMBER}),
        "workers": [{"number": COUNT, "schedule_sha256": ANY}],
        "provenance": PROVENANCE,
    }
}


def misfit(value: Any, shape: Shape, name: str = "") -> str | None:
    """Return what of a value does not have a shape, in words; None: it has it.

    Args:
        value: From JSON, with decimals for floats.
        shape: What it should be.
        name: What the value is called.
    """
    parts: Sequence[tuple[Any, Shape, str]] = ()
    if isinstance(shape, Maybe):
        return None if value is None else misfit(value, shape.shape, name)
    if isinstance(shape, Kind):
        wanted = None if _is(value, shape) else shape.value
    elif isinstance(shape, list):
        wanted = None if isinstance(value, list) else "a list"
        parts = [] if wanted else [(v, shape[0], f"{name}.{i}") for i, v in enumerate(value)]
    else:
        wanted = None if isinstance(value, dict) else "an object"
        path = f"{name}." if name else ""
        if wanted is None and isinstance(shape, Each):
            parts = [(item, shape.shape, path + key) for key, item in value.items()]
        elif wanted is None and isinstance(shape, Mapping):
            parts = [(value.get(key), item, path + key) for key, item in shape.items()]
    if wanted is not None:
        return f"{name or 'it'} is {_shown(value)}, not {wanted}"
    return next(filter(None, (misfit(*part) for part in parts)), None)


def misfit_of_record(line: Any) -> str | None:
    """Return what of a line is not that of a request, in words; None: it is one."""
    wrong = misfit(line, RECORD)
    if wrong is None and line["token_times"]:
        wrong = misfit(line, STREAMED)
    if wrong is None and line.get("sent") is not None and "attempts" not in line:
        wrong = misfit(line, SENT)
    per_event = None if wrong else line.get("tokens_per_event")
    if per_event is not None and len(per_event) != len(line["token_times"]):
        wrong = (
            f"tokens_per_event has {len(per_event)} items, token_times {len(line['token_times'])}"
        )
    return wrong


def _is(value: Any, kind: Kind) -> bool:
    if isinstance(value, bool):
        return kind in (Kind.FLAG, Kind.ANY)
    match kind:
        case Kind.WHOLE:
            return isinstance(value, int) and -LIMIT <= value < LIMIT
        case Kind.COUNT:
            return isinstance(value, int) and 0 <= value < LIMIT
        case Kind.NUMBER:
            return isinstance(value, int | Decimal)
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.NUMERAL:
            return isinstance(value, int | Decimal) or _is_numeral(value)
        case Kind.RANGE:
            pair = isinstance(value, list) and len(value) == 2
            return pair and all(_is(part, Kind.COUNT) for part in value)
        case Kind.FLAG:
            return False
        case Kind.ANY:
            return True


def _is_numeral(value: Any) -> bool:
    try:
        return value == "inf" or (isinstance(value, str) and math.isfinite(float(value)))
    except ValueError:
        return False


def _shown(value: Any) -> str:
    if value is None:
        return "null or missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:40]
