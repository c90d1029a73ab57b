"""`StopEvent`: the condition of `--stop-when` that ended a run."""

from dataclasses import dataclass

from loadgen.config.slo import STOP_WHEN, StopCondition


@dataclass(frozen=True, slots=True)
class StopEvent:
    """When a condition held.

    Attributes:
        condition: The condition.
        at_s: When it held, s on the clock.
        value: What was found: ms of a latency, a share of an error rate, a number of errors; None: it falls among
            requests that failed.
    """

    condition: str
    at_s: float
    value: float | None

    def __str__(self) -> str:
        return f"{STOP_WHEN} {self.condition}: {self.shown} at {self.at_s:.1f} s"

    @property
    def shown(self) -> str:
        """The value as text."""
        if self.value is None:
            return "the percentile is a failed request,"
        (condition,) = StopCondition.parse(self.condition)
        return condition.with_unit(self.value)
