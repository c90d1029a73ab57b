"""When a ramp reached each whole rate, as `vllm bench serve` keeps it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Struct

from loadgen.metrics.records.header import DATE_FORMAT
from loadgen.metrics.run_data import RunData
from loadgen.metrics.throughput import wall_ns


class RateChange(Struct, frozen=True, kw_only=True):
    """A whole rate of a ramp."""

    rps: Annotated[float, "Requests per second."]
    timestamp: Annotated[str, "Local time at which the ramp reached it, ISO 8601, to a second."]


def rate_changes(run: RunData) -> list[RateChange]:
    """List the rate that a ramp began with, and the whole rates that it reached before the run ended.

    Args:
        run: The data of a run with a ramp.
    """
    settings = run.settings
    began = datetime.strptime(run.header.date, DATE_FORMAT)  # noqa: DTZ007 - local time, as vLLM writes it
    start, end = settings.ramp_up_start_rps, settings.ramp_up_end_rps
    assert start is not None
    assert end is not None
    window_s, wall_s = run.schedule.duration_ns / 1e9, wall_ns(run.snapshot) / 1e9
    changes = [RateChange(rps=start, timestamp=began.isoformat())]
    for rate in range(math.floor(start) + 1, math.floor(end) + 1):
        if settings.ramp_up_strategy == "linear":
            share = (rate - start) / (end - start)
        else:
            share = math.log(rate / start) / math.log(end / start)
        if share * window_s > wall_s:
            break
        reached = began + timedelta(seconds=share * window_s)
        changes.append(RateChange(rps=rate, timestamp=reached.isoformat(timespec="seconds")))
    return changes
