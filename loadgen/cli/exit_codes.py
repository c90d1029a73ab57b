"""Exit codes, and which of them a result deserves."""

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
INTERRUPTED = 130

WHEN = {
    DONE: "done: VALID, and SUSPECT too",
    INTERNAL: "an engine that failed, a file that was not written, or an internal error; `loadgen audit`: what cannot "
    "be true; `loadgen import`: what was not placed",
    BAD_INPUT: "bad input, or a server that is not there; nothing was measured",
    INVALID: "INVALID, as where more than 1 % of the requests were never sent, by a fault of the client; "
    "`loadgen compare --fail-if`: a condition that the runs do not tell",
    SUSPECT: "SUSPECT, with `--strict`",
    ERRORS: "a larger share of the requests than `--max-error-rate` (1 %) failed, by the server or by the client; no "
    "request succeeded; or the server refused every connection for 5 s",
    SLO_MISSED: "an SLO was missed",
    NOTHING_FEASIBLE: "no arm of a study holds what it demands",
    CHANGED: "a change that `loadgen compare --fail-if` names",
    INTERRUPTED: "interrupted; what was measured is reported",
}
EXPLAINED = "\n".join(f"  {code:<4} {when}" for code, when in WHEN.items())
GRAVEST = (INTERRUPTED, INTERNAL, INVALID, ERRORS, SLO_MISSED, SUSPECT, DONE)


def gravest(codes: Iterable[int]) -> int:
    """Of the exit codes of several runs, the one that the command has."""
    return min(codes, key=GRAVEST.index)


def code(result: "RunResult", *, strict: bool, max_error_rate: float, interrupted: bool) -> int:
    """Find the exit code of a finished run: the gravest that applies."""
    if interrupted:
        return INTERRUPTED
    if result.verdict == "INVALID":
        return INVALID
    if not result.numbers.completed or result.no_answer_since_s is not None:
        return ERRORS
    if max(result.error_rate or 0.0, result.client_error_rate or 0.0) > max_error_rate:
        return ERRORS
    if not all(row.met for row in result.slo):
        return SLO_MISSED
    return SUSPECT if strict and result.verdict == "SUSPECT" else DONE
