"""Verdict: what happened, whether the run may be believed, why not, and what to do about it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from loadgen.checks import GROUPS
from loadgen.report.console import banners, judgement, not_ok
from loadgen.report.html import Block, Items, Line, Note, Paragraph, Span, Table, Tone, cell, line, prose
from loadgen.report.run_summary import failed, noted, seen

Kind = Literal["tip", "info", "warning", "danger"]
MEANS: dict[str, tuple[Kind, str]] = {
    "SUSPECT": ("warning", "the client, or what stands between it and the server, is in the numbers below"),
    "INVALID": ("danger", "requests, tokens or the engine went missing: the numbers below describe something else"),
}


def blocks(result: Mapping[str, Any]) -> Iterator[Block]:
    """What is to be known before any number, the verdict with its reasons, what to bear in mind, and every check.

    Args:
        result: As it is saved.
    """
    own, wrong, notes = result["loadgen"], failed(result), noted(result)
    for banner in banners(own):
        yield Note("warning", banner, ())
    kind, means = _means(own)
    reasons = (Items(tuple(map(_reason, wrong))),) if wrong else ()
    failing = not_ok(own)
    title = f"NOT OK, {failing}; the measurement is {own['verdict']}" if failing else own["verdict"]
    yield Note(kind, f"{title}: {means}", (*reasons, Paragraph(line(f"Verdict: {judgement(own)}."))))
    if notes:
        title = "Bear in mind" if len(notes) == 1 else f"Bear in mind: {len(notes)} notes"
        yield Note("info", title, (Items(tuple(map(_note, notes))),))
    rows = tuple(tuple(map(cell, _row(check))) for check in own["checks"])
    yield Note("note", "All checks", (Table(("group", "check", "", "value", "limit"), rows),), folded=True)


def _means(own: Mapping[str, Any]) -> tuple[Kind, str]:
    """What the verdict means, and how it looks: green only where all went well, since it speaks of the client alone."""
    if own["verdict"] in MEANS:
        return MEANS[own["verdict"]]
    if not own["outcomes"].get("ok"):
        return "info", "the client did what was asked of it"
    return "info" if not_ok(own) else "tip", "the numbers below may be believed"


def _row(check: Mapping[str, Any]) -> tuple[str | Span, ...]:
    group = f"{check['group']} {GROUPS[check['group']].about}"
    return group, check["name"], _said(check), check["value"], check["limit"]


def _reason(check: Mapping[str, Any]) -> Line:
    return _told(check, seen(check))


def _note(check: Mapping[str, Any]) -> Line:
    return _told(check, check["value"])


def _told(check: Mapping[str, Any], what: str) -> Line:
    name = Span(check["name"], Tone.STRONG)
    return line(name, f": {what}. What to do: ", *prose(check["advice"]), ".")


def _said(check: Mapping[str, Any]) -> Span:
    if check["ok"] is False:
        return Span("failed" if check["counts"] else "noted", Tone.BAD)
    return Span("passed") if check["ok"] else Span("does not apply", Tone.QUIET)
