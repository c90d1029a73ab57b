"""Report: groups of findings as lines for a reader, and as JSON for a program."""

from collections.abc import Sequence

import orjson

from loadgen.lab.audit.finding import Finding, claim
from loadgen.lab.audit.finding_group import FindingGroup
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import printable

SHOWN = 8  # places of one cause that are printed; JSON has all


def to_json(groups: Sequence[FindingGroup]) -> str:
    """A JSON list, one cause an object."""
    return orjson.dumps([group.to_dict() for group in groups], option=orjson.OPT_INDENT_2).decode()


def render(groups: Sequence[FindingGroup], files: int) -> str:
    """A line for each cause, worst first, and one that counts them."""
    notes = sum(group.note for group in groups)
    counted = f"{plural(files, 'file')}: {len(groups) - notes} inconsistent, {notes} notes"
    return "\n".join([*map(printable, map(_line, groups)), counted]) + "\n"


def _line(group: FindingGroup) -> str:
    finding, others = group.worst, group.findings[1:]
    line = f"{finding.place}: {'note: ' if finding.note else ''}{claim(finding)}: {finding.why}"
    if others:
        line += f"; and {len(others)} more: {', '.join(map(_other, others[:SHOWN]))}"
    return line + (", ..." if len(others) > SHOWN else "")


def _other(finding: Finding) -> str:
    place = finding.place.within or f"line {finding.place.line}"
    return f"{place} ({finding.says}{f' -> {finding.should_be}' if finding.should_be else ''})"
