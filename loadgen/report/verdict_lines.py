"""Verdict lines: banners, the verdict with its checks, and the limits of the SLO, as lines of a report."""

from collections.abc import Iterator
from itertools import groupby

from loadgen.metrics.failures import Failures, lost_text
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import LimitResult
from loadgen.util.number_format import UNKNOWN, four_digits, percent, plural, rounded_up

MET = {True: "met", False: "MISSED", None: "CANNOT TELL at this client error"}


def lines(result: RunResult) -> Iterator[str]:
    """Write the banners, the verdict with its reasons, and the limits of the SLO."""
    yield from banners(result)
    yield from verdict_and_checks(result)
    yield from slo_lines(result)


def banners(result: RunResult) -> Iterator[str]:
    """Write the banners: facts that change the meaning of all numbers."""
    if result.simulated:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    if result.insecure:
        yield "INSECURE: the server's TLS certificate was not verified (--insecure)."
    if result.partial:
        lost = lost_text(result.cancelled.in_flight, result.cancelled.never_sent)
        yield f"PARTIAL: {result.partial}{f'; requests: {lost}' if lost else ''}."
    elif result.no_answer_since_s is not None:
        yield f"NO ANSWER from {result.no_answer_since_s:.1f} s on: every connection was refused."
    if result.outcomes and not result.outcomes.get("ok"):
        yield "NO REQUEST SUCCEEDED: there are no latencies."
    if (silent := result.silent_streams).count:
        each = ", ".join(
            f"request {one.index} from {one.since_s:.1f} s on for {one.for_s:.1f} s" for one in silent.examples
        )
        yield f"SILENT STREAMS: {plural(silent.count, 'stream')} had no token for 60 s or more ({each})."
    if result.overloaded:
        yield "OVERLOADED: requests came faster than they were answered."


def failed_share(result: RunResult) -> str | None:
    """Write the share of the requests that failed; None where none did."""
    failures = Failures.among(result.outcomes, result.never_due)
    if not failures.failed:
        return None
    return f"{percent(failures.failed / failures.of, 2)} of {plural(failures.of, 'request')} failed"


def verdict_and_checks(result: RunResult) -> Iterator[str]:
    """Write the verdict, the checks that failed, and the notes."""
    yield f"Verdict: {verdict_summary(result)}"
    for advice, checks in groupby(result.failed_checks, lambda check: check.advice):
        for check in checks:
            yield f"  {check.name}: {check.finding}"
        yield f"    -> {advice}"
    if because := explanation(result):
        yield f"  explained by: {because}"
    for check in result.notes:
        yield f"  note: {check.value}"
        yield f"    -> {check.advice}"


def explanation(result: RunResult) -> str:
    """Say what explains the failed checks; empty if nothing does."""
    return ", ".join(f"{check.name} {check.value}" for check in result.explanations)


def verdict_summary(result: RunResult) -> str:
    """Write the verdict, and how many of the checks that apply passed."""
    applied = [check for check in result.checks if check.ok is not None and not check.explains]
    wrong = [check for check in applied if not check.ok]
    noted = f", {plural(notes, 'note')}" if (notes := len(result.notes)) else ""
    client = ""
    if worst := result.max_client_error:
        figure, error_ms = worst
        client = f", client at most {rounded_up(error_ms)} ms ({figure} of the whole run)"
    return f"{result.verdict}{client}; {len(applied) - len(wrong)} of {len(applied)} checks passed{noted}"


def _failed_of(result: RunResult, row: LimitResult) -> str:
    """Write the share of failed requests because of which a limit is missed: of all, or of its class."""
    for one in result.classes:
        if row in one.named_limits:
            return f"{percent(one.failed / one.requests, 2)} of {plural(one.requests, 'request')} failed"
    return str(failed_share(result))


def slo_lines(result: RunResult) -> Iterator[str]:
    """Write each limit of the SLO, and whether it was met."""
    for row in result.slo:
        is_rate = "_rate" in row.limit
        bare = "" if is_rate or not row.limit[-1:].isdigit() else "ms"  # what a limit without a unit means
        if row.beyond:
            value = _failed_of(result, row)
        else:
            value = UNKNOWN if row.value is None else row.value_text
        if row.met is None:
            value += f", client at most {four_digits(row.client_error_ms, 'ms')}"
        yield f"SLO {row.limit}{bare}: {MET[row.met]} ({value})"
