"""Words: how numbers are named and written, the same wherever one reads them. What was not measured is n/a."""

import math

UNKNOWN = "n/a"
UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}  # of a time that is read, in seconds


def percentile(p: float) -> str:
    """The name of a percentile: 99.0 -> "p99", 99.9 -> "p99.9"."""
    return f"p{int(p) if p == int(p) else p}"


def to_ms(ns: float | None) -> float | None:
    """Nanoseconds in milliseconds."""
    return None if ns is None else ns / 1e6


def ms(ns: float | None) -> str:
    """Nanoseconds as milliseconds, with their unit: 1_500_000 -> "1.500 ms"."""
    return fixed(to_ms(ns), unit="ms")


def fixed(value: float | None, digits: int = 3, unit: str = "") -> str:
    """A number with so many digits after the point: 1.5 -> "1.500"."""
    return _with_unit(value, f".{digits}f", unit)


def four(value: float | None, unit: str = "") -> str:
    """A number in four digits, or more where it is 10,000 and above: 37.0213 -> "37.02", 1568.4 -> "1568"."""
    return _with_unit(value, ".4g" if value is None or abs(value) < 9999.5 else ".0f", unit)


def brief(value: float) -> str:
    """Format a number with one decimal from 100 on, else with four digits: "3,019.2", "12.35", "0.04512"."""
    return f"{value:,.1f}" if abs(value) >= 100 else four(value)


def _with_unit(value: float | None, form: str, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:{form}} {unit}".rstrip()


def plural(number: int, noun: str) -> str:
    """So many of something: "1 request", "2 requests"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def signed(share: float, digits: int = 1) -> str:
    """A change as a percentage, with so many digits after the point: 0.125 -> "+12.5%"."""
    shown = f"{share:+.{digits}%}"
    return shown[1:] if float(shown[:-1]) == 0 else shown


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 1 as a percentage, with so many digits after the point: 0.125 -> "12%"."""
    return UNKNOWN if share is None else f"{share:.{digits}%}"


def duration(seconds: float) -> str:
    """A time for people: "0.3 s", "4 min", "2.5 h"."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}".replace(".0 ", " ")
    return f"{seconds:.{1 if seconds < 10 else 0}f} s".replace(".0 ", " ")


def durations(least: float, most: float) -> str:
    """A time between two, in seconds: "3 to 5 min", "50 s to 2 min"; one where both are said alike."""
    first, last = duration(least), duration(most)
    number, unit = first.split()
    return between(number if unit == last.split()[1] and first != last else first, last)


def between(least: object, most: object) -> str:
    """ "2 to 3", or the one where both are the same."""
    return " to ".join(dict.fromkeys((str(least), str(most))))


def minutes(seconds: float) -> str:
    """A time as clocks show it, in whole seconds: "0:42", "1:02:03"."""
    whole, rest = divmod(round(seconds), 60)
    hours, whole = divmod(whole, 60)
    return f"{hours}:{whole:02}:{rest:02}" if hours else f"{whole}:{rest:02}"


def number(text: str) -> float:
    """A number as it is written; infinity only where that is what was written.

    Raises:
        ValueError: Saying why it is none.
    """
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if math.isinf(found) and "inf" not in text.lower():
        raise ValueError(f"{text!r} is too large")
    return found


def seconds(text: str) -> float:
    """A time as it is written, in seconds: 30, 30s, 500ms, 2m, 1h.

    Raises:
        ValueError: Saying why it is none.
    """
    text = text.strip()
    unit = max((unit for unit in UNITS if text.endswith(unit)), key=len)
    digits = text.removesuffix(unit)
    try:
        float(digits)
    except ValueError:
        raise ValueError(f"{text!r} is no time") from None
    return number(digits) * UNITS[unit]
