"""Treatments: whether the arms of a page are what it calls them, and its columns each of one configuration."""

import itertools
from collections.abc import Iterator

from loadgen.analysis.audit.command import Command
from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.study import Arm, Study, stems

JOINED = "&&"


def recommended(study: Study) -> Iterator[Finding]:
    """What is recommended was measured on the workload by which it was chosen."""
    command = study.recommended
    tuned = [arm.command for arm in study.arms if arm.stage and arm.command]
    if command is None or not tuned or any(command.same_as(other) for other in tuned):
        return
    why = "no arm of any stage was started with this command"
    shown = [arm for arm in _column(study, optimized=True) if arm.stage and arm.command]
    if shown and shown[0].command:
        line = study.page.place(shown[0].command.at).line
        why += f": the {shown[0].total} tok/s beside it are those of {shown[0].settings} (line {line})"
    yield Finding(study.page.place(command.at), "recommended", f"`{command.text}`", "", why)


def baselines(study: Study) -> Iterator[Finding]:
    """All numbers of the baseline are of one configuration."""
    commands = [arm.command for arm in _column(study, optimized=False) if arm.command]
    for other in commands[1:]:
        if not commands[0].same_as(other):
            line = study.page.place(commands[0].at).line
            why = f"other rows of the baseline are of `{commands[0].text}` (line {line}): another server"
            yield Finding(study.page.place(other.at), "baseline", f"`{other.text}`", f"`{commands[0].text}`", why)
            return


def _column(study: Study, *, optimized: bool) -> Iterator[Arm]:
    """The arms whose numbers stand in the comparison: in its baseline, or in its other columns."""
    if study.comparison is not None:
        for _, base, cell, _ in study.comparison.pairs():
            yield from study.showing((cell if optimized else base).get("total_per_s"))[:1]


def combinations(study: Study) -> Iterator[Finding]:
    """A stage that is named "A && B" changes what A and B are, and nothing else."""
    base = next((arm.command for arm in study.arms if arm.command), None)
    if base is None:
        return
    for stage, arms in study.staged():
        if JOINED not in stage.title:
            continue
        for arm in arms:
            added = _unnamed(arm.command, base, stage.title) if arm.command else []
            if added:
                named = ", ".join(f"--{name}" for name in added)
                why = f"besides the change in its title, it changes {named}: {arm.settings}"
                yield Finding(arm.result.place, "label", stage.title, "", why)


def _unnamed(command: Command, base: Command, title: str) -> list[str]:
    """The flags that differ from the baseline's and share no word with a title."""
    words = stems(title)
    changed = [name for name, value in command.flags.items() if base.flags.get(name) != value]
    return [name for name in changed if not stems(name.replace("-", " ")) & words]


def duplicates(study: Study) -> Iterator[Finding]:
    """No two stages have one and the same run."""
    for first, second in itertools.combinations([arm for arm in study.arms if arm.stage], 2):
        copied = first.result.numbers == second.result.numbers and len(first.result.numbers) > 1
        if copied and (first.stage != second.stage or not _same(first, second)):
            where = first.result.place.within or f"line {first.result.place.line}"
            why = f"every number is that of {_named(first)} ({where}): one run, published as two treatments"
            yield Finding(second.result.place, "duplicate", f"{_named(second)}: total {second.total} tok/s", "", why)


def _named(arm: Arm) -> str:
    """A stage, and the arm in it where that has a name of its own."""
    stage = arm.stage.title if arm.stage else ""
    return stage if arm.label == stage else f"{stage}, {arm.label}"


def _same(first: Arm, second: Arm) -> bool:
    return first.command is not None and second.command is not None and first.command.same_as(second.command)


def unreported(study: Study) -> Iterator[Finding]:
    """A workload that was measured is in a table, whichever way it went."""
    shown = {id(arm) for _, _, arms in study.cells() for arm in arms}
    for workload, arms in study.by_workload().items():
        if workload and study.comparison and not any(id(arm) in shown for arm in arms):
            totals = " and ".join(f"{arm.total}" for arm in arms if arm.total)
            why = f"its {totals} tok/s are in no table"
            yield Finding(arms[0].result.place, "unreported", workload, "a row", why, note=True)
