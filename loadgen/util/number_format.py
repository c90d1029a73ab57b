"""Format numbers with units for people, the same way everywhere, and parse numbers and times.

None is shown as n/a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

N = TypeVar("N", int, float)
UNKNOWN = "n/a"
SHARE = "share"  # the unit of a share of 1, which `quantity` shows as a percentage
LONG_MS = 10_000.0  # latencies from here on are shown in seconds
# Of `parse_seconds`.
TIME_UNITS_S = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

# What parses a text raises a ValueError with the reason where it cannot.


def percentile(p: float) -> str:
    """Format the name of a percentile: 99.0 -> "p99", 99.9 -> "p99.9"."""
    return f"p{int(p) if p == int(p) else p}"


def to_ms(ns: float | None) -> float | None:
    """Convert nanoseconds to milliseconds; None stays None."""
    return None if ns is None else ns / 1e6


def ms(ns: float | None) -> str:
    """Format nanoseconds as milliseconds with the unit: 1_500_000 -> "1.500 ms"."""
    return fixed(to_ms(ns), unit="ms")


def in_ms(ns: float | None) -> str:
    """Format nanoseconds as milliseconds with four significant digits: 1_500_000 -> "1.5 ms"."""
    return four_digits(to_ms(ns), "ms")


def fixed(value: float | None, digits: int = 3, unit: str = "") -> str:
    """Format a number with a fixed number of decimals: 1.5 -> "1.500"."""
    return _with_unit(value, f".{digits}f", unit)


def four_digits(value: float | None, unit: str = "") -> str:
    """Format a number with four significant digits, or all before the point: 37.0213 -> "37.02",
    1568.4 -> "1568".
    """
    return _with_unit(value, ".4g" if value is None or abs(value) < 9999.5 else ".0f", unit)


def in_percent(share: float) -> str:
    """Format a share of 1 as a percentage with four significant digits: 0.12345 -> "12.35%"."""
    return f"{four_digits(round(100 * share, 4))}%"


def quantity(value: float, unit: str) -> str:
    """Format a number of a unit with four significant digits; a SHARE as a percentage."""
    return in_percent(value) if unit == SHARE else four_digits(value, unit)


def in_table(value: float | None, unit: str = "") -> str:
    """Format a number with four significant digits for a table, zeros included: 8.01 -> "8.010",
    1568.4 -> "1568".
    """
    return _with_unit(value, "#.4g" if value is not None and abs(value) < 999.95 else ".0f", unit)


def three_digits(value: float | None, unit: str = "") -> str:
    """Format a number with three significant digits, or all before the point: 37.0213 -> "37",
    1568.4 -> "1568".
    """
    return _with_unit(value, ".3g" if value is None or abs(value) < 999.5 else ".0f", unit)


def in_one_unit(*ms: float | None) -> list[str]:
    """Format latencies in ms in one unit, seconds from ten on: "380 ms", "38.4 s"."""
    finite = [value for value in ms if value is not None and math.isfinite(value)]
    size, unit = (1e3, "s") if max(finite, default=0.0) >= LONG_MS else (1.0, "ms")
    return [three_digits(None if value is None else value / size, unit) for value in ms]


def latency(ms: float | None) -> str:
    """Format a latency: "380 ms", "38.4 s"."""
    return in_one_unit(ms)[0]


def rounded_up(value: float) -> str:
    """Format a number with two significant digits, none of which makes it less: 0.0611 ->
    "0.062", 19.2 -> "20".
    """
    if not value:
        return "0"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    raised = math.ceil(value / step - 1e-9) * step
    return f"{raised:.2g}" if step < 1 else f"{raised:.0f}"


def first_of(texts: Sequence[str], most: int) -> str:
    """List texts, and how many more there are beyond `most`: "a, b and 2 more"."""
    more = len(texts) - most
    return f"{', '.join(texts[:most])} and {more} more" if more > 0 else ", ".join(texts)


def brief(value: float) -> str:
    """Format a number with one decimal from 100 on, else with four digits: "3,019.2", "12.35",
    "0.04512".
    """
    return f"{value:,.1f}" if abs(value) >= 100 else four_digits(value)


def _with_unit(value: float | None, form: str, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:{form}} {unit}".rstrip()


def plural(number: int, noun: str) -> str:
    """Format a count with its noun: "1 request", "2 requests"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def signed(share: float, digits: int = 1) -> str:
    """Format a change as a percentage with its sign: 0.125 -> "+12.5%"."""
    text = f"{share:+.{digits}%}"
    return text[1:] if float(text[:-1]) == 0 else text


def percent(share: float | None, digits: int = 0) -> str:
    """Format a share of 1 as a percentage: 0.125 -> "12%"."""
    return UNKNOWN if share is None else f"{share:.{digits}%}"


def duration(seconds: float) -> str:
    """Format a time with its unit: "0.3 s", "4 min", "2.5 h"."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}".replace(
                ".0 ", " "
            )
    return f"{seconds:.{1 if seconds < 10 else 0}f} s".replace(".0 ", " ")


def duration_range(low: float, high: float) -> str:
    """Format a range of times in seconds: "3 to 5 min", "50 s to 2 min"; a single time where
    both read the same.
    """
    first, last = duration(low), duration(high)
    number, unit = first.split()
    return value_range(number if unit == last.split()[1] and first != last else first, last)


def value_range(low: object, high: object) -> str:
    """Format a range of values: "2 to 3"; a single value where both are the same."""
    return " to ".join(dict.fromkeys((str(low), str(high))))


def bounds(
    low: float | None,
    high: float | None,
    write: Callable[[float], str],
    above: str = "{} or more",
    below: str = "{} or less",
    unknown: str = "unknown",
) -> str:
    """Format the bounds of a value: "2 to 3", or what is said where one or both are None."""
    if low is None:
        return unknown if high is None else below.format(write(high))
    return above.format(write(low)) if high is None else f"{write(low)} to {write(high)}"


def clock_time(seconds: float) -> str:
    """Format a time in whole seconds like a clock: "0:42", "1:02:03"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def parse_number(text: str) -> float:
    """Parse a number. Infinity must be written as such: a number too large for a float is an error.

    Raises:
        ValueError: With the reason.
    """
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(f"{text!r} is too large")
    return value


def parse_whole_number(text: str) -> int:
    """Parse a whole number of digits alone, without a sign.

    Raises:
        ValueError: With the reason.
    """
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_range(text: str, parse: Callable[[str], N]) -> tuple[N, N] | None:
    """Parse a number, or MIN:MAX, and return both ends; None if it is neither, or MIN is above MAX.

    Args:
        text: The text.
        parse: Parses one number; raises ValueError for what is none.
    """
    low, colon, high = text.partition(":")
    try:
        ends = parse(low), parse(high if colon else low)
    except ValueError:
        return None
    return ends if ends[0] <= ends[1] else None


def parse_share(text: str) -> float:
    """Parse a share of 1 and return it: 0.25, 25%. Its range is not checked.

    Raises:
        ValueError: With the reason.
    """
    digits = text.strip().removesuffix("%")
    try:
        share = parse_number(digits)
    except ValueError:
        raise ValueError(f"{text!r} is not a share") from None
    return share / 100 if digits != text.strip() else share


def parse_seconds(text: str) -> float:
    """Parse a time and return seconds: 30, 30s, 500ms, 2m, 1h.

    Raises:
        ValueError: With the reason.
    """
    text = text.strip()
    unit = max((unit for unit in TIME_UNITS_S if text.endswith(unit)), key=len)
    digits = text.removesuffix(unit)
    try:
        float(digits)
    except ValueError:
        raise ValueError(f"{text!r} is not a time") from None
    return parse_number(digits) * TIME_UNITS_S[unit]
