"""Verdict: the reasons and the advice behind the badge, folded."""

from collections.abc import Iterator

from loadgen.checks import GROUPS, Check
from loadgen.report.html import Block, Items, Line, Note, NoteKind, Paragraph, Span, Table, Tone, line, prose
from loadgen.report.result import RunResult
from loadgen.report.verdict_lines import banners, explanation, verdict_summary


def blocks(result: RunResult, kind: NoteKind) -> Iterator[Block]:
    """Write what happened and why the run is not VALID, the notes, and every check.

    Args:
        result: The result.
        kind: The kind of the badge, whose colour the reasons have.
    """
    reasons = [*map(line, banners(result)), *map(reason, result.failed_checks)]
    if reasons:
        because = explanation(result)
        explained = (Paragraph.of(f"Explained by: {because}."),) if because else ()
        title = f"Reasons and advice ({len(reasons)})"
        yield Note(kind, title, (Items(tuple(reasons)), *explained), folded=True)
    if notes := tuple(reason(note, note.value) for note in result.notes):
        yield Note("note", f"Bear in mind ({len(notes)})", (Items(notes),), folded=True)
    table = Table.of(("group", "check", "", "value", "limit"), map(_row, result.checks))
    yield Note("note", f"All checks: {verdict_summary(result)}", (table,), folded=True)


def _row(check: Check) -> tuple[str | Span, ...]:
    return f"{check.group} {GROUPS[check.group].about}", check.name, _state(check), check.value, check.limit


def reason(check: Check, what: str = "") -> Line:
    """Write why a check failed, or what else it found, and what to do."""
    name = Span(check.name, Tone.STRONG)
    return line(name, f": {what or check.finding}. What to do: ", *prose(check.advice), ".")


def _state(check: Check) -> Span:
    if check.ok is False:
        return Span("failed" if check.counts else "explains" if check.explains else "noted", Tone.BAD)
    return Span("passed") if check.ok else Span("does not apply", Tone.QUIET)
