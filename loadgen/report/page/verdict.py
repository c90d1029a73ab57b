"""Verdict: whether the run may be believed, why not, and what to do about it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from loadgen.pages import Block, Items, Line, Note, Paragraph, Span, Table, Tone, cell, line
from loadgen.report.console import banners, passed

GROUPS = {
    "A": "accounting",
    "B": "did we send it?",
    "C": "did the client distort it?",
    "D": "is it enough, and steady?",
    "E": "is it the workload we claim?",
    "F": "can this be?",
    "G": "can it be made again?",
}
Kind = Literal["tip", "warning", "danger"]
MEANS: dict[str, tuple[Kind, str]] = {
    "VALID": ("tip", "the numbers below may be believed"),
    "SUSPECT": ("warning", "the client, or what stands between it and the server, is in the numbers below"),
    "INVALID": ("danger", "requests, tokens or the engine went missing: the numbers below describe something else"),
}


def blocks(own: dict[str, Any]) -> Iterator[Block]:
    """The verdict with its reasons, then what one should bear in mind, then every check.

    Args:
        own: loadgen's part of the result.
    """
    kind, means = MEANS[own["verdict"]]
    wrong = [check for check in own["checks"] if check["ok"] is False]
    counted = [check for check in wrong if check["counts"]]
    notes = [check for check in wrong if not check["counts"]]
    reasons = (Items(tuple(map(_reason, counted))),) if counted else ()
    yield Note(kind, f"{own['verdict']}: {means}", (*reasons, Paragraph(line(f"Verdict: {passed(own)}."))))
    for banner in banners(own):
        yield Note("warning", banner, ())
    if notes:
        title = "Bear in mind" if len(notes) == 1 else f"Bear in mind: {len(notes)} notes"
        yield Note("info", title, (Items(tuple(map(_note, notes))),))
    rows = tuple(tuple(map(cell, _row(check))) for check in own["checks"])
    yield Note("note", "All checks", (Table(("group", "check", "", "value", "limit"), rows),), folded=True)


def _row(check: Mapping[str, Any]) -> tuple[str | Span, ...]:
    group = f"{check['group']} {GROUPS[check['group']]}"
    return group, check["name"], _said(check), check["value"], check["limit"]


def _reason(check: Mapping[str, Any]) -> Line:
    name = Span(check["name"], Tone.STRONG)
    return line(name, f": {check['value']}; allowed is {check['limit']}. What to do: {check['advice']}.")


def _note(check: Mapping[str, Any]) -> Line:
    return line(Span(check["name"], Tone.STRONG), f": {check['value']}. What to do: {check['advice']}.")


def _said(check: Mapping[str, Any]) -> Span:
    if check["ok"] is False:
        return Span("failed" if check["counts"] else "noted", Tone.BAD)
    return Span("passed") if check["ok"] else Span("does not apply", Tone.QUIET)
