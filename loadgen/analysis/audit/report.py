"""Report: findings as lines for a reader, and as JSON for a program."""

from collections.abc import Iterator, Sequence

import orjson

from loadgen.analysis.audit.finding import Finding
from loadgen.util.terminal_text import printable


def to_json(findings: Sequence[Finding]) -> str:
    """A JSON list, one finding an object."""
    return orjson.dumps([finding.to_dict() for finding in findings], option=orjson.OPT_INDENT_2).decode()


def render(findings: Sequence[Finding], files: int) -> str:
    """A line for each finding, and one that counts them."""
    wrong = sum(not finding.note for finding in findings)
    notes = len(findings) - wrong
    counted = f"{files} {'file' if files == 1 else 'files'}: {wrong} inconsistent, {notes} notes"
    return "\n".join([*map(printable, map(_line, findings)), counted]) + "\n"


def _line(finding: Finding) -> str:
    return "".join(_parts(finding))


def _parts(finding: Finding) -> Iterator[str]:
    yield f"{finding.place}: {'note: ' if finding.note else ''}{finding.rule}: {finding.says}"
    if finding.should_be:
        yield f", should be {finding.should_be}"
    yield f": {finding.why}"
