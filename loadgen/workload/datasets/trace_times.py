"""The times of a trace: their units, those within a run, and those that are hardly meant."""

import bisect
import datetime
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S

logger = logging.getLogger("loadgen")
COLUMN = setting.trace_column
NS_PER_MS = 1_000_000
FEW_ROWS = 10  # times of fewer requests show nothing
MANY_REQUESTS_PER_S = 1000  # no trace of one service has so many
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def columns_of(settings: RunSettings, fields: Sequence[str]) -> dict[str, str]:
    """Return the columns of `--trace-column` by their field.

    Args:
        settings: The settings of the run.
        fields: The fields that have a column.

    Raises:
        BadInput: A field is unknown, or its column is empty.
    """
    columns = dict(pair.partition("=")[::2] for pair in settings.trace_column)
    for name, column in columns.items():
        if name not in fields or not column:
            problem = f"unknown field or empty column in {name!r}"
            raise BadInput(COLUMN, problem, f"write FIELD=COLUMN with {', '.join(fields)}")
    return columns


def time_ns(value: Any, unit_ns: int | None) -> int:
    """Convert a time to ns.

    Args:
        value: The time.
        unit_ns: How long a time of 1 is, ns; None: times are dates.

    Raises:
        ValueError, TypeError: It is no time.
    """
    if unit_ns is None:
        at = datetime.datetime.fromisoformat(value)
        since = (at if at.tzinfo else at.replace(tzinfo=datetime.UTC)) - EPOCH
        return since // datetime.timedelta(microseconds=1) * 1_000
    if isinstance(value, bool):
        raise TypeError
    seconds, _, fraction = str(value).partition(".")
    if not seconds.isdecimal() or not (fraction or "0").isdecimal():
        return round(float(value) * unit_ns)  # any other notation of a number
    return int(seconds) * unit_ns + round(float(f"0.{fraction or 0}") * unit_ns)


def count_within(settings: RunSettings, path: Path, times_ns: Sequence[int]) -> int:
    """Count the rows of a trace that the run sends, and warn of times that are probably not meant.

    Args:
        settings: The settings of the run.
        path: The file.
        times_ns: When its requests are due, ascending, ns.
    """
    if settings.trace_times != "keep":
        return len(times_ns)
    count = len(times_ns)
    if settings.duration is not None:
        end_ns = times_ns[0] + settings.duration * settings.time_scale * NS_PER_S
        count = bisect.bisect_left(times_ns, end_ns)
    for warning in time_warnings(times_ns[:count], settings.time_scale):
        logger.warning("%s: %s", path, warning)
    return count


def time_warnings(times_ns: Sequence[int], time_scale: float) -> Iterator[str]:
    """Say what of the times of a trace is probably not meant.

    Args:
        times_ns: When its requests are due, ascending, ns.
        time_scale: How many times faster they are sent.
    """
    span_ns = (times_ns[-1] - times_ns[0]) / time_scale if times_ns else 0
    if len(times_ns) < FEW_ROWS:
        return
    rate = len(times_ns) * NS_PER_S / span_ns if span_ns else float("inf")
    if rate > MANY_REQUESTS_PER_S:
        yield (
            f"its times make {rate:,.0f} requests/s; if that is not meant, give their unit "
            "(--trace-time-unit), or --trace-times ignore with --request-rate"
        )
    elif all(at_ns % NS_PER_S == 0 for at_ns in times_ns):
        together = max(Counter(times_ns).values())
        if together > 1:
            yield (
                f"its times are whole seconds, so up to {together} requests are sent at the same "
                "time; --trace-times ignore with --request-rate spreads them"
            )
