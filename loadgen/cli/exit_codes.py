"""The exit codes of all commands, and the rule that gives a run its code."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadgen.report import RunResult

DONE = 0
INTERNAL = FOUND = UNPLACED = 1
BAD_INPUT = 2
INVALID = 3
SUSPECT = 4
ERRORS = 5
SLO_MISSED = 6
NOTHING_FEASIBLE = 7
CHANGED = 8
STOPPED = 9
UNDECIDED = 10
INTERRUPTED = 130

WHEN = {
    DONE: "done; the state is OK, OVERLOADED or SUSPECT, or TOO FEW without an SLO; `loadgen tune "
    "run`: also if the budget is spent, as its answer says",
    INTERNAL: "an engine failed, a file could not be written, or an internal error; `loadgen "
    "audit`, `judge`, `verify`: wrong numbers were found; `loadgen import`: a result was not "
    "placed",
    BAD_INPUT: "bad input, or the server cannot be reached; nothing was measured",
    INVALID: "the verdict is INVALID: for example, the client failed to send more than 1 % of the "
    "requests, or the server hung",
    SUSPECT: "with `--strict`: the verdict is SUSPECT",
    ERRORS: "more than `--max-error-rate` (1 %) of the requests failed, no request succeeded, or "
    "the server refused every connection for 5 s",
    SLO_MISSED: "a limit of --slo was missed, or too few requests or the timing error do not let "
    "it be judged",
    NOTHING_FEASIBLE: "no arm of the study meets its limits",
    CHANGED: "a condition of `loadgen compare --fail-if` holds; `loadgen replicate`: the runs "
    "differ",
    STOPPED: "a condition of `--stop-when` ended the run, which reports what was measured so far",
    UNDECIDED: "the runs cannot decide a condition of `loadgen compare --fail-if`, whose line says "
    "what would, for example three starts of each side; `loadgen replicate`: they decide nothing",
    INTERRUPTED: "interrupted; a run reports what was measured so far",
}
EXPLAINED = "\n".join(
    textwrap.fill(when, 80, initial_indent=f"  {code:<4} ", subsequent_indent=" " * 7)
    for code, when in WHEN.items()
)
# The most severe first.
SEVERITY = (INTERRUPTED, INTERNAL, INVALID, STOPPED, ERRORS, SLO_MISSED, SUSPECT, DONE)


def most_severe(codes: Iterable[int]) -> int:
    """Return the exit code of a command from those of its runs."""
    return min(codes, key=SEVERITY.index)


def code(result: "RunResult", *, strict: bool, interrupted: bool) -> int:
    """Return the exit code of a finished run: the most severe one that applies.

    Args:
        result: The result of the run.
        strict: Whether SUSPECT is a failure.
        interrupted: Whether a signal ended the run.
    """
    from loadgen.report.run_state import has_failed, has_too_few

    if interrupted:
        return INTERRUPTED
    if result.verdict == "INVALID":
        return INVALID
    if result.stopped is not None:
        return STOPPED
    if has_failed(result):
        return ERRORS
    if not all(row.met for row in result.slo) or has_too_few(result):
        return SLO_MISSED
    return SUSPECT if strict and result.verdict == "SUSPECT" else DONE
