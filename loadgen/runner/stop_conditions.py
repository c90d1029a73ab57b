"""`StopConditions`: whether the progress of a run meets a condition of `--stop-when`.

Light to import, as `participant` is.
"""

import math
from collections import deque

from loadgen.config.settings import RunSettings
from loadgen.config.slo import ERRORS, RATES, StopCondition
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.trailer import StopEvent

EVERY_S = 1.0  # between two looks
START = Progress("running")  # nothing has happened


class StopConditions:
    """Looks at the progress of a run once a second, so that conditions cost nothing per request.

    Args:
        settings: For the conditions.

    Raises:
        BadInput: A condition is invalid.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._conditions = StopCondition.parse(settings.stop_when) if settings.stop_when is not None else ()
        self._longest_s = max((condition.over_s or 0.0 for condition in self._conditions), default=0.0)
        self._seen = deque([START])
        self._judged = set[StopCondition]()

    def add(self, progress: Progress) -> StopEvent | None:
        """Return the first condition that holds now; None: none does, or it is too early to look."""
        if not self._conditions or progress.phase != "running":
            return None
        if progress.elapsed_s < self._seen[-1].elapsed_s + EVERY_S:
            return None
        self._seen.append(progress)
        while self._seen[1].elapsed_s <= progress.elapsed_s - self._longest_s and len(self._seen) > 2:
            self._seen.popleft()
        for condition in self._conditions:
            value = self._value(condition, progress)
            if value is not None:
                self._judged.add(condition)
            if value is not None and not condition.limit.met_by(value):
                found = None if math.isinf(value) else value
                return StopEvent(condition.text, progress.elapsed_s, found)
        return None

    @property
    def never_judged(self) -> list[str]:
        """The conditions for which too little was measured whenever they were looked at."""
        return [condition.text for condition in self._conditions if condition not in self._judged]

    def _value(self, condition: StopCondition, now: Progress) -> float | None:
        """Return what a condition is on; None where too little has been measured."""
        before = START
        if condition.over_s is not None:
            if now.elapsed_s < condition.over_s:
                return None
            before = next(seen for seen in reversed(self._seen) if seen.elapsed_s <= now.elapsed_s - condition.over_s)
        limit, failed = condition.limit, now.failed - before.failed
        if limit.metric == ERRORS:
            return failed
        if limit.name in RATES:
            ended = (now.ended - now.disconnected) - (before.ended - before.disconnected)
            return failed / ended if ended >= condition.min_values else None
        sketch: Sketch = getattr(now, limit.metric) - getattr(before, limit.metric)
        if limit.of_survivors:
            failed = 0
        if sketch.count + failed < condition.min_values:
            return None
        return _statistic(sketch, limit.statistic, limit.percentile, failed)


def _statistic(sketch: Sketch, statistic: str, percentile: float | None, failed: int) -> float | None:
    """Return a statistic of values and of failed requests, which are beyond all of them, ms; None without values."""
    if statistic == "mean":
        return sketch.mean_ms
    position = (sketch.count + failed - 1) * (100.0 if percentile is None else percentile) / 100
    if math.ceil(position) >= sketch.count:
        return math.inf if failed else None
    low, high = sketch.value_at_rank(math.floor(position)), sketch.value_at_rank(math.ceil(position))
    return (low + (high - low) * (position % 1)) / 1e6
