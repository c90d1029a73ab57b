"""The JSON form of a comparison."""

from typing import Any

from loadgen.analysis.compare.answer import change_of
from loadgen.analysis.compare.changed_parts import ChangedParts
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.pair import Row
from loadgen.analysis.compare.side import Side
from loadgen.analysis.compare.texts import notes

SCHEMA = 1


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the JSON form of a comparison; docs/compare.md describes its keys."""
    return {
        "loadgen_comparison": SCHEMA,
        "notes": notes(comparison),
        "sides": [_side(side) for side in comparison.sides],
        "comparisons": [_candidate(comparison, candidate) for candidate in comparison.candidates],
    }


def _candidate(comparison: Comparison, candidate: CandidateRows) -> dict[str, Any]:
    about = change_of(comparison, candidate)
    parts = ChangedParts(comparison.baseline, candidate.candidate)
    return {
        "base": comparison.baseline.name,
        "side": candidate.candidate.name,
        "answer": about.answer.text,
        "word": about.word,
        "differ": {
            difference.name: [difference.one, difference.other]
            for difference in candidate.differences
        },
        "survivors": candidate.error_rates_differ or None,
        "block_requests": candidate.block_length,
        "repeated": dict(candidate.repeated),
        "rows": [_row(row) | {"parts_ms": parts.changes(row) or None} for row in candidate.rows],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "path": side.path,
        "starts": [
            {
                "file": run.where,
                "tool": run.tool,
                "date": run.date,
                "verdict": run.verdict or None,
                "reasons": run.reasons,
                "partial": run.partial,
                "simulated": run.simulated,
                "records": run.records is not None,
            }
            for run in side.starts
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "base": row.baseline,
        "side": row.candidate,
        "change": row.change,
        "resolution": row.resolution,
        "interval": row.bounds,
        "basis": row.interval and str(row.interval.basis),
        "by_chance": row.interval and row.interval.p_value,
        "why_no_interval": row.why_no_interval or None,
        "marks": row.marks,
        "word": str(row.conclusion),
    }
