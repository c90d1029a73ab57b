"""Findings for a reader: as a page, of which a terminal can have all, or two lines for each cause.

The page says how many there are of each kind, then tells each with its explanation and its place.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
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
    cell,
    line,
    prose,
    terminal_writer,
)
from loadgen.lab.audit.finding import Finding, FindingGroup, Place
from loadgen.lab.audit.kinds import KINDS, ORDER, link
from loadgen.report.sections import next_step
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import PLAIN, printable, wrap

MAX_LINE = 160  # characters of what is wrong, in two lines for a cause
MAX_COMMAND = 44  # characters of a command in it
COMMAND = re.compile(rf"`([^`]{{{MAX_COMMAND},}})`")


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
    badge = Badge(kind, line(_counted(groups, files)))
    names = _short_names(groups)
    following = next_step.blocks(_after_audit(groups, names))
    blocks = _blocks(groups, names, folder)
    return Document("Audit of published results", (badge, *following, *blocks))


def full_text(groups: Sequence[FindingGroup], files: int, columns: int) -> str:
    """Return what the page has for a terminal, with whole paths, and the count last.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        columns: How long a line may be.
    """
    paths = {group.worst.place.file: group.worst.place.file for group in groups}
    following = next_step.blocks(_after_audit(groups, paths))
    count = Paragraph.of(_counted(groups, files))
    return terminal_writer.text((*_blocks(groups, paths, Path()), count, *following), columns)


def text(groups: Sequence[FindingGroup], files: int, columns: int | None = None) -> str:
    """Return two lines for each cause, the worst first, and one that counts them.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        columns: Where a line is wrapped; None: nowhere.
    """
    names = _short_names(groups)
    lines: list[str] = []
    linked: set[str] = set()
    for group in groups:
        finding = group.worst
        title = KINDS[finding.rule].title
        place = _where(finding.place, names[finding.place.file])
        further = len(group.findings) - 1
        more = f", and {further} more" if further else ""
        lines += [f"{_severity(group)}: {title}: {place}{more}", f"  {_shortened(_wrong(finding))}"]
        if finding.rule not in linked:
            linked.add(finding.rule)
            lines.append(f"  see {link(finding.rule)}")
    lines.append(_counted(groups, files))
    lines += next_step.lines(_after_audit(groups, names), PLAIN)
    shown = list(map(printable, lines))
    if columns is not None:
        shown = list(chain.from_iterable(wrap(line, columns, "      ") for line in shown))
    return "".join(f"{line}\n" for line in shown)


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


def _counted(groups: Sequence[FindingGroup], files: int) -> str:
    notes = [group for group in groups if group.note]
    return f"{plural(files, 'file')}: {len(groups) - len(notes)} inconsistent, {len(notes)} notes"


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
    sentence = COMMAND.sub(lambda command: f"`{command[1][: MAX_COMMAND - 4]} ...`", sentence)
    if len(sentence) <= MAX_LINE:
        return sentence
    kept = sentence[: MAX_LINE - 4]
    return f"{kept[: kept.rfind(' ')].rstrip(' ,;:(')} ..."
