"""SearchBounds: how far a load search goes, and what a level must do beyond the limits of the SLO.

`misses_rate` and `ThroughputGain` tell that more load brings no more work: they return why a level
is beyond the capacity of the server, or None, and are the `misses` of a search.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.analysis.search.criteria import LOOKS
from loadgen.analysis.search.early_stop import StopRule
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.runner.run_result import Result
from loadgen.util.number_format import percent

# Returns why a level fails although it may meet the criteria.
Misses = Callable[[float, Result], str | None]
# Returns the records that the criteria judge.
Counted = Callable[[Sequence[Record], RunSettings], Sequence[Record]]
StopRules = Callable[[RunSettings], StopRule]  # makes the rule by which a run is stopped as failed
RUN_S = 60.0  # minimum duration of a run at a rate
MIN_SERVED = 0.98  # of the rate
MIN_GAIN = 0.05  # of output tokens per second, for twice the requests in flight


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How far a search goes.

    Attributes:
        min_level, max_level: No level outside of them is run; None: the lowest worth trying, and
            the highest possible.
        resolution: The search ends when the lowest level that fails is this share above the highest
            that does not.
        looks: Conclusive runs of a level that no run has decided; then it fails.
        max_runs: Maximum number of runs.
        run_s: Minimum duration of a run at a rate, s, if the search was given none.
        misses: A requirement beyond the criteria: returns why a run at a level misses it; None if
            it does not.
        stop_rules: Makes a rule beyond the criteria by which a run is stopped, and its level fails.
        counted: Chooses the records by which a run is judged.
        new_seeds: Whether each run has prompts of its own.
    """

    min_level: float | None = None
    max_level: float | None = None
    resolution: float = 0.05
    looks: int = LOOKS
    max_runs: int = 16
    run_s: float = RUN_S
    misses: Misses = lambda level, result: None
    stop_rules: StopRules = lambda settings: lambda progress: None
    counted: Counted = lambda records, settings: records
    new_seeds: bool = True


UNBOUNDED = SearchBounds()


def misses_rate(rate: float, result: Result) -> str | None:
    """Tell that the server answered fewer requests per second than were due.

    Requests that end are counted from the moment when the first one has ended to the last due time.
    Where the server keeps up, they differ from those due by about the square root of the number in
    flight. A rate of sessions is judged by the check of piled up requests alone.

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
    ended, due = (
        int(np.count_nonzero((closed > begin) & (closed <= end))),
        rate * (end - begin) / 1e9,
    )
    in_flight = float(np.sum(closed - snapshot.sent[snapshot.sent >= 0])) / max(
        float(closed.max()), 1.0
    )
    if ended + math.sqrt(in_flight) + 1 >= MIN_SERVED * due:
        return None
    return f"only {percent(ended / due, 1)} of the rate was served"


class ThroughputGain:
    """The rule for requests in flight: twice as many bring at least MIN_GAIN more output tokens
    per second.
    """

    def __init__(self) -> None:
        self._throughput: dict[float, float] = {}

    def __call__(self, in_flight: float, result: Result) -> str | None:
        """Tell that a level brings too little more than the highest level below it that was within
        the capacity.

        Args:
            in_flight: The level.
            result: The result of its run.
        """
        throughput = result.numbers.output_throughput or 0.0
        below = max((level for level in self._throughput if level < in_flight), default=None)
        if below is not None:
            gain = throughput / self._throughput[below] - 1 if self._throughput[below] else math.inf
            if gain < (1 + MIN_GAIN) ** math.log2(in_flight / below) - 1:
                return (
                    f"{percent(abs(gain), 1)} {'more' if gain >= 0 else 'fewer'} output "
                    f"tokens/s than at {below:g}"
                )
        self._throughput[in_flight] = throughput
        return None
