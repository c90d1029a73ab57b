"""The entries of a published file: results with their context, and commands without a result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.errors import BadInput, LoadgenError
from loadgen.lab.audit.auditor import read
from loadgen.lab.audit.command import ServingCommand
from loadgen.lab.audit.files import results
from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.page import FENCE, Page
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import PublishedStudy
from loadgen.lab.importer.restatement import requests_sent, untrue_of_all


class Unplaced(LoadgenError):
    """A result or command that no arm or workload of the study matches."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, or one result of it.

    Attributes:
        path: Path as given.
        sha256: Hash of the file.
        entries: Entries to import, in their order.
        untrue: Latencies that are wrong in all its results.
        is_part: Whether one result was named by its number.
        hardware: The hardware as the file names it; empty: it does not.
    """

    path: str
    sha256: str
    entries: tuple[Entry, ...]
    untrue: frozenset[str]
    is_part: bool
    hardware: str = ""

    @classmethod
    def read(cls, name: str) -> Source:
        """Read FILE, or the N-th result of FILE#N.

        Raises:
            BadInput: It cannot be read, or does not have the result.
        """
        cut = re.fullmatch(r"(.+)#([1-9]\d*)", name)
        path, number = (cut[1], int(cut[2])) if cut else (name, None)
        text = read(path)
        page = None if text.lstrip()[:1] in ("{", "[") else Page(path, text)
        if page:
            entries = of_page(page)
        else:
            entries = [
                Entry(place, result.place, result)
                for place, result in enumerate(results(path, text), 1)
            ]
        chosen = tuple(entry for entry in entries if number in (None, entry.number))
        if not chosen:
            count = len([entry for entry in entries if entry.result is not None])
            raise BadInput((), f"{path} has no result {number}", f"it has {count}, counted from 1")
        untrue = frozenset(untrue_of_all(entry.result for entry in entries if entry.result))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        stated = page.titled("Hardware") if page else None
        hardware = stated[0].split("\n")[0].strip(" -*") if stated else ""
        return cls(path, sha256, chosen, untrue, number is not None, hardware)


@dataclass(frozen=True, slots=True)
class Entry:
    """A result, or a command without one.

    Attributes:
        number: Number of the result in its file, from 1; 0: no result.
        place: Place in the file.
        result: Its numbers; None: the command failed.
        cause: Text of the page in place of a result.
        command: Serving command; None: unknown.
        title: Text above it.
        stage: Title of the stage; empty for other workloads and for files that are not pages.
        baseline: Whether the page's comparison shows it as the baseline's.
        success_rate: Share of the requests that succeeded, if a table of the page has it beside the
            result's number.
    """

    number: int
    place: Place
    result: Published | None
    cause: str = ""
    command: ServingCommand | None = None
    title: str = ""
    stage: str = ""
    baseline: bool = False
    success_rate: float | None = None

    @property
    def sent(self) -> int | None:
        """Number of requests that were sent, as far as the file tells."""
        if self.result is None:
            return None
        sent = requests_sent(self.result)
        ok = self.result.get("ok")
        if sent is None and ok is not None and self.success_rate:
            return round(ok.value / self.success_rate)
        return sent


def of_page(page: Page) -> list[Entry]:
    """Return the entries of a page in their order.

    Raises:
        BadInput: It has no result.
    """
    if not page.results:
        raise BadInput((), f"{page.name} has no block of results", "name a page or a result")
    study = PublishedStudy(page)
    baselines: set[int] = set()
    for _, base, _, _ in study.comparison.pairs():
        baselines |= {arm.result.at for arm in study.showing(base.get("total_per_s"))[:1]}
    rates: dict[int, float] = {}
    for _, _, cell in study.table_cells():
        if rate := cell.get("success_rate"):
            for arm in study.showing(cell.get("total_per_s"))[:1]:
                rates[arm.result.at] = rate.number.value / 100
    entries = [
        Entry(
            number=number,
            place=arm.result.place,
            result=arm.result,
            command=arm.command or None,
            title=" ".join(filter(None, (arm.workload or arm.label, arm.result.title))),
            stage=arm.stage.title,
            baseline=arm.result.at in baselines,
            success_rate=rates.get(arm.result.at),
        )
        for number, arm in enumerate(study.arms, 1)
    ]
    return sorted(
        [*entries, *_fruitless(study)], key=lambda entry: (entry.place.line, entry.number)
    )


def _fruitless(study: PublishedStudy) -> Iterator[Entry]:
    """Yield the commands of a stage that are followed by a code block without a result."""
    page = study.page
    for stage in study.stages:
        inside = [command for command in page.commands if stage.begin <= command.at < stage.end]
        ends = [*(command.at for command in inside), stage.end][1:]
        for command, end in zip(inside, ends, strict=True):
            if any(command.at < result.at < end for result in page.results):
                continue
            for fence in FENCE.finditer(page.text, page.prose.index("```", command.at) + 3, end):
                cause = next(
                    (line.strip(" \t#") for line in fence[2].split("\n") if line.strip(" \t#")), ""
                )
                if cause:
                    yield Entry(
                        0, page.place(fence.start()), None, cause, command, stage.title, stage.title
                    )
                    break
