"""Verdict: banners, the verdict with its checks, and the limits of the SLO, with what a run
shows of each.
"""

from collections.abc import Iterator
from itertools import groupby

from loadgen.checks import GROUPS, Check
from loadgen.config import slo
from loadgen.config.slo import Limit
from loadgen.document import (
    Block,
    Items,
    Line,
    Note,
    NoteKind,
    Paragraph,
    Span,
    Table,
    Tone,
    line,
    prose,
)
from loadgen.metrics.failures import Failures, lost_text
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import judge_limits
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.number_format import (
    UNKNOWN,
    four_digits,
    ms,
    percent,
    percentile,
    plural,
    rounded_up,
)

MET = {True: "met", False: "MISSED", None: "CANNOT TELL at this client error"}


def lines(result: RunResult) -> Iterator[str]:
    """Write the banners, the verdict, the checks that failed, the notes, and the limits of the
    SLO.
    """
    yield from banners(result)
    yield f"Verdict: {_verdict_summary(result)}"
    yield from failed_lines(result)
    for check in result.notes:
        yield f"  note: {check.value}"
        yield f"    -> {check.advice}"
    yield from slo_lines(result)


def failed_lines(result: RunResult) -> Iterator[str]:
    """Write each check that failed, with what to do, and what explains them."""
    for advice, checks in groupby(result.failed_checks, lambda check: check.advice):
        for check in checks:
            yield f"  {check.name}: {check.finding}"
        yield f"    -> {advice}"
    if because := _explanation(result):
        yield f"  explained by: {because}"


def banners(result: RunResult) -> Iterator[str]:
    """Write the banners: facts that change the meaning of all numbers."""
    if result.simulated:
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    yield from interruptions(result)


def interruptions(result: RunResult) -> Iterator[str]:
    """Write why the run, its streams or its connections were not as they should be."""
    if result.insecure:
        yield "INSECURE: the server's TLS certificate was not verified (--insecure)."
    if result.partial:
        lost = lost_text(result.cancelled.in_flight, result.cancelled.never_sent)
        yield f"PARTIAL: {result.partial}{f'; requests: {lost}' if lost else ''}."
    if (silent := result.silent_streams).count:
        examples = ", ".join(
            f"request {silence.index} from {silence.since_s:.1f} s on for {silence.for_s:.1f} s"
            for silence in silent.examples
        )
        yield (
            f"SILENT STREAMS: {plural(silent.count, 'stream')} had no token for 60 s or more "
            f"({examples})."
        )


def _verdict_summary(result: RunResult) -> str:
    """Write the verdict, and how many of the checks that apply passed."""
    applied = [check for check in result.checks if check.ok is not None and not check.explains]
    wrong = [check for check in applied if not check.ok]
    noted = f", {plural(notes, 'note')}" if (notes := len(result.notes)) else ""
    client = ""
    if result.tokens.unbounded_events:
        client = f", {NO_BOUND}"
    elif worst := result.max_client_error:
        figure, error_ms = worst
        client = f", client at most {rounded_up(error_ms)} ms ({figure} of the whole run)"
    return (
        f"{result.verdict}{client}; {len(applied) - len(wrong)} of {len(applied)} checks "
        f"passed{noted}"
    )


def _explanation(result: RunResult) -> str:
    """Say what explains the failed checks; empty if nothing does."""
    return ", ".join(f"{check.name} {check.value}" for check in result.explanations)


def slo_lines(result: RunResult, badge: str | None = None) -> Iterator[str]:
    """Write each limit of the SLO, and whether it was met.

    Args:
        result: The result.
        badge: Of a page, which needs no line for limits that were met or that its badge names.
    """
    for row in result.slo:
        if badge is not None and (row.met or f"{row.limit} " in badge):
            continue
        is_rate = "_rate" in row.limit
        # What a limit without a unit means.
        bare = "" if is_rate or not row.limit[-1:].isdigit() else "ms"
        if row.beyond:  # because of the failed requests of its class, or of all
            part = next((part for part in result.classes if row in part.named_limits), None)
            failures = Failures.among(result.outcomes, result.never_due)
            failed = failures.failed if part is None else part.failed
            requests = failures.of if part is None else part.requests
            value = f"{percent(failed / requests, 2)} of {plural(requests, 'request')} failed"
        else:
            value = UNKNOWN if row.value is None else row.value_text
        if row.met is None and row.client_error_ms is None:
            value += f", {NO_BOUND}"
        elif row.met is None:
            value += f", client at most {four_digits(row.client_error_ms, 'ms')}"
        yield f"SLO {row.limit}{bare}: {MET[row.met]} ({value})"


def describe_misses(limits: str, snapshot: Snapshot, clock: str) -> Iterator[str]:
    """Describe each limit that is not met, in a line.

    Args:
        limits: The SLO.
        snapshot: What was measured.
        clock: "due" or "sent", from which latencies start.

    Raises:
        BadInput: A limit is not understood.
    """
    failures = snapshot.failures
    outcomes = (
        ", ".join(f"{name} {count}" for name, count in snapshot.outcomes.items()) or "none ended"
    )
    for limit, row in zip(
        slo.required_limits(limits), judge_limits(limits, snapshot, clock), strict=True
    ):
        if row.met:
            continue
        if row.beyond:
            share = percent(failures.failed / failures.of, 2)
            yield f"{limit.text} is missed: {share} of {failures.of} requests failed ({outcomes})"
            continue
        if limit.metric == "error":
            value = f"{percent(row.value, 2)} of {failures.of} requests ({outcomes})"
        else:
            value = _latency_value(limit, row.value, snapshot, clock)
        client = f", with a client error of at most {four_digits(row.client_error_ms)} ms"
        if row.client_error_ms is None:
            client = f", {NO_BOUND}"
        how = "is missed" if row.met is False else "cannot be told"
        yield f"{limit.text} {how}: {limit.name} is {value}{client if row.met is None else ''}"


def _latency_value(limit: Limit, value: float | None, snapshot: Snapshot, clock: str) -> str:
    """Write the value of a latency, and how far it may be believed."""
    if value is None:
        return f"{UNKNOWN}: nothing was measured"
    histogram = snapshot.histograms[slo.distribution(limit.metric, clock)]
    p = limit.percentile
    shown = f"{ms(value * 1e6)} of {histogram.count} values"
    if (
        limit.metric not in slo.GAPS
        and (failed := snapshot.failures.failed)
        and limit.statistic != "mean"
    ):
        return f"{shown} and {plural(failed, 'failed request')}"
    if p is None:
        return shown
    needed = least_samples(p)
    requests = snapshot.requests_of(slo.distribution(limit.metric, clock))
    of_requests = f" of {plural(requests, 'request')}" if limit.metric in slo.GAPS else ""
    few = f" ({percentile(p)} needs {needed})" if requests < needed else ""
    return f"{shown}{of_requests}{few}"


def blocks(result: RunResult, kind: NoteKind) -> Iterator[Block]:
    """Write what happened and why the run is not VALID, the notes, and every check.

    Args:
        result: The result.
        kind: The kind of the badge, whose colour the reasons have.
    """
    reasons = [*map(line, banners(result)), *map(reason, result.failed_checks)]
    if reasons:
        because = _explanation(result)
        explained = (Paragraph.of(f"Explained by: {because}."),) if because else ()
        title = f"Reasons and advice ({len(reasons)})"
        yield Note.fold(title, Items(tuple(reasons)), *explained, kind=kind)
    if notes := tuple(reason(note, note.value) for note in result.notes):
        yield Note.fold(f"Bear in mind ({len(notes)})", Items(notes))
    rows = []
    for check in result.checks:
        state = Span("passed") if check.ok else Span("does not apply", Tone.QUIET)
        if check.ok is False:
            state = Span(
                "failed" if check.counts else "explains" if check.explains else "noted",
                Tone.BAD,
            )
        rows.append(
            (
                f"{check.group} {GROUPS[check.group].about}",
                check.name,
                state,
                check.value,
                check.limit,
            )
        )
    table = Table.of(("group", "check", "", "value", "limit"), rows)
    limits = [Items.of(slo_lines(result))] if result.slo else []
    what = "All checks and limits of the SLO" if limits else "All checks"
    yield Note.fold(f"{what}: {_verdict_summary(result)}", *limits, table)


def reason(check: Check, what: str = "") -> Line:
    """Write why a check failed, or what else it found, and what to do."""
    name = Span(check.name, Tone.STRONG)
    return line(name, f": {what or check.finding}. What to do: ", *prose(check.advice), ".")
