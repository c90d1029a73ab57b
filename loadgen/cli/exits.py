"""Exit codes, and which of them a result deserves."""

from collections.abc import Iterable
from typing import Any

DONE = 0  # a SUSPECT run too
INTERNAL = 1  # or an engine that failed
FOUND = 1  # by `loadgen audit`: something that cannot be true, told as linters tell it
UNPLACED = 1  # by `loadgen import`: a result of which nothing says what it is of
BAD_INPUT = 2
INVALID = 3
SUSPECT = 4  # only with --strict
ERRORS = 5  # more than --max-error-rate, or no success at all
SLO_MISSED = 6
NOTHING_FEASIBLE = 7  # by `loadgen tune run`: no arm held what the study demands
CHANGED = 8  # by `loadgen compare`: a change that --fail-if names
INTERRUPTED = 130

EXPLAINED = (
    "0 done, 1 an engine that failed or an internal error (audit: what cannot be true; import: what could not be "
    "placed), 2 bad input, 3 INVALID, "
    "4 SUSPECT (with --strict), 5 too many errors, 6 SLO missed, 7 no arm of a study feasible, "
    "8 a change that compare --fail-if names, 130 interrupted"
)


_GRAVEST = (INTERRUPTED, INTERNAL, INVALID, ERRORS, SLO_MISSED, SUSPECT, DONE)


def gravest(codes: Iterable[int]) -> int:
    """Of the exit codes of several runs, the one that the command has."""
    return min(codes, key=_GRAVEST.index)


def code(result: dict[str, Any], *, strict: bool, max_error_rate: float, interrupted: bool) -> int:
    """The exit code of a finished run: the gravest that applies."""
    own = result["loadgen"]
    if interrupted:
        return INTERRUPTED
    if own["verdict"] == "INVALID":
        return INVALID
    if not result["completed"] or own["error_rate"] > max_error_rate:
        return ERRORS
    if not all(row["met"] for row in own["slo"]):
        return SLO_MISSED
    return SUSPECT if strict and own["verdict"] == "SUSPECT" else DONE
