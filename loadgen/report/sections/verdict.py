"""Verdict: banners, the checks with what to do, and the limits of the SLO, with what a run shows of
each.
"""

from collections.abc import Iterator
from itertools import groupby

from loadgen.checks import GROUPS, TOO_FEW_FOR_SLO, Check
from loadgen.config import slo
from loadgen.config.slo import Limit
from loadgen.document import (
    Block,
    Cell,
    Items,
    Line,
    Note,
    NoteKind,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
)
from loadgen.metrics.failures import Failures, lost_text
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import NO_BOUND
from loadgen.report.result import RunResult
from loadgen.report.result.outcomes import judge_limits
from loadgen.report.run_state import has_failed
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

SIMULATED = "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
MET = {True: "met", False: "MISSED", None: "CANNOT TELL at this timing error of loadgen"}


def reasons(result: RunResult, kind: NoteKind = "note") -> Iterator[Block]:
    """Write what happened and why the run is not VALID, and the notes.

    Args:
        result: The result.
        kind: The kind of the badge, whose colour the reasons have.
    """
    why: list[Line | Cell] = [*map(line, banners(result)), *failed(result)]
    if why:
        yield Note.fold("Reasons and advice", Items(tuple(why)), kind=kind)
    if notes := tuple(map(finding_cell, result.notes)):
        yield Note.fold("Bear in mind", Items(notes))


def checks(result: RunResult) -> Note:
    """Write the limits of the SLO, and every check."""
    blocks: list[Block] = [Items.of(slo_lines(result))] if result.slo else []
    if applied := [check for check in result.checks if check.ok is not None]:
        rows = []
        for check in applied:
            state = Span("passed")
            if not check.ok:
                word = "failed" if check.counts else "explains" if check.explains else "noted"
                state = Span(word, Tone.BAD)
            rows.append((check.group, check.name, state, check.value, check.limit))
        blocks.append(Table.of(("group", "check", "", "value", "limit"), rows))
        used = dict.fromkeys(check.group for check in applied if check.group in GROUPS)
        groups = "; ".join(f"{group} {GROUPS[group].about}" for group in used)
        blocks += [Paragraph.of(f"Groups: {groups}")] if groups else []
    if others := [check.name for check in result.checks if check.ok is None]:
        blocks.append(Paragraph.of(f"Not applicable: {', '.join(others)}"))
    what = "All checks and limits of the SLO" if result.slo else "All checks"
    return Note.fold(f"{what}: {_verdict_summary(result)}", *blocks)


def failed(result: RunResult, said: str = "") -> Iterator[Cell]:
    """Write each check that failed, those of one advice with it, and what explains them.

    Args:
        result: The result.
        said: The advice that is given elsewhere, and not repeated.
    """
    useless = (TOO_FEW_FOR_SLO,) if has_failed(result) else ()  # more requests would fail as well
    told = (check for check in result.failed_checks if check.name not in useless)
    for advice, checks in groupby(told, lambda check: check.advice):
        yield (*map(_finding, checks), *advice_lines(advice, said))
    if because := ", ".join(f"{check.name} {check.value}" for check in result.explanations):
        yield cell(f"explained by: {because}")


def advice_lines(advice: str, said: str) -> Iterator[Line]:
    """Write what to do; nothing if it is said elsewhere."""
    if advice not in said:
        yield line("-> ", *prose(advice))


def finding_cell(check: Check, said: str = "") -> Cell:
    """Write what a check found, and what to do if that is not said elsewhere."""
    return (_finding(check, check.value), *advice_lines(check.advice, said))


def _finding(check: Check, what: str = "") -> Line:
    return line(Span(check.name, Tone.STRONG), f": {what or check.finding}")


def banners(result: RunResult) -> Iterator[str]:
    """Write the banners: facts that change the meaning of all numbers."""
    if result.simulated:
        yield SIMULATED
    yield from interruptions(result)


def interruptions(result: RunResult) -> Iterator[str]:
    """Write why the run, its streams or its connections were not as they should be."""
    if result.insecure:
        yield "INSECURE: the server's TLS certificate was not verified (--insecure)."
    if (way := result.provenance.way) and result.provenance.settings.unix_socket is None:
        yield f"PROXY: requests went {way}, whose time is in every latency."
    elif way:
        yield f"UNIX SOCKET: requests went {way}; times are those of reads: the kernel stamps none."
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
    if silences := [silence for silence in result.silences if not silence.hung]:
        longest = max(silences, key=lambda silence: silence.for_s)
        found = f"; {longest.found}" if longest.found else ""
        yield (
            f"SILENT SERVER: {plural(len(silences), 'time')}, the longest from "
            f"{longest.since_s:.1f} s on, no stream had a token for {longest.for_s:.1f} s{found}."
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
        client = f", timing error of loadgen at most {rounded_up(error_ms)} ms ({figure})"
    return (
        f"{result.verdict}{client}; {len(applied) - len(wrong)} of {len(applied)} checks "
        f"passed{noted}"
    )


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
            value += f", timing error of loadgen at most {four_digits(row.client_error_ms, 'ms')}"
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
        client = f", with a timing error of at most {four_digits(row.client_error_ms)} ms"
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
