"""Quantities of a study file that may have a unit: shares, and times."""

import contextlib
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from loadgen.lab.study.spec.strict_model import refused
from loadgen.util.number_format import parse_seconds, parse_share

HOUR_S = 3600.0


def _share(value: Any) -> Any:
    if isinstance(value, str):
        if value.endswith("%"):
            with contextlib.suppress(ValueError):
                return parse_share(value)
        raise refused(f"{value!r} is not a share", "write a number from 0 to 1, or a percentage, as 5%")
    if type(value) in (int, float) and 1 < value <= 100:
        raise refused(f"{value:g} is not a share", f"write {value / 100:g}, or {value:g}%")
    return value


def _time(unit_s: float, example: str) -> Callable[[Any], Any]:

    def converted(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value[-1:].isalpha():
            with contextlib.suppress(ValueError):
                return parse_seconds(value) / unit_s
        raise refused(f"{value!r} is not a time", f"write {example}")

    return converted


_WITH_UNIT = {"type": ["number", "string"]}
Share = Annotated[float, Meta(extra={"before": _share}, extra_json_schema=_WITH_UNIT)]
Hours = Annotated[
    float, Meta(extra={"before": _time(HOUR_S, "hours, as 0.5, or a time as 30m or 8h")}, extra_json_schema=_WITH_UNIT)
]
Seconds = Annotated[
    float, Meta(extra={"before": _time(1.0, "seconds, as 600, or a time as 30s or 10m")}, extra_json_schema=_WITH_UNIT)
]
