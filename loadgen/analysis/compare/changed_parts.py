"""Changed parts: what made latencies of a candidate worse, by the explanations of both sides."""

from collections.abc import Iterator, Mapping

import numpy as np

from loadgen.analysis.compare.compared_run import SavedRun
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.finding import findings
from loadgen.analysis.compare.pair import Row
from loadgen.analysis.compare.side import Side
from loadgen.report.result.explanation import Explanation
from loadgen.report.sections.explanation import AFTER, PARTS, change_text

TO_FIRST, AFTER_FIRST = ("ttft", "e2el"), ("tpot", "itl", "icl", "e2el")  # latencies with each


def texts(comparison: Comparison, candidate: CandidateRows) -> Iterator[str]:
    """Yield a line for each latency that is worse: "TTFT p99, by its parts: +310 ms: +300 queue";
    nothing where a run has no explanation.
    """
    sides = [_explanations(side) for side in (comparison.baseline, candidate.candidate)]
    if not all(sides):
        return
    rows = (row for finding in findings(candidate) if finding.is_worse for row in finding.shown)
    yield from dict.fromkeys(text for row in rows if (text := _text(row, *sides)))


def _text(row: Row, before: list[Explanation], after: list[Explanation]) -> str:
    """Say by which parts a row is worse; empty where no part is."""
    latency, statistic = row.metric.latency, row.metric.statistic
    text = change_text(*(_parts(side, latency, statistic) for side in (before, after)))
    if not text:
        return ""
    if latency not in TO_FIRST:
        return f"After the first token, a request: {text}"
    mean = "" if statistic in ("mean", *before[0].bands) else " in the mean"
    return f"{row.metric.title}, by its parts{mean}: {text}"


def _explanations(side: Side) -> list[Explanation]:
    """The explanations of the runs of a side; none unless each run has one."""
    found = [run.result.explain for run in side.starts if isinstance(run, SavedRun)]
    explained = [explain for explain in found if explain is not None]
    return explained if len(explained) == len(side.starts) else []


def _parts(
    explanations: list[Explanation], latency: str | None, statistic: str | None
) -> Mapping[str, float]:
    """The mean parts of a latency over the runs of a side, ms, by their names for readers."""
    parts: dict[str, list[float]] = {}
    for explain in explanations:
        if latency in TO_FIRST:
            band = explain.bands.get(statistic or "")
            for name, ms in (explain.mean_ms if band is None else band.parts_ms).items():
                parts.setdefault(PARTS[name], []).append(ms)
        if latency in AFTER_FIRST:
            for name, ms in explain.after_first_ms.items():
                parts.setdefault(AFTER[name], []).append(ms)
    return {name: float(np.mean(values)) for name, values in parts.items()}
