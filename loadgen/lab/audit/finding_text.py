"""Findings as lines for a reader: two for each cause, and a link that explains its kind."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadgen.lab.audit.finding import Finding, FindingGroup, Place
from loadgen.lab.audit.kinds import KINDS, link
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import printable

MAX_LINE = 160  # characters of what is wrong; `--full` prints all
MAX_COMMAND = 44  # characters of a command in it
COMMAND = re.compile(rf"`([^`]{{{MAX_COMMAND},}})`")


def text(groups: Sequence[FindingGroup], files: int, *, full: bool = False) -> str:
    """Return two lines for each cause, the worst first, and one that counts them.

    Args:
        groups: The findings by cause.
        files: How many files were read.
        full: Whether nothing is left out.
    """
    names = short_names(groups)
    lines: list[str] = []
    linked: set[str] = set()
    for group in groups:
        lines += _lines(group, names, full=full)
        if group.worst.rule not in linked:
            linked.add(group.worst.rule)
            lines.append(f"  see {link(group.worst.rule)}")
    return "".join(f"{printable(line)}\n" for line in (*lines, counted(groups, files)))


def counted(groups: Sequence[FindingGroup], files: int) -> str:
    """Return how many findings there are."""
    notes = [group for group in groups if group.note]
    return f"{plural(files, 'file')}: {len(groups) - len(notes)} inconsistent, {len(notes)} notes"


def severity(group: FindingGroup) -> str:
    """Return whether the findings contradict something, or only do not show what they seem to."""
    return "note" if group.note else "inconsistent"


def short_names(groups: Sequence[FindingGroup]) -> Mapping[str, str]:
    """Return the names of the files without their folders where these still tell them apart."""
    paths = dict.fromkeys(group.worst.place.file for group in groups)
    names = Counter(Path(path).name for path in paths)
    return {path: name if names[name := Path(path).name] == 1 else path for path in paths}


def where(place: Place, name: str) -> str:
    """Return a place: the file, the line, and the cell of a table."""
    parts = [f"{name}:{place.line}", place.within]
    parts += [f'row "{place.row}"'] if place.row else []
    parts += [f'column "{place.column}"'] if place.column else []
    return ", ".join(filter(None, parts))


def wrong(finding: Finding, *, full: bool = False) -> str:
    """Return what is wrong with the numbers, at most MAX_LINE characters unless `full`."""
    # The line above names the row.
    why = finding.why.removeprefix(f"{finding.place.row}: ")
    sentence = f"{finding.claim}: {why}"
    return sentence if full else _shortened(sentence)


def repetition(finding: Finding) -> str:
    """Return the place and the values of a further finding of one cause."""
    part = finding.place.within or f"line {finding.place.line}"
    should_be = f" -> {finding.should_be}" if finding.should_be else ""
    return f"{part} ({finding.says}{should_be})"


def _lines(group: FindingGroup, names: Mapping[str, str], *, full: bool) -> Iterator[str]:
    finding, *further = group.findings
    place = finding.place
    title = KINDS[finding.rule].title
    more = f", and {len(further)} more" if further else ""
    name = place.file if full else names[place.file]
    yield f"{severity(group)}: {title}: {where(place, name)}{more}"
    yield f"  {wrong(finding, full=full)}"
    if full and further:
        yield f"  also {', '.join(map(repetition, further))}"


def _shortened(sentence: str) -> str:
    sentence = COMMAND.sub(lambda command: f"`{command[1][: MAX_COMMAND - 4]} ...`", sentence)
    if len(sentence) <= MAX_LINE:
        return sentence
    kept = sentence[: MAX_LINE - 4]
    return f"{kept[: kept.rfind(' ')].rstrip(' ,;:(')} ..."
