"""SearchBounds: how far a load search goes, and what a level must do beyond the limits of the SLO."""

from dataclasses import dataclass

from loadgen.analysis.search.levels import MAX_RUNS, RUN_S, Counted, Misses, StopRules
from loadgen.analysis.search.ratio_sample import LOOKS


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How far a search goes.

    Attributes:
        min_level, max_level: No level outside of them is run; None: the lowest worth trying, and the highest possible.
        resolution: The search ends when the lowest level that fails is this share above the highest that does not.
        looks: Conclusive runs of a level that no run has decided; then it fails.
        max_runs: Maximum number of runs.
        run_s: Minimum duration of a run at a rate, s, if the search was given none.
        misses, stop_rules, counted, new_seeds: See `Levels`.
    """

    min_level: float | None = None
    max_level: float | None = None
    resolution: float = 0.05
    looks: int = LOOKS
    max_runs: int = MAX_RUNS
    run_s: float = RUN_S
    misses: Misses = lambda level, result: None
    stop_rules: StopRules = lambda settings: lambda progress: None
    counted: Counted = lambda records, settings: records
    new_seeds: bool = True


UNBOUNDED = SearchBounds()
