"""The summary line: a run in one line that can be pasted into a chat."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from enum import IntEnum

from loadgen.config import slo
from loadgen.core.outcome import is_failure
from loadgen.metrics.failures import Failures
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met
from loadgen.report.sections import user_behavior
from loadgen.report.sections.latencies import client_errors
from loadgen.util.number_format import first_of, latency_unit, plural, rounded_up, three_digits
from loadgen.util.terminal_text import PLAIN, Screen, display_width, printable, wrap

SEPARATOR = " | "  # between two parts
LINE_END = " |"  # after the last part of a line
MAX_REASONS = 2  # checks that are named
# The latencies of the line, of which the first is the median.
FIGURES: dict[str, tuple[str, ...]] = {"ttft": ("p50", "p99"), "tpot": ("p50",)}
SLO_STATES = {True: "SLO met", False: "SLO MISSED", None: "SLO cannot be told"}


class Colour(IntEnum):
    """A colour of a terminal (ECMA-48): red for failures, yellow for doubts."""

    NONE = 0
    RED = 31
    GREEN = 32
    YELLOW = 33


# The least severe verdict first.
VERDICT_COLOURS = {"VALID": Colour.GREEN, "SUSPECT": Colour.YELLOW, "INVALID": Colour.RED}
SLO_COLOURS = {True: Colour.GREEN, False: Colour.RED, None: Colour.YELLOW}
Part = tuple[str, Colour]


def worst_verdict(verdicts: Iterable[str]) -> str:
    """Return the worst of some verdicts, one at least."""
    return max(verdicts, key=list(VERDICT_COLOURS).index)


def summary_line(result: RunResult, screen: Screen = PLAIN) -> str:
    """Write the verdict, the outcomes and the main figures of a run."""
    return join_parts(parts(result), screen)


def join_parts(parts: Iterable[Part], screen: Screen = PLAIN) -> str:
    """Join the parts of a line, which ends between parts or words where the screen ends."""
    shown = ""
    column = 0
    for text, colour in parts:
        lines = [printable(text)]
        if screen.columns is not None:
            lines = list(wrap(lines[0], max(screen.columns - len(SEPARATOR), 1)))
        width = display_width(lines[-1])
        if shown:
            fits = len(lines) == 1 and column + len(SEPARATOR) + width + len(LINE_END) <= (
                screen.columns or math.inf
            )
            shown += SEPARATOR if fits else f"{LINE_END}\n"
            column = column + len(SEPARATOR) if fits else 0
        if screen.has_colours and colour:
            shown += "\n".join(f"\x1b[{colour}m{line}\x1b[0m" for line in lines)
        else:
            shown += "\n".join(lines)
        column = width if len(lines) > 1 else column + width
    return shown


def parts(result: RunResult) -> Iterator[Part]:
    """List the parts of the line."""
    met = all_met(result.slo)
    of_slo: Part = (slo_state(result) if met else named_slo(result), SLO_COLOURS[met])
    # A missed SLO decides the exit code, unless requests failed or were lost by the client, which
    # is worse.
    slo_decides = met is False and result.verdict != "INVALID" and not has_failed(result)
    if slo_decides:
        yield of_slo
    yield from verdict_and_outcomes(result)
    yield from users_who_left(result)
    numbers = result.numbers
    if rate := _rate(result):
        yield rate, Colour.NONE
    if numbers.completed:
        for metric, statistics in figures(result).items():
            distribution = result.latency(metric)
            if not distribution.count:
                continue
            # "p50 26 p99 34 ms"; a median alone has no name.
            values = [distribution.statistic_ms(name) for name in statistics]
            size, unit = latency_unit(*values)
            texts = [three_digits(None if ms is None else ms / size) for ms in values]
            if len(texts) > 1:
                texts = [f"{name} {text}" for name, text in zip(statistics, texts, strict=True)]
            yield " ".join((metric.upper(), *texts, unit)), Colour.NONE
    if result.slo and not slo_decides:
        yield of_slo
    yield from caveats(result)


def users_who_left(result: RunResult) -> Iterator[Part]:
    """Say how many users left, whose requests are among no answers; nothing where none did."""
    if left := user_behavior.users_left(result):
        yield f"{plural(left, 'user')} left", Colour.NONE


def figures(result: RunResult) -> dict[str, tuple[str, ...]]:
    """Name the latencies of the line: E2EL where answers have no tokens."""
    return FIGURES if result.streams else {"e2el": ("p50", "p99")}


def slo_state(result: RunResult) -> str:
    """Say whether the limits of the SLO are met; a latency limit may be missed because requests
    failed.
    """
    met = all_met(result.slo)
    missed = [row.beyond for row in result.slo if row.met is False]
    return SLO_STATES[met] + (" because requests failed" if missed and all(missed) else "")


def named_slo(result: RunResult) -> str:
    """Say whether the limits of the SLO are met, and which of them decide that."""
    met = all_met(result.slo)
    return f"{slo_state(result)}: {', '.join(row.limit for row in result.slo if row.met is met)}"


def caveats(result: RunResult) -> Iterator[Part]:
    """List what limits the meaning of the figures: overload, an early end, the simulator."""
    if result.overloaded:
        yield "overloaded", Colour.YELLOW
    if result.partial and result.no_answer_since_s is None:
        yield f"ended early: {result.partial.partition(':')[0]}", Colour.YELLOW
    if result.silent_streams.count:
        yield plural(result.silent_streams.count, "silent stream"), Colour.YELLOW
    if result.insecure:
        yield "TLS certificate not verified", Colour.YELLOW
    if result.simulated:
        yield "simulated engine", Colour.NONE


def _rate(result: RunResult) -> str:
    """Write the rate of answers beside the one that was asked for; in a closed loop or a burst,
    the throughput.
    """
    settings = result.provenance.settings
    answered = answer_rate(result)
    if math.isfinite(settings.request_rate) and not settings.rate_changes:
        requested = three_digits(settings.request_rate)
        until = "" if result.no_answer_since_s is None else " until then"
        if result.sessions is not None:
            turns = (
                "" if answered is None else f", {three_digits(answered)} turns/s answered{until}"
            )
            return f"{requested} sessions/s asked{turns}"
        if answered is None:
            return f"asked {requested} req/s"
        return f"{three_digits(answered)} of {requested} req/s{until}"
    if result.provenance.schedule.duration_s:
        return "" if answered is None else f"{three_digits(answered)} req/s"
    return f"{three_digits(result.numbers.request_throughput)} req/s"


def answer_rate(result: RunResult) -> float | None:
    """Compute the rate of ok answers, 1/s; until the server stopped answering, if it did.

    None if there is none.
    """
    if result.no_answer_since_s:
        return result.numbers.completed / result.no_answer_since_s
    return result.rates.answers_per_s


def has_failed(result: RunResult) -> bool:
    """Whether more requests failed than --max-error-rate allows, or none succeeded."""
    most = max(result.error_rate or 0.0, result.client_error_rate or 0.0)
    return not result.numbers.completed or most > result.provenance.settings.max_error_rate


def failures_by_outcome(result: RunResult) -> str:
    """List the outcomes of the requests that failed, an HTTP status by its number."""
    ways = {name: count for name, count in result.outcomes.items() if is_failure(name)}
    if result.never_due:
        ways["never sent after a failed turn"] = result.never_due
    texts = []
    for name, count in ways.items():
        status = re.fullmatch(r"status\((\d+)\)", name)
        texts.append(f"{status[1] if status else name.replace('_', ' ')}: {count}")
    return ", ".join(texts)


def verdict_and_outcomes(result: RunResult) -> Iterator[Part]:
    """Write the verdict and the outcomes; first that the server was gone, and that requests
    failed.
    """
    if result.no_answer_since_s is not None:
        yield f"NO ANSWER from {result.no_answer_since_s:.1f} s on", Colour.RED
    failures = Failures.among(result.outcomes, result.never_due)
    colour = VERDICT_COLOURS[result.verdict]
    names = [check.name for check in result.failed_checks]
    verdict = str(result.verdict)
    if names:
        verdict += f": {first_of(names, MAX_REASONS)}"
    if result.tokens.unbounded_events:
        verdict += f" ({NO_BOUND})"
    elif (error := client_error_ms(result)) is not None:
        verdict += f" (client at most {rounded_up(error)} ms in this line)"
    if not failures.failed and not result.numbers.completed and result.outcomes:
        yield "NOT OK no request succeeded", Colour.RED
        yield f"measured {verdict}", colour
        return
    if not failures.failed:
        yield verdict, colour
        yield f"{result.numbers.completed}/{failures.of} ok", Colour.NONE
        return
    ways = failures_by_outcome(result)
    if has_failed(result):
        yield f"NOT OK {failures.failed} of {failures.of} failed ({ways})", Colour.RED
    else:
        yield f"OK {result.numbers.completed} of {failures.of} ({ways})", Colour.YELLOW
    yield f"measured {verdict}", colour


def client_error_ms(result: RunResult) -> float | None:
    """Find the largest error that the client may have added to a figure of the line, ms; None:
    unknown.
    """
    errors: list[float] = []
    for metric, statistics in figures(result).items():
        by_statistic = client_errors(slo.distribution(metric, result.latency_from), result)
        of_metric = (by_statistic.get(statistic) for statistic in statistics)
        errors += [error for error in of_metric if error is not None]
    return max(errors, default=None)
