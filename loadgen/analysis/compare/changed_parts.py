"""Changed parts: what made latencies of a candidate other than those of the baseline, by the
explanations of both sides.
"""

from collections.abc import Callable, Mapping

import numpy as np

from loadgen.analysis.compare.compared_run import SavedRun
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.side import Side
from loadgen.report.result.explanation import Explanation
from loadgen.report.sections.explanation import AFTER, change_text, part_names

TO_FIRST, AFTER_FIRST = ("ttft", "e2el"), ("tpot", "itl", "icl", "e2el")  # latencies with each


class ChangedParts:
    """The parts of the latencies of two sides; none where a run has no explanation.

    Args:
        baseline, candidate: The sides.
    """

    def __init__(self, baseline: Side, candidate: Side) -> None:
        sides = [_explanations(side) for side in (baseline, candidate)]
        self._sides = sides if all(sides) else []

    def changes(self, row: Row) -> dict[str, float]:
        """By how much each part of a row's latency differs, ms: of the requests of its percentile
        where those are known, else in the mean.
        """
        latency = row.metric.latency
        changes: dict[str, float] = {}
        for parts, latencies in ((_to_first, TO_FIRST), (_after_first, AFTER_FIRST)):
            if latency in latencies:
                for name, ms in self._differences(parts, row).items():
                    changes[name] = changes.get(name, 0.0) + ms
        return changes

    def text(self, row: Row) -> str:
        """Write it for a row that is worse: "+310 ms: +300 queue (slots)"; else empty."""
        is_shown = row.is_worse and row.conclusion is not Conclusion.NO_SIGNIFICANT_DIFFERENCE
        if not is_shown or not (changes := self.changes(row)):
            return ""
        names = part_names(*(explain for side in self._sides for explain in side))
        text = change_text({}, {(AFTER | names)[name]: ms for name, ms in changes.items()})
        latency, statistic = row.metric.latency, row.metric.statistic
        is_exact = latency == "ttft" and statistic in ("mean", *self._sides[0][0].bands)
        what = "" if is_exact else "mean " if latency in TO_FIRST else "a request "
        return text and what + text

    def _differences(
        self, parts: Callable[[Explanation, Row], Mapping[str, float]], row: Row
    ) -> dict[str, float]:
        """The differences of the means over the runs of each side."""
        if not self._sides:
            return {}
        before, after = ([parts(explain, row) for explain in side] for side in self._sides)
        names = dict.fromkeys(name for run in (*before, *after) for name in run)
        return {
            name: float(
                np.mean([run.get(name, 0.0) for run in after])
                - np.mean([run.get(name, 0.0) for run in before])
            )
            for name in names
        }


def _to_first(explain: Explanation, row: Row) -> Mapping[str, float]:
    is_band = row.metric.latency == "ttft" and row.metric.statistic in explain.bands
    return explain.bands[row.metric.statistic or ""].parts_ms if is_band else explain.mean_ms


def _after_first(explain: Explanation, row: Row) -> Mapping[str, float]:
    return explain.after_first_ms


def _explanations(side: Side) -> list[Explanation]:
    """The explanations of the runs of a side; none unless each run has one."""
    found = [run.result.explain for run in side.starts if isinstance(run, SavedRun)]
    explained = [explain for explain in found if explain is not None]
    return explained if len(explained) == len(side.starts) else []
