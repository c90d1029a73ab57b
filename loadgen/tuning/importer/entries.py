"""Entries: what a file has to be imported: results with what stands around them, and commands that came to nothing."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.analysis.audit.auditor import read
from loadgen.analysis.audit.command import Command
from loadgen.analysis.audit.files import results
from loadgen.analysis.audit.finding import Place
from loadgen.analysis.audit.page import FENCE, Page
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.study import Arm, Study
from loadgen.errors import BadInput
from loadgen.tuning.importer.restatement import untrue_of_all


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported, or a part of it.

    Attributes:
        path: As it is named.
        sha256: Of all that stands in it.
        entries: What is meant of it, in its order.
        untrue: Latencies that none of its results tells.
        is_part: Whether one result was named.
    """

    path: str
    sha256: str
    entries: tuple["Entry", ...]
    untrue: frozenset[str]
    is_part: bool

    @classmethod
    def read(cls, name: str) -> "Source":
        """Read FILE, or of FILE#N its N-th result.

        Raises:
            BadInput: It cannot be read, or has no result, or not that one.
        """
        cut = re.fullmatch(r"(.+)#([1-9]\d*)", name)
        path, number = (cut[1], int(cut[2])) if cut else (name, None)
        text = read(path)
        found = entries(path, text)
        meant = tuple(entry for entry in found if number in (None, entry.number))
        if not meant:
            count = sum(entry.result is not None for entry in found)
            raise BadInput("FILE", f"{path} has no result {number}", f"it has {count}, counted from 1")
        untrue = frozenset(untrue_of_all(entry.result for entry in found if entry.result))
        return cls(path, hashlib.sha256(text.encode()).hexdigest(), meant, untrue, number is not None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to be imported.

    Attributes:
        number: Of the result in its file, from 1; 0 for what is none.
        place: Where it stands.
        result: Its numbers; None where the command came to nothing.
        cause: What a page says in the place of a result.
        command: How the server was started; None where the file does not say.
        title: What stands above it.
        stage: Title of the stage; empty for other workloads and for files that are no pages.
        baseline: Whether the page's comparison shows it as the baseline's.
    """

    number: int
    place: Place
    result: Published | None
    cause: str = ""
    command: Command | None = None
    title: str = ""
    stage: str = ""
    baseline: bool = False


def entries(path: str, text: str) -> list[Entry]:
    """All that a file has, in its order.

    Args:
        path: Of the file, as it is named in what is said of it.
        text: All of it.

    Raises:
        BadInput: It has no result.
    """
    if text.lstrip()[:1] in ("{", "["):
        return [Entry(number, each.place, each) for number, each in enumerate(results(path, text), 1)]
    page = Page(path, text)
    if not page.results:
        raise BadInput("FILE", f"{path} has no block of results", "name a page or a result")
    study = Study(page)
    shown = _baselines(study)
    found = [_entry(number, arm, shown) for number, arm in enumerate(study.arms, 1)]
    return sorted([*found, *_fruitless(study)], key=lambda entry: (entry.place.line, entry.number))


def _entry(number: int, arm: Arm, shown: set[int]) -> Entry:
    return Entry(
        number=number,
        place=arm.result.place,
        result=arm.result,
        command=arm.command,
        title=" ".join(filter(None, (arm.workload or arm.label, arm.result.title))),
        stage=arm.stage.title if arm.stage else "",
        baseline=arm.result.at in shown,
    )


def _baselines(study: Study) -> set[int]:
    """Where the results begin that the comparison shows in its column of the baseline."""
    pairs = study.comparison.pairs() if study.comparison else ()
    return {arm.result.at for _, base, _, _ in pairs for arm in study.showing(base.get("total_per_s"))[:1]}


def _fruitless(study: Study) -> Iterator[Entry]:
    """Commands of a stage with a fence behind them that has a line in the place of a result."""
    page = study.page
    for stage in study.stages:
        inside = [command for command in page.commands if stage.begin <= command.at < stage.end]
        for command, end in zip(inside, [*(later.at for later in inside[1:]), stage.end], strict=True):
            if any(command.at < result.at < end for result in page.results):
                continue
            for fence in FENCE.finditer(page.text, page.prose.index("```", command.at) + 3, end):
                said = next((line.strip(" \t#") for line in fence[2].split("\n") if line.strip(" \t#")), "")
                if said:
                    yield Entry(0, page.place(fence.start()), None, said, command, stage.title, stage.title)
                    break
