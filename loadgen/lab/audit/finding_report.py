"""Findings for a reader: as a page, of which a terminal can have all, or two lines for each cause.

The page says how many there are of each kind, then tells each with its explanation and its place.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from loadgen.document import (
    Answer,
    Block,
    Cell,
    Colour,
    Document,
    Heading,
    Items,
    Line,
    Note,
    Paragraph,
    Part,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
    terminal_writer,
)
from loadgen.lab.audit.finding import KINDS, ORDER, Finding, FindingGroup, Place, link
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import Screen

MAX_LINE = 200  # characters of what is wrong, in two lines for a cause
MAX_COMMAND = 80  # characters of a command in it
CHECKED = (
    f"Checked by {len(KINDS)} rules: rates, latencies and gains against the numbers that "
    "they are derived from; sentences and tables against the commands and results that they are "
    "about."
)
COMMAND = re.compile("`([^`]+)`")


def document(groups: Sequence[FindingGroup], files: int, folder: Path) -> Document:
    """Lay out the page.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        folder: Where the page will be; links to the files are relative to it.
    """
    names = _short_names(groups)
    return _document(groups, files, names, _blocks(groups, names, folder))


def full_text(groups: Sequence[FindingGroup], files: int, screen: Screen) -> str:
    """Return what the page has for a terminal, with whole paths.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        screen: Where it is shown.
    """
    paths = {group.worst.place.file: group.worst.place.file for group in groups}
    document = _document(groups, files, paths, _blocks(groups, paths, Path()))
    return terminal_writer.report(document, screen)


def text(groups: Sequence[FindingGroup], files: int, screen: Screen) -> str:
    """Return two lines for each cause, the worst first, and the link of each kind once.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        screen: Where it is shown.
    """
    names = _short_names(groups)
    items: list[Cell] = []
    linked: set[str] = set()
    for group in groups:
        finding = group.worst
        title = KINDS[finding.rule].title
        place = _where(finding.place, names[finding.place.file])
        further = len(group.findings) - 1
        more = f", and {further} more" if further else ""
        lines = [f"{_severity(group)}: {title}: {place}{more}", _shortened(_wrong(finding))]
        if finding.rule not in linked:
            linked.add(finding.rule)
            lines.append(f"see {link(finding.rule)}")
        items.append(cell(*lines))
    blocks = [Items(tuple(items))] if items else []
    return terminal_writer.report(_document(groups, files, names, blocks), screen)


def _document(
    groups: Sequence[FindingGroup], files: int, names: Mapping[str, str], blocks: Iterable[Block]
) -> Document:
    """Put a title, the answer and what was checked above the findings."""
    title = f"Audit of {plural(files, 'file')} with published results"
    answer = Answer(tuple(_parts(groups)), _after_audit(groups, names))
    return Document(title, tuple(blocks), (answer,), CHECKED)


def _parts(groups: Sequence[FindingGroup]) -> Iterator[Part]:
    """List the parts of the answer: the state, and how many findings in how many places."""
    wrong = [group for group in groups if not group.note]
    notes = [group for group in groups if group.note]
    if wrong:
        yield f"INCONSISTENT: {_counted(wrong, 'contradiction')}", Colour.RED
    else:
        yield "CONSISTENT: nothing contradicts", Colour.YELLOW if notes else Colour.GREEN
    if notes:
        yield _counted(notes, "note", " on weak evidence"), Colour.NONE


def _counted(groups: Sequence[FindingGroup], noun: str, about: str = "") -> str:
    places = sum(len(group.findings) for group in groups)
    return f"{plural(len(groups), noun)}{about} in {plural(places, 'place')}"


def _blocks(
    groups: Sequence[FindingGroup], names: Mapping[str, str], folder: Path
) -> Iterator[Block]:
    by_kind = sorted(groups, key=lambda group: (group.note, ORDER.index(group.worst.rule)))
    kinds = [
        list(members)
        for _, members in groupby(by_kind, lambda group: (group.note, group.worst.rule))
    ]
    if kinds:
        yield Heading(2, "Summary")
        rows = (
            (
                Span(_severity(members[0]), Tone.QUIET if members[0].note else Tone.BAD),
                KINDS[members[0].worst.rule].title,
                str(len(members)),
                str(sum(len(group.findings) for group in members)),
            )
            for members in kinds
        )
        yield Table.of(("Severity", "Kind", "Findings", "Places"), rows, 2)
    for members in kinds:
        rule = members[0].worst.rule
        yield Heading(2, f"{_severity(members[0]).capitalize()}: {KINDS[rule].title}")
        yield Paragraph.of(f"{KINDS[rule].meaning} See {link(rule)}.")
        for group in members:
            file = group.worst.place.file
            yield from _finding(group, names[file], os.path.relpath(file, folder))


def _finding(group: FindingGroup, name: str, path: str) -> Iterator[Block]:
    finding, *further = group.findings

    def linked(text: str, at: int) -> Line:
        return line(Span(text, link=path, fragment=f"L{at}"))

    where = linked(_where(finding.place, name), finding.place.line)
    yield Items((cell(where, prose(_wrong(finding))),))
    if further:
        places = tuple(linked(_repetition(other), other.place.line) for other in further)
        yield Note.fold(plural(len(further), "more place"), Items(places))


def _after_audit(groups: Sequence[FindingGroup], names: Mapping[str, str]) -> str:
    """Say where to begin: at the worst finding, which is the first."""
    if not groups:
        return "draft a study of the page, to measure it again: `loadgen import --make-study`"
    first = groups[0].worst
    where = f"{names[first.place.file]}:{first.place.line} ({KINDS[first.rule].title})"
    if groups[0].note:
        return f"nothing contradicts; begin with {where} before you rely on a comparison"
    return f"begin with {where}: have it corrected, or do not rely on its numbers"


def _severity(group: FindingGroup) -> str:
    """Whether the findings contradict something, or only do not show what they seem to."""
    return "note" if group.note else "inconsistent"


def _short_names(groups: Sequence[FindingGroup]) -> Mapping[str, str]:
    """Name the files without their folders where these still tell them apart."""
    paths = dict.fromkeys(group.worst.place.file for group in groups)
    names = Counter(Path(path).name for path in paths)
    return {path: name if names[name := Path(path).name] == 1 else path for path in paths}


def _where(place: Place, name: str) -> str:
    """Name a place: the file, the line, and the cell of a table."""
    parts = [f"{name}:{place.line}", place.within]
    parts += [f'row "{place.row}"'] if place.row else []
    parts += [f'column "{place.column}"'] if place.column else []
    return ", ".join(filter(None, parts))


def _wrong(finding: Finding) -> str:
    """Say what is wrong with the numbers; the place names the row."""
    return f"{finding.claim}: {finding.why.removeprefix(f'{finding.place.row}: ')}"


def _repetition(finding: Finding) -> str:
    """Name the place and the values of a further finding of one cause."""
    part = finding.place.within or f"line {finding.place.line}"
    should_be = f" -> {finding.should_be}" if finding.should_be else ""
    return f"{part} ({finding.says}{should_be})"


def _shortened(sentence: str) -> str:
    sentence = COMMAND.sub(lambda command: f"`{_cut(command[1], MAX_COMMAND)}`", sentence)
    return _cut(sentence, MAX_LINE)


def _cut(text: str, most: int) -> str:
    """Cut a text that is too long behind a word."""
    if len(text) <= most:
        return text
    kept = text[: most - 4]
    return f"{kept[: kept.rfind(' ')].rstrip(' ,;:(')} ..."
