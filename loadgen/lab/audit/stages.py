"""Stages: the sections of a page in which it tries candidates, and the table of what each of them brought."""

import re
from collections.abc import Sequence

from loadgen.lab.audit.command import LAUNCHES
from loadgen.lab.audit.page import Page, Section
from loadgen.lab.audit.table import NO_TABLE, Row, Table

_STEM = 5  # characters by which words are compared: backend and backends, cache and caching
_FILLERS = {"the", "in", "of", "and", "for", "with", "choosing", "enable", "selection", "option", "options", "mode"}
_FILLERS |= {"max", "num", "number", "numbers"}
_FILLERS |= {word for engine in LAUNCHES.values() for word in re.findall("[a-z]+", engine.lower())}


def stems(title: str) -> set[str]:
    """The beginnings of the words of a title that tell what it is about."""
    words = re.findall(r"[a-z]{2,}", title.lower())
    return {word[:_STEM] for word in words if word not in _FILLERS}


def summary_and_stages(page: Page) -> tuple[Table, list[Section]]:
    """The table of what each stage brought, and the stages: none where no section has a candidate's result."""
    # They stand beside the summary and before it; or below such a section, if the rows of the summary are about those.
    heading = next((section for section in page.sections if section.title.lower().startswith("summary")), None)
    if heading is None:
        return NO_TABLE, []
    table = next((table for table in page.tables if table.at in heading), NO_TABLE)
    parent = page.section(heading.begin, heading.level - 1)
    beside = [
        section
        for section in page.sections
        if section.level == heading.level and parent.begin < section.begin < heading.begin
    ]
    if not any(has_result(page, section) for section in beside):
        return table, []
    return table, [stage for section in beside for stage in _split(page, section, table.rows)]


def stages_of(row: Row, stages: Sequence[Section]) -> list[Section]:
    """The stages that a row of the summary is about: those whose titles have most of its words, and no others."""
    wanted = stems(row.name)
    shared = {stage.begin: len(wanted & stems(stage.title)) for stage in stages}
    most = max(shared.values(), default=0)
    found = [stage for stage in stages if most and shared[stage.begin] == most]
    fewest = min((len(stems(stage.title)) for stage in found), default=0)
    is_exact = fewest == most or most > 1
    return [stage for stage in found if not is_exact or len(stems(stage.title)) == fewest or ":" in stage.title]


def has_result(page: Page, section: Section) -> bool:
    """Whether a result stands in a section."""
    return any(result.at in section for result in page.results)


def _split(page: Page, section: Section, rows: Sequence[Row]) -> list[Section]:
    """A section, or those below it if rows are about these and none is about it."""
    below = [s for s in page.sections if s.level == section.level + 1 and section.begin < s.begin < section.end]
    if any(_is_about(row, section) for row in rows) or not any(_is_about(row, s) for row in rows for s in below):
        return [section]
    return below


def _is_about(row: Row, section: Section) -> bool:
    return bool(stems(row.name) & stems(section.title))
