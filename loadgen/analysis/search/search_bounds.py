"""SearchBounds: how far a load search goes, and what a level must do beyond the limits of the SLO."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.ratio_sample import LOOKS
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.runner.run_result import Result

Misses = Callable[[float, Result], str | None]  # returns why a level fails although it may meet the criteria
Counted = Callable[[Sequence[Record], RunSettings], Sequence[Record]]  # returns the records that the criteria judge
StopRules = Callable[[RunSettings], StopRule]  # makes the rule by which a run is stopped as failed

RUN_S = 60.0  # minimum duration of a run at a rate


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How far a search goes.

    Attributes:
        min_level, max_level: No level outside of them is run; None: the lowest worth trying, and the highest possible.
        resolution: The search ends when the lowest level that fails is this share above the highest that does not.
        looks: Conclusive runs of a level that no run has decided; then it fails.
        max_runs: Maximum number of runs.
        run_s: Minimum duration of a run at a rate, s, if the search was given none.
        misses: A requirement beyond the criteria: returns why a run at a level misses it; None if it does not.
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
