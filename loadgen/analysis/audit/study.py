"""Study: what a page says it did - stages, their arms, the comparison at its head and the summary at its end."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.analysis.audit.command import LAUNCHES, Command
from loadgen.analysis.audit.number import Number
from loadgen.analysis.audit.page import Page, Section
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.table import Quantity, Row, Table

_NAME_LENGTH = 60  # characters; what is longer is a sentence and names no candidate
_STEM = 5  # characters by which words are compared: backend and backends, cache and caching
_FILLERS = {"the", "in", "of", "and", "for", "with", "choosing", "enable", "selection", "option", "options", "mode"}
_FILLERS |= {"max", "num", "number", "numbers"}
_FILLERS |= {word for engine in LAUNCHES.values() for word in re.findall("[a-z]+", engine.lower())}


@dataclass(frozen=True, slots=True)
class Arm:
    """A result on a page, and what it is a result of.

    Attributes:
        result: Its numbers.
        command: How its server was started; None where the page does not say.
        label: What the page calls it.
        stage: The stage in which it was a candidate; None for other workloads.
        workload: The other workload, as the page calls it; empty in a stage.
    """

    result: Published
    command: Command | None
    label: str
    stage: Section | None
    workload: str

    @property
    def total(self) -> Number | None:
        """Total token throughput, as printed."""
        return self.result.get("total_per_s")

    @property
    def settings(self) -> str:
        """Its command as printed, or its label."""
        return f"`{self.command.text}`" if self.command else self.label


class Study:
    """A page, understood.

    Attributes:
        page: The page.
        comparison: The first table that has a baseline; None where there is none.
        summary: The table of what each stage brought; None where there is none.
        stages: The sections that stand beside the summary's and before it, if any of them has a result.
        arms: Every result, in the order of the page.
        recommended: The last command before the comparison.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.comparison = next((table for table in page.tables if table.baseline is not None), None)
        self.summary, self.stages = _stages(page)
        self.arms = [self._arm(result) for result in page.results]
        before = self.comparison.at if self.comparison else 0
        named = [command for command in page.commands if command.at < before and command.engine]
        self.recommended = named[-1] if named else None
        self._times = {  # how many servers of a width the page counts as one, where it does
            arm.command.width: quantity.times
            for _, quantity, arms in self.cells()
            for arm in arms
            if quantity.times > 1 and arm.command
        }

    def staged(self) -> Iterator[tuple[Section, list[Arm]]]:
        """Each stage with its arms, in their order."""
        for stage in self.stages:
            yield stage, [arm for arm in self.arms if arm.stage == stage]

    def by_workload(self) -> dict[str, list[Arm]]:
        """The arms that had the same work to do, as the page has it."""
        groups: dict[str, list[Arm]] = defaultdict(list)
        for arm in self.arms:
            if arm.stage or arm.workload:
                groups[arm.workload].append(arm)
        return groups

    def showing(self, quantity: Quantity | None) -> list[Arm]:
        """The arms whose result is what a cell prints, the nearest first."""
        if quantity is None:
            return []
        printed = quantity.number
        known = ((arm, arm.result.get(quantity.name)) for arm in self.arms)
        near = [(abs(n.value - printed.value), arm) for arm, n in known if n is not None and n.agrees(printed)]
        return [arm for _, arm in sorted(near, key=lambda found: found[0])]

    def cells(self) -> Iterator[tuple[Row, Quantity, list[Arm]]]:
        """Every total throughput in a table, with the arms that show it."""
        for table in self.page.tables:
            for row in table.rows:
                for cell in row.cells:
                    if found := cell.get("total_per_s"):
                        yield row, found, self.showing(found)

    def stage_of(self, row: Row) -> Section | None:
        """The stage that a row of the summary is about: whose title has most of its words, and fewest others."""
        wanted = stems(row.name)
        shared = [(len(wanted & stems(stage.title)), -len(stems(stage.title)), stage) for stage in self.stages]
        best = max(shared, key=lambda found: found[:2], default=None)
        return best[2] if best and best[0] else None

    def replicas(self, arm: Arm) -> int:
        """How many of it the page counts, by a cell such as "3019.19x2"; 1 where none does."""
        return self._times.get(arm.command.width if arm.command else 1, 1)

    def whole(self, arm: Arm) -> Number | None:
        """Total token throughput of all replicas that the page counts."""
        return arm.total * self.replicas(arm) if arm.total else None

    def _arm(self, result: Published) -> Arm:
        page = self.page
        level = self.stages[0].level if self.stages else 1
        stage = next((stage for stage in self.stages if stage.begin <= result.at < stage.end), None)
        within = page.section(result.at, level) if self.stages else None
        earlier = [command for command in page.commands if command.at < result.at]
        command = earlier[-1] if earlier and (within is None or earlier[-1].at >= within.begin) else None
        section = page.section(result.at)
        title = section.title if section else ""
        if stage is not None:
            changed = command.changed_by(result.title) if command else None
            return Arm(result, changed, result.title or self._label(command, title), stage, "")
        return Arm(result, command, title, None, result.title or (title if self.stages else ""))

    def _label(self, command: Command | None, title: str) -> str:
        """What stands above a command on a line of its own, as a name does, or else the title of its section."""
        if command is None or self.page.place(command.at).within:
            return title
        for line in reversed(self.page.prose[: command.at].split("\n")):
            above = line.strip()
            if not above or "\0" in above or above.startswith(("```", "???", "!!!")):
                continue
            is_name = len(above) <= _NAME_LENGTH and above[0] not in "#-|>*"
            return above if is_name else title
        return title


def stems(title: str) -> set[str]:
    """The beginnings of the words of a title that tell what it is about."""
    words = re.findall(r"[a-z]{2,}", title.lower())
    return {word[:_STEM] for word in words if word not in _FILLERS}


def _stages(page: Page) -> tuple[Table | None, list[Section]]:
    heading = next((section for section in page.sections if section.title.lower().startswith("summary")), None)
    if heading is None:
        return None, []
    table = next((table for table in page.tables if heading.begin <= table.at < heading.end), None)
    parent = page.section(heading.begin, heading.level - 1)
    beside = [
        section
        for section in page.sections
        if section.level == heading.level
        and section.begin < heading.begin
        and (parent is None or section.begin > parent.begin)
    ]
    if not any(stage.begin <= result.at < stage.end for stage in beside for result in page.results):
        return table, []
    return table, beside
