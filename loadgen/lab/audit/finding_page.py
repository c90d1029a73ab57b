"""Findings as a page: how many of each kind, then each with its explanation and its place."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from loadgen.document import (
    Badge,
    Block,
    Document,
    Heading,
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
from loadgen.lab.audit.finding import FindingGroup
from loadgen.lab.audit.finding_text import (
    counted,
    repetition,
    severity,
    short_names,
    where,
    wrong,
)
from loadgen.lab.audit.kinds import KINDS, ORDER


def document(groups: Sequence[FindingGroup], files: int, folder: Path) -> Document:
    """Lay out the page.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        folder: Where the page will be; links to the files are relative to it.
    """
    kind: NoteKind = (
        "tip" if not groups else "warning" if all(group.note for group in groups) else "danger"
    )
    blocks: list[Block] = [Badge(kind, line(counted(groups, files)))]
    if groups:
        blocks += [Heading(2, "Summary"), _summary(groups)]
    names = short_names(groups)
    by_kind = sorted(groups, key=lambda group: (group.note, ORDER.index(group.worst.rule)))
    for (_, rule), findings in groupby(by_kind, lambda group: (group.note, group.worst.rule)):
        members = list(findings)
        title = KINDS[rule].title
        blocks.append(Heading(2, f"{severity(members[0]).capitalize()}: {title}"))
        blocks.append(Paragraph.of(KINDS[rule].meaning))
        for group in members:
            file = group.worst.place.file
            blocks += _finding(group, names[file], os.path.relpath(file, folder))
    return Document("Audit of published results", tuple(blocks))


def _summary(groups: Sequence[FindingGroup]) -> Table:
    causes = Counter((group.note, group.worst.rule) for group in groups)
    places: Counter[tuple[bool, str]] = Counter()
    for group in groups:
        places[group.note, group.worst.rule] += len(group.findings)
    ordered = sorted(causes, key=lambda kind: (kind[0], ORDER.index(kind[1])))
    rows = [
        (
            Span("note" if note else "inconsistent", Tone.QUIET if note else Tone.BAD),
            KINDS[rule].title,
            str(causes[note, rule]),
            str(places[note, rule]),
        )
        for note, rule in ordered
    ]
    return Table.of(("Severity", "Kind", "Findings", "Places"), rows, 2)


def _finding(group: FindingGroup, name: str, path: str) -> Iterator[Block]:
    finding, *further = group.findings

    def linked(text: str, at: int) -> Line:
        return line(Span(text, link=path, fragment=f"L{at}"))

    yield Paragraph(linked(where(finding.place, name), finding.place.line))
    yield Paragraph(prose(wrong(finding, full=True)))
    if further:
        places = tuple(linked(repetition(other), other.place.line) for other in further)
        yield Note("note", f"{len(further)} more places", (Items(places),), folded=True)
