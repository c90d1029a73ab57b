"""Published study: what a page says it did: stages, arms, comparison and summary."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from loadgen.lab.audit.command import NO_COMMAND, ServingCommand
from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Finding
from loadgen.lab.audit.number import UNKNOWN, Number
from loadgen.lab.audit.page import (
    NOWHERE,
    Page,
    Section,
    has_result,
    stems,
    summary_and_stages,
)
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.table import NO_TABLE, PER_DEVICE, Cell, Quantity, Row, Table
from loadgen.lab.audit.workload import AnnouncedWorkload

__all__ = ["JOINED", "PublishedArm", "PublishedStudy", "kinds", "stems"]

JOINED = "&&"  # in the title of a stage that is a combination of others
MAX_REPLICAS = 16
_NAME_LENGTH = 60  # characters; what is longer is a sentence and names no candidate


@dataclass(frozen=True, slots=True)
class PublishedArm:
    """A result on a page, and what it is a result of.

    Attributes:
        result: Its numbers.
        command: How its server was started; NO_COMMAND where the page does not say.
        label: What the page calls it.
        stage: The stage in which it was a candidate; NOWHERE for other workloads.
        workload: The other workload, as the page calls it; empty in a stage.
    """

    result: Published
    command: ServingCommand
    label: str
    stage: Section
    workload: str

    @property
    def total(self) -> Number:
        """Total token throughput, as printed."""
        return self.result["total_per_s"]

    @property
    def settings(self) -> str:
        """Its command as printed, or its label."""
        return f"`{self.command.text}`" if self.command.text else self.label

    @property
    def name(self) -> str:
        """Its stage or workload, and its label where that is another."""
        of = self.stage.title or self.workload
        return of if self.label == of else ", ".join(filter(None, (of, self.label)))

    @property
    def where(self) -> str:
        """Its line, or its part of a line that is too long to be a place."""
        return self.result.place.within or f"line {self.result.place.line}"

    @property
    def width(self) -> int:
        """How many devices its server takes; 1 where the page does not say."""
        return self.command.width

    @property
    def binding_cap(self) -> float | None:
        """The most that could be in flight; None where it is unknown."""
        cap = self.result["cap"]
        return cap.value if cap and not self.result.over_guidellm else None

    def note(self, rule: str, why: str, cause: str = "", weight: float = 0.0) -> Finding:
        """A finding of the arm that can be true as printed."""
        return Finding(self.result.place, rule, self.name, "", why, True, cause, weight)

    def same_server(self, other: "PublishedArm") -> bool:
        """Whether both were started by one command."""
        return self.command.same_as(other.command)

    def same_work(self, other: "PublishedArm") -> bool:
        """Whether both were sent the same requests, all of which succeeded."""
        # guidellm prints how many were in flight in place of a cap; then the page alone tells the
        # load.
        is_guidellms = self.result.over_guidellm and other.result.over_guidellm
        names = ("input_tokens", "ok") if is_guidellms else ("input_tokens", "ok", "cap")
        same_load = not is_guidellms or self.workload == other.workload
        return same_load and all(self.result[name] == other.result[name] for name in names)


def akin(name: str, subject: str) -> bool:
    """Whether one is the other, or a variant of it: the same name with more behind a dash."""
    longer, shorter = sorted((name.lower(), subject.lower()), key=len, reverse=True)
    return longer == shorter or longer.startswith((f"{shorter}-", f"{shorter}_"))


class PublishedStudy:
    """A page, understood.

    Attributes:
        page: The page.
        comparison: The first table that has a baseline; NO_TABLE where there is none.
        summary: The table of what each stage brought; NO_TABLE where there is none.
        stages: The sections in which candidates are tried.
        arms: Every result, in the order of the page.
        proposed: The commands before the comparison; without one, those that stand in no section
            with a result.
        recommended: The last of `proposed` of a model that the page has run; None where there is
            none.
        per_device: Whether the page judges by what each device does.
        of_latency: Whether the page is about latency rather than throughput.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.comparison = next(
            (table for table in page.tables if table.baseline is not None), NO_TABLE
        )
        self.summary, self.stages = summary_and_stages(page)
        self._estimates = "(est.)" in page.prose
        self.arms = [self._arm(result) for result in page.results]
        before = self.comparison.at
        if self.comparison is NO_TABLE:  # then before the outermost section that has a result
            inner = (
                [section for section in page.sections if section.level > 1] if self.stages else []
            )
            before = next((section.begin for section in inner if has_result(page, section)), 0)
        self.proposed = [
            command for command in page.commands if command.at < before and command.engine
        ]
        self.recommended = next(
            (command for command in reversed(self.proposed) if self.has_run(command)), None
        )
        self.per_device = PER_DEVICE.search(page.prose) is not None
        title = page.sections[0].title if page.sections else ""
        self.of_latency = "latency" in title.lower()
        self._times = {  # how many servers of a width the page counts as one, where it does
            arm.width: times
            for _, quantity, arms in self.cells()
            for arm in arms
            if arm.command and (times := max(quantity.times, self._estimate(arm, quantity))) > 1
        }

    def finding(
        self,
        at: int,
        rule: str,
        says: str,
        should_be: str,
        why: str,
        cause: str = "",
        weight: float = 0.0,
    ) -> Finding:
        """A finding of what stands at `at` and cannot be true."""
        return Finding(self.page.place(at), rule, says, should_be, why, cause=cause, weight=weight)

    def note(
        self,
        at: int,
        rule: str,
        says: str,
        why: str,
        cause: str = "",
        weight: float = 0.0,
        should_be: str = "",
    ) -> Finding:
        """A finding of what stands at `at` that can be true as printed."""
        return Finding(self.page.place(at), rule, says, should_be, why, True, cause, weight)

    def staged(self) -> Iterator[tuple[Section, list[PublishedArm]]]:
        """Each stage with its arms, in their order."""
        for stage in self.stages:
            yield stage, [arm for arm in self.arms if arm.stage == stage]

    @cached_property
    def repeated(self) -> bool:
        """Whether arms were started several times, so that tables have means."""
        return any(arm.result.starts > 1 for arm in self.arms)

    @property
    def compares(self) -> bool:
        """Whether the page tries configurations of one model in stages; a recipe does not."""
        served = [arm.command.name.lower() for arm in self.tried if arm.command]
        return any(len(served) <= 2 * sum(map(partial(akin, name), served)) for name in served)

    @cached_property
    def tried(self) -> list[PublishedArm]:
        """The arms of all stages, on the workload by which they are judged."""
        return [arm for arm in self.arms if arm.stage]

    def by_workload(self) -> dict[str, list[PublishedArm]]:
        """The arms that had the same work to do, as the page has it."""
        groups: dict[str, list[PublishedArm]] = defaultdict(list)
        for arm in self.arms:
            if arm.stage or arm.workload:
                groups[arm.workload].append(arm)
        return groups

    def pairs(self) -> Iterator[tuple[Row, Cell, Cell]]:
        """The rows of all tables with a baseline: with its cell of that, and each other one."""
        return (
            (row, base, cell) for table in self.page.tables for row, base, cell, _ in table.pairs()
        )

    def table_cells(self) -> Iterator[tuple[Table, Row, Cell]]:
        """Every cell of every table."""
        return (
            (table, row, cell)
            for table in self.page.tables
            for row in table.rows
            for cell in row.cells
        )

    def showing(self, quantity: Quantity | None) -> list[PublishedArm]:
        """The arms whose result is what a cell prints, the nearest first."""
        if quantity is None:
            return []
        printed = quantity.number
        numbers = [(arm, arm.result.number(quantity.name)) for arm in self.arms]
        near = [
            (abs(number.value - printed.value), arm)
            for arm, number in numbers
            if number.agrees(printed)
        ]
        nearest = [arm for _, arm in sorted(near, key=lambda item: item[0])]
        return nearest or [arm for arm in self.arms if self._estimate(arm, quantity) > 1]

    def _estimate(self, arm: PublishedArm, quantity: Quantity) -> int:
        """Of how many servers a cell estimates the throughput; 1 for no other."""
        ratio = quantity.number / arm.total
        if quantity.name != "total_per_s" or not self._estimates or not ratio:
            return 1
        times = round(ratio.value)
        return (
            times
            if 1 < times <= MAX_REPLICAS and (arm.total * times).agrees(quantity.number)
            else 1
        )

    def shown(self, cell: Cell) -> list[PublishedArm]:
        """The arms that a cell is of, by its throughput, or its latency where it has none."""
        return self.showing(cell.get("total_per_s") or cell.get("latency_s"))

    def cells(self) -> Iterator[tuple[Row, Quantity, list[PublishedArm]]]:
        """Every total throughput in a table, with the arms that show it."""
        for _, row, cell in self.table_cells():
            if total := cell.get("total_per_s"):
                yield row, total, self.showing(total)

    def has_run(self, command: ServingCommand) -> bool:
        """Whether a result is of the model of a command, or of flags alone, which name none."""
        served = [arm.command.name.lower() for arm in self.arms if arm.command]
        return command.name.lower() in served or not any(served) or "" in served

    def is_reference(self, arm: PublishedArm) -> bool:
        """Whether a run is shown again as what the others of its stage are held to.

        It is the best so far or the first arm, or its label names the stage that it is of.
        """
        if not arm.stage:
            return True
        before = self.before(arm.stage)
        titles = {re.sub(r"^\d+\.\s*", "", arm.stage.title.lower()) for arm in before}
        held = [earlier for earlier in (self.best(before), *before[:1]) if earlier]
        is_named = any(title in arm.label.lower() for title in titles)
        return is_named or any(
            earlier.result.same_run(arm.result) and earlier.same_server(arm) for earlier in held
        )

    def compared(self, row: Row, base: Cell, cell: Cell) -> list[PublishedArm]:
        """The arms of two cells of a row, the baseline's first; none where one of them is unknown.

        Where no block has what a cell prints, they are those of the workload that the row names.
        """
        shown = [self.shown(part)[:1] for part in (base, cell)]
        if not all(shown) and self.tried:
            named = [
                arm
                for arm in self.arms
                if arm.workload and arm.workload.lower() in row.name.lower()
            ]
            shown = [
                [arm for arm in named if arm.same_server(self.tried[0]) is of][:1]
                for of in (True, False)
            ]
        return [shown[0][0], shown[1][0]] if all(shown) else []

    def replicas(self, arm: PublishedArm) -> int:
        """How many of it the page counts, by a cell such as "3019.19x2"; 1 where none does."""
        return self._times.get(arm.width, 1)

    def whole(self, arm: PublishedArm) -> Number:
        """Total token throughput of all replicas that the page counts."""
        return arm.total * self.replicas(arm)

    def score(self, arm: PublishedArm) -> Number:
        """By what the page judges an arm, more is better: throughput, of each device if it says so,
        or 1 / latency.

        Unknown where it is 0.
        """
        if self.of_latency:
            return Number.exact(1) / arm.result.latency_s()
        whole = self.whole(arm)
        if whole.low <= 0:
            return UNKNOWN
        return whole / arm.width if self.per_device else whole

    def gain(self, arm: PublishedArm, over: PublishedArm) -> Number:
        """How many times as good as another arm one is, by what the page judges."""
        return self.score(arm) / self.score(over)

    def before(self, stage: Section) -> list[PublishedArm]:
        """The arms of the stages whose results stand before a stage."""
        return [arm for arm in self.tried if arm.result.at < stage.begin]

    def best(self, arms: Iterable[PublishedArm | None]) -> PublishedArm | None:
        """The best of the arms that lost no request; None among them is no arm."""
        most = max((ok.value for arm in self.tried if (ok := arm.result["ok"])), default=0)
        whole = [arm for arm in arms if arm and arm.total and arm.result["ok"].value == most]
        return max(
            whole, key=lambda arm: score.value if (score := self.score(arm)) else 0.0, default=None
        )

    def workload(self, arm: PublishedArm) -> AnnouncedWorkload | None:
        """The workload that the page announces and an arm was sent; None where none fits."""
        cap = arm.binding_cap
        of_length = [workload for workload in self.page.workloads if workload.fits(arm.result)]
        # A list of lengths tells of no cap; a command that sends conversations has one, or none is
        # in force.
        fitting = [workload for workload in of_length if workload.cap in (None, cap)]
        if not of_length:
            fitting = [
                workload
                for workload in self.page.workloads
                if workload.input_tokens is None and workload.cap == cap
            ]
            # Those that the arm's section names, by name or by rate; all if it names none.
            section = self.page.section(arm.result.at)
            above = self.page.text[section.begin : arm.result.at] if section else ""
            named = [
                workload for workload in fitting if workload.name and f"`{workload.name}`" in above
            ]
            at_rate = [
                workload
                for workload in fitting
                if workload.rate and f"{workload.rate:g}" in arm.workload.split()
            ]
            fitting = named or at_rate or fitting
        keys = [
            (workload.cap is not None, workload.rate is not None, workload.requests is not None)
            for workload in fitting
        ]
        return fitting[keys.index(max(keys))] if fitting else None

    def _arm(self, result: Published) -> PublishedArm:
        page = self.page
        stage = next((stage for stage in self.stages if result.at in stage), NOWHERE)
        section = page.section(result.at)
        before = (
            (command, page.section(command.at))
            for command in page.commands
            if command.at < result.at
        )
        # The section of its command is its own, or around it.
        earlier = [
            c for c, around in before if around.begin <= section.begin and section.end <= around.end
        ]
        command = earlier[-1] if earlier else NO_COMMAND
        title = section.title
        named = [engine for engine in TABLES if engine.lower() in title.lower()]
        if (
            command and not command.engine and len(named) == 1
        ):  # flags alone are of the engine that the title names
            command = replace(command, engine=named[0])
        if not stage:
            return PublishedArm(
                result, command, title, NOWHERE, result.title or (title if self.stages else "")
            )
        label = result.title or self._label(command, title)
        return PublishedArm(
            result, command.changed_by(result.title) if command else command, label, stage, ""
        )

    def _label(self, command: ServingCommand, title: str) -> str:
        """The name above a command, on a line of its own, or the title of its section."""
        if not command or self.page.place(command.at).within:
            return title
        for line in reversed(self.page.prose[: command.at].split("\n")):
            above = line.strip()
            if not above or "\0" in above or above.startswith(("```", "???", "!!!")):
                continue
            name = re.sub(r"^\*\*(.*)\*\*$", r"\1", above)
            return name if len(name) <= _NAME_LENGTH and name[0] not in "#-|>*" else title
        return title


def kinds(
    arms: Iterable[PublishedArm], are_alike: Callable[[PublishedArm, PublishedArm], bool]
) -> list[list[PublishedArm]]:
    """Arms by what they are alike in, no run twice."""
    groups: list[list[PublishedArm]] = []
    for arm in arms:
        kind = next((kind for kind in groups if are_alike(kind[0], arm)), None)
        if kind is None:
            groups.append([arm])
        elif not any(arm.result.same_run(member.result) for member in kind):
            kind.append(arm)
    return groups
