"""Verdict: whether the run may be believed, why not, and what to do about it."""

from collections.abc import Iterator
from typing import Literal

from loadgen.checks import GROUPS, Check
from loadgen.report.console import banners, explanation, judgement, not_ok
from loadgen.report.html import Block, Items, Line, Note, Paragraph, Span, Table, Tone, cell, line, prose
from loadgen.report.result import RunResult

Kind = Literal["tip", "info", "warning", "danger"]
MEANS: dict[str, tuple[Kind, str]] = {
    "SUSPECT": ("warning", "the client, or something between it and the server, distorts the numbers below"),
    "INVALID": ("danger", "requests, tokens or the engine went missing: the numbers below describe something else"),
}


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the banners, the verdict with its reasons, the notes, and every check."""
    wrong, notes = result.failed_checks, result.notes
    for banner in banners(result):
        yield Note("warning", banner, ())
    kind, means = _means(result)
    reasons = (Items(tuple(map(_reason, wrong))),) if wrong else ()
    failing = not_ok(result)
    title = f"NOT OK, {failing}; the measurement is {result.verdict}" if failing else result.verdict
    explained = (Paragraph(line(f"Explained by: {because}.")),) if (because := explanation(result)) else ()
    yield Note(kind, f"{title}: {means}", (*reasons, *explained, Paragraph(line(f"Verdict: {judgement(result)}."))))
    if notes:
        title = "Bear in mind" if len(notes) == 1 else f"Bear in mind: {len(notes)} notes"
        yield Note("info", title, (Items(tuple(map(_note, notes))),))
    rows = tuple(tuple(map(cell, _row(check))) for check in result.checks)
    yield Note("note", "All checks", (Table(("group", "check", "", "value", "limit"), rows),), folded=True)


def _means(result: RunResult) -> tuple[Kind, str]:
    """Say what the verdict means, and how it looks: green only where no request failed."""
    if result.verdict in MEANS:
        return MEANS[result.verdict]
    if not result.outcomes.get("ok"):
        return "info", "the client worked correctly, but no request succeeded"
    return "info" if not_ok(result) else "tip", "the numbers below may be believed"


def _row(check: Check) -> tuple[str | Span, ...]:
    return f"{check.group} {GROUPS[check.group].about}", check.name, _state(check), check.value, check.limit


def _reason(check: Check) -> Line:
    return _with_advice(check, check.finding)


def _note(check: Check) -> Line:
    return _with_advice(check, check.value)


def _with_advice(check: Check, what: str) -> Line:
    name = Span(check.name, Tone.STRONG)
    return line(name, f": {what}. What to do: ", *prose(check.advice), ".")


def _state(check: Check) -> Span:
    if check.ok is False:
        return Span("failed" if check.counts else "explains" if check.explains else "noted", Tone.BAD)
    return Span("passed") if check.ok else Span("does not apply", Tone.QUIET)
