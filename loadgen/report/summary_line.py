"""The answer of a run, its state first: one line that can be pasted into a chat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from loadgen.checks import CLIENT_ERROR
from loadgen.config import slo
from loadgen.document import Answer, Colour, Part
from loadgen.metrics.failures import Failures
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import all_met
from loadgen.report.run_state import (
    COLOURS,
    State,
    answer_rate,
    failures_text,
    missed_limits,
    more_reasons,
    state_of,
    state_text,
)
from loadgen.report.sections import next_step, outcomes
from loadgen.report.sections.latencies import (
    INEXACT,
    client_errors,
    few_mark,
    large_client_errors,
    request_count,
)
from loadgen.util.number_format import in_one_unit, plural, rounded_up, three_digits
from loadgen.util.terminal_text import printable

# The latencies of the line.
FIGURES = {"ttft": ("p50", "p99"), "tpot": ("p50",)}
WHOLE_FIGURES = {"e2el": ("p50", "p99")}  # where answers have no tokens
SIMULATED = "SIMULATED, not a real server"
# The least severe verdict first.
VERDICT_COLOURS = {"VALID": Colour.GREEN, "SUSPECT": Colour.YELLOW, "INVALID": Colour.RED}


def worst_verdict(verdicts: Iterable[str]) -> str:
    """Return the worst of some verdicts, one at least."""
    return max(verdicts, key=list(VERDICT_COLOURS).index)


def answer(result: RunResult) -> Answer:
    """Write the state of a run, its outcomes, its main figures, what limits their meaning, and what
    to do next.
    """
    parts = list(_state_parts(result))
    is_told = state_of(result) is State.OVERLOADED and answer_rate(result) is not None
    if result.numbers.completed and not is_told and (rate := _rate(result)):
        parts.append((rate, Colour.NONE))
    parts += ((text, Colour.NONE) for text in _figure_texts(result))
    parts += _belief_parts(result)
    return Answer(tuple(parts), next_step.after_run(result), simulated=result.simulated)


def summary_line(result: RunResult) -> str:
    """Write the answer in one line."""
    return printable(answer(result).text)


def _state_parts(result: RunResult) -> Iterator[Part]:
    """List what a run came to: its state, outcomes and SLO."""
    state = state_of(result)
    yield state_text(result), COLOURS[state]
    failures = Failures.among(result.outcomes, result.never_due)
    if state is not State.FAILED or result.no_answer_since_s is not None:
        if failures.failed:
            yield failures_text(result), Colour.YELLOW
        else:
            yield f"{result.numbers.completed}/{failures.of} ok", Colour.NONE
    if left := outcomes.users_left(result):  # their requests are among no answers
        yield f"{plural(left, 'user')} left", Colour.NONE
    met = all_met(result.slo)
    if (
        result.slo
        and result.numbers.completed
        and met is not None
        and state not in (State.SLO_MISSED, State.TOO_FEW)
    ):
        limits = ", ".join(row.limit for row in result.slo)
        text = f"SLO met: {limits}" if met else f"SLO MISSED: {missed_limits(result)}"
        yield text, Colour.GREEN if met else Colour.RED


def _belief_parts(result: RunResult) -> Iterator[Part]:
    """List what tells how far the figures can be believed: the verdict on the measurement, the
    client error, an early end, silent streams, the simulator.
    """
    state = state_of(result)
    if result.numbers.completed:
        errors: list[float] = []
        for _, name, shown in _figures(result):
            of_metric = map(client_errors(name, result).get, shown)
            errors += [error for error in of_metric if error is not None]
        bound = NO_BOUND if result.tokens.unbounded_events else ""
        if not bound and errors:
            bound = f"timing error of loadgen at most {rounded_up(max(errors))} ms"
            for check in result.failed_checks:  # the limit, where this very figure exceeds it
                is_this = math.isclose(check.measured or 0.0, max(errors), rel_tol=0.01)
                if check.name == CLIENT_ERROR and check.allowed and is_this:
                    bound += f", limit {three_digits(check.allowed, 'ms')}"
        if state in (State.SUSPECT, State.INVALID):
            if bound:
                yield bound, Colour.NONE
        else:
            names = more_reasons([check.name for check in result.failed_checks])
            verdict = f"measurement {result.verdict}{f': {names}' if names else ''}"
            yield f"{verdict} ({bound})" if bound else verdict, VERDICT_COLOURS[result.verdict]
    if result.partial and result.no_answer_since_s is None:
        yield f"PARTIAL: {result.partial.partition(':')[0]}", Colour.YELLOW
    if result.silent_streams.count:
        yield plural(result.silent_streams.count, "silent stream"), Colour.YELLOW
    if result.insecure:
        yield "TLS certificate not verified", Colour.YELLOW
    if result.provenance.way:
        over_socket = result.provenance.settings.unix_socket is not None
        yield "over a Unix socket" if over_socket else "through a proxy", Colour.NONE
    if result.simulated:
        yield SIMULATED, Colour.NONE


def _figures(result: RunResult) -> Iterator[tuple[str, str, list[str]]]:
    """List the latencies of the line, E2EL where answers have no tokens: the metric, its
    distribution, and the statistics that have enough requests; the mean where none has.
    """
    for metric, statistics in (FIGURES if result.streams else WHOLE_FIGURES).items():
        name = slo.distribution(metric, result.latency_from)
        requests = request_count(name, result)
        shown = [column for column in statistics if not few_mark(column, requests)]
        yield metric, name, shown or ["mean"]


def _figure_texts(result: RunResult) -> Iterator[str]:
    """Write the latencies: the percentiles that have enough requests, the mean where none has, each
    with the mark of the table where the client may have moved it: "TTFT p50 26 ms, p99 ~34 ms".
    """
    for metric, name, shown in _figures(result):
        distribution = result.latency_ms.named(name)
        if not distribution.count:
            continue
        values = [distribution[column] for column in shown]
        texts = [
            f"{column} {INEXACT if large_client_errors(name, result, (column,)) else ''}{text}"
            for column, text in zip(shown, in_one_unit(*values), strict=True)
        ]
        yield f"{metric.upper()} {', '.join(texts)}"


def _rate(result: RunResult) -> str:
    """Write the rate of answers beside the one that was asked for; in a closed loop or a burst,
    the throughput.
    """
    settings = result.provenance.settings
    answered = answer_rate(result)
    if math.isfinite(settings.request_rate) and not settings.rate_changes:
        requested = three_digits(settings.request_rate)
        until = "" if result.no_answer_since_s is None else " before that"
        if result.sessions is not None:
            turns = (
                "" if answered is None else f", {three_digits(answered)} turns/s answered{until}"
            )
            return f"{requested} sessions/s requested{turns}"
        if answered is None:
            return f"{requested} req/s requested"
        return f"{three_digits(answered)} req/s{until} (target {requested})"
    if result.provenance.schedule.duration_s:
        return "" if answered is None else f"{three_digits(answered)} req/s"
    return f"{three_digits(result.numbers.request_throughput)} req/s"
