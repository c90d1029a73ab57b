"""State: what a user has to know of a run first, in one or two words."""

import math
import re
from collections.abc import Sequence
from enum import StrEnum

from loadgen.checks import TOO_FEW_FOR_SLO
from loadgen.config import slo
from loadgen.core.outcome import Outcome, is_failure
from loadgen.document import Colour
from loadgen.metrics.failures import Failures
from loadgen.metrics.snapshot import requests_of
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import first_of, plural, three_digits

MAX_NAMED = 2  # checks, or limits
CLOSED = "refused or closed without a response"  # what `Outcome.REFUSED` is for a reader
LEAST = least_samples(50)  # requests of a run that has a median


class State(StrEnum):
    """The state of a run: the first of these that applies."""

    FAILED = "FAILED"
    INVALID = "INVALID"
    OVERLOADED = "OVERLOADED"
    TOO_FEW = "TOO FEW"
    SLO_MISSED = "SLO MISSED"
    SUSPECT = "SUSPECT"
    OK = "OK"


MEANING = {
    State.FAILED: "nothing, or more than --max-error-rate, came back",
    State.INVALID: "the client did not send the load, or did not count it",
    State.OVERLOADED: "requests came faster than they were answered, and piled up",
    State.TOO_FEW: "too few requests for the percentile of an SLO; without an SLO, for a median",
    State.SLO_MISSED: "a limit of the SLO is missed",
    State.SUSPECT: "a figure cannot be trusted: the state says which, and why",
    State.OK: "none of these",
}
# The exit codes of `loadgen run`; --strict gives 4 where the measurement is SUSPECT.
EXIT_CODES = {
    State.FAILED: "5; 3 if the verdict is INVALID, as where the server hung",
    State.INVALID: "3",
    State.OVERLOADED: "0; 6 if a limit of the SLO is missed",
    State.TOO_FEW: "6 for an SLO; else 0, or 4 with --strict; with --allow-few as for the other "
    "states",
    State.SLO_MISSED: "6",
    State.SUSPECT: "0; 4 with --strict; 6 if the timing error does not let the SLO be judged",
    State.OK: "0",
}
COLOURS = {
    State.FAILED: Colour.RED,
    State.INVALID: Colour.RED,
    State.OVERLOADED: Colour.YELLOW,
    State.TOO_FEW: Colour.YELLOW,
    State.SLO_MISSED: Colour.RED,
    State.SUSPECT: Colour.YELLOW,
    State.OK: Colour.GREEN,
}


def state_of(result: RunResult) -> State:
    """Return the state of a run."""
    met = all_met(result.slo)
    if has_failed(result):
        return State.FAILED
    if result.verdict == "INVALID":
        return State.INVALID
    if result.overloaded and not result.closed_loop:
        return State.OVERLOADED
    if has_too_few(result) and not _is_surely_missed(result):
        return State.TOO_FEW
    if met is False:
        return State.SLO_MISSED
    if not result.slo and values_of(result) < LEAST:
        return State.TOO_FEW
    return State.SUSPECT if met is None or result.verdict == "SUSPECT" else State.OK


def has_failed(result: RunResult) -> bool:
    """Whether the server was gone, more requests failed than --max-error-rate allows, or none
    succeeded.
    """
    most = max(result.error_rate or 0.0, result.client_error_rate or 0.0)
    return (
        not result.numbers.completed
        or result.no_answer_since_s is not None
        or most > result.provenance.settings.max_error_rate
    )


def has_too_few(result: RunResult) -> bool:
    """Whether a percentile of the SLO is of too few requests, and --allow-few does not allow it."""
    return any(check.name == TOO_FEW_FOR_SLO for check in result.failed_checks)


def values_of(result: RunResult) -> int:
    """Count the values from which the percentiles of the run are taken."""
    name = slo.distribution("ttft" if result.streams else "e2el", result.latency_from)
    return requests_of(name, lambda latency: result.latency_ms.named(latency).count)


def _is_surely_missed(result: RunResult) -> bool:
    """Whether more requests could not have saved the SLO: too many failed, or a limit is missed
    that is on no percentile.
    """
    return any(row.met is False and (row.beyond or row.percentile is None) for row in result.slo)


def state_text(result: RunResult) -> str:
    """Write the state of a run, with what it is about."""
    state = state_of(result)
    about = _ABOUT[state](result) if state in _ABOUT else ""
    return f"{state}: {about}" if about else state


def answer_rate(result: RunResult) -> float | None:
    """Compute the rate of ok answers, 1/s; until the server stopped answering, if it did.

    None if there is none.
    """
    if result.no_answer_since_s:
        return result.numbers.completed / result.no_answer_since_s
    return result.rates.answers_per_s


def failures_text(result: RunResult) -> str:
    """Write how many requests failed, and how."""
    failures = Failures.among(result.outcomes, result.never_due)
    ways = {name: count for name, count in result.outcomes.items() if is_failure(name)}
    if result.never_due:
        ways["never sent after a failed turn"] = result.never_due
    texts = [f"{_way(name)}: {count}" for name, count in ways.items()]
    of = f"{failures.failed} of {plural(failures.of, 'request')} failed"
    return f"{of} ({', '.join(texts)})" if texts else of


def more_reasons(names: Sequence[str]) -> str:
    """List the first of some checks that failed, and how many more the report has below."""
    more = len(names) - MAX_NAMED
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {plural(more, 'more reason')} below" if more > 0 else shown


def missed_limits(result: RunResult) -> str:
    """Name the limits of the SLO that are missed, or that cannot be told if none is, with their
    values.
    """
    met = all_met(result.slo)
    rows = [row for row in result.slo if row.met is met]
    texts = [
        row.limit + (" because requests failed" if row.beyond else f" ({row.value_text})")
        for row in rows
    ]
    return first_of(texts, MAX_NAMED)


def way(name: str) -> str:
    """Name an outcome for a reader."""
    return CLOSED if name == Outcome.REFUSED else name.replace("_", " ")


def _way(name: str) -> str:
    """Name an outcome, an HTTP status by its number."""
    return name[7:-1] if name.startswith("status(") else way(name)


def _failed_about(result: RunResult) -> str:
    if result.no_answer_since_s is not None and result.numbers.completed:
        return f"the server stopped answering at {result.no_answer_since_s:.1f} s"
    failures = Failures.among(result.outcomes, result.never_due)
    if not failures.failed:
        return "no request succeeded" if failures.of else "no request ended"
    return failures_text(result)


def _checks_about(result: RunResult) -> str:
    """Write the first of the failed checks with what it found first, and name the others."""
    if all_met(result.slo) is None:
        return (
            f"the timing error of loadgen does not let the SLO be judged: {missed_limits(result)}"
        )
    first, *others = result.failed_checks
    more = f", {more_reasons([check.name for check in others])}" if others else ""
    return f"{first.name} ({re.split(', | [(]', first.value)[0]}){more}"


def _few_about(result: RunResult) -> str:
    of_slo = (check.value for check in result.failed_checks if check.name == TOO_FEW_FOR_SLO)
    count = plural(values_of(result), "request")
    return next(of_slo, f"{count}; a median needs at least {LEAST}")


def _overloaded_about(result: RunResult) -> str:
    answered = answer_rate(result)
    if answered is None:
        return ""
    settings, rate = result.provenance.settings, three_digits(answered)
    if result.sessions is not None:
        return f"the server completed {rate} turns/s"
    is_one_rate = math.isfinite(settings.request_rate) and not settings.rate_changes
    of = f" of {three_digits(settings.request_rate)}" if is_one_rate else ""
    return f"the server completed {rate}{of} req/s"


_ABOUT = {
    State.FAILED: _failed_about,
    State.INVALID: _checks_about,
    State.OVERLOADED: _overloaded_about,
    State.TOO_FEW: _few_about,
    State.SLO_MISSED: missed_limits,
    State.SUSPECT: _checks_about,
}
