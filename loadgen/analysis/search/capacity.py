"""Capacity of a server at a load level: whether more load still brings more work.

Both rules return why a level is beyond the capacity, or None. They are the `misses` of a search.
"""

import math

import numpy as np

from loadgen.runner.run_result import Result
from loadgen.util.number_format import percent

MIN_SERVED = 0.98  # of the rate
MIN_GAIN = 0.05  # of output tokens per second, for twice the requests in flight


def misses_rate(rate: float, result: Result) -> str | None:
    """Tell that the server answered fewer requests per second than were due.

    Requests that end are counted from the moment when the first one has ended to the last due time. Where the server
    keeps up, they differ from those due by about the square root of the number in flight. A rate of sessions is judged
    by the check of piled up requests alone.

    Args:
        rate: Requests per second, evenly spaced.
        result: The result of the run.
    """
    snapshot, schedule = result.snapshot, result.provenance.schedule
    closed = snapshot.closed[snapshot.sent >= 0]
    if not len(closed) or schedule.sessions < schedule.requests:
        return None
    begin, end = float(closed.min()), (result.numbers.num_prompts - 1) / rate * 1e9
    if end <= begin:
        return None
    ended, due = int(np.count_nonzero((closed > begin) & (closed <= end))), rate * (end - begin) / 1e9
    in_flight = float(np.sum(closed - snapshot.sent[snapshot.sent >= 0])) / max(float(closed.max()), 1.0)
    if ended + math.sqrt(in_flight) + 1 >= MIN_SERVED * due:
        return None
    return f"only {percent(ended / due, 1)} of the rate was served"


class ThroughputGain:
    """The rule for requests in flight: twice as many bring at least MIN_GAIN more output tokens per second."""

    def __init__(self) -> None:
        self._throughput: dict[float, float] = {}

    def __call__(self, in_flight: float, result: Result) -> str | None:
        """Tell that a level brings too little more than the highest level below it that was within the capacity.

        Args:
            in_flight: The level.
            result: The result of its run.
        """
        found = result.numbers.output_throughput or 0.0
        below = max((level for level in self._throughput if level < in_flight), default=None)
        if below is not None:
            gain = found / self._throughput[below] - 1 if self._throughput[below] else math.inf
            if gain < (1 + MIN_GAIN) ** math.log2(in_flight / below) - 1:
                return f"{percent(abs(gain), 1)} {'more' if gain >= 0 else 'fewer'} output tokens/s than at {below:g}"
        self._throughput[in_flight] = found
        return None
