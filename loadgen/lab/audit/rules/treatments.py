"""Treatments: whether the arms of a page are what it calls them."""

import itertools
import re
from collections.abc import Iterator

from loadgen.lab.audit.command import INTERFACE, NO_COMMAND, WIDTHS, ServingCommand, setting_text
from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import change, plain
from loadgen.lab.audit.study import JOINED, PublishedArm, PublishedStudy, kinds, stems
from loadgen.lab.audit.table import NO_TABLE

MIN_WORD_LENGTH = 6  # letters of a word that is no part of another one by chance
MIN_BETTER_FACTOR = 1.01  # times: below it one run each shows nothing
DEFAULTS = ("default", "without any optimization", "no optimization", "out of the box", "vanilla")


def recommended(study: PublishedStudy) -> Findings:
    """What is recommended was measured on the deciding workload, and is the best."""
    for proposal in study.proposed:
        if study.tried and not study.has_run(proposal):
            why = f"no result on the page is of {proposal.name}"
            yield study.finding(proposal.at, "recommended", f"`{proposal.text}`", "", why, weight=3)
    command = study.recommended
    tuned = [arm for arm in study.tried if arm.command]
    if command is None or not tuned:
        return
    at = command.at
    says = f"`{command.text}`"
    served = [arm for arm in tuned if _serves(command, arm)]
    beside = next(_beside(study, command), None)
    alike = [arm for arm in tuned if arm.command.engines & command.engines] or tuned
    near = beside or min(alike, key=lambda arm: len(arm.command.changes(command)))
    if not served and beside is None and any(_serves(command, arm) for arm in study.arms):
        why = (
            "only other workloads were measured with it; the nearest of a stage is "
            f"{_differs(study, near, command)}"
        )
        yield study.note(at, "recommended", says, why + _below(study))
    elif not served:
        of = f"the {near.total} tok/s printed with it are those of" if beside else "the nearest is"
        why = (
            f"no arm of any stage was started with this command: {of} "
            f"{_differs(study, near, command)}"
        )
        yield study.finding(at, "recommended", says, "", why, weight=2)
    elif beside is not None:
        best = max(served, key=lambda arm: arm.total.value if arm.total else 0.0)
        why = f"it was measured with {best.total} tok/s (line {best.result.place.line}): "
        differs = _differs(study, beside, command)
        why += f"the {beside.total} tok/s printed with it are those of {differs}"
        yield study.finding(at, "recommended", says, "", why, weight=1)
    else:
        yield from _not_best(study, command, served)
    if served and not any(command.same_as(arm.command) for arm in served):
        why = f"it was measured as {_differs(study, served[0], command)}: only how answers are read"
        yield study.note(at, "recommended", says, why)


def _serves(command: ServingCommand, arm: PublishedArm) -> bool:
    """Whether an arm's command differs from this one at most in how answers are read."""
    served = arm.command
    return bool(served.engines & command.engines) and served.changes(command).keys() <= set(
        INTERFACE
    )


def _below(study: PublishedStudy) -> str:
    """That an arm of the stages was better than what the comparison has for their workload."""
    best = study.best(study.tried)
    for _, base, cell, _ in study.comparison.pairs():
        total = cell.get("total_per_s")
        shown = study.shown(base)
        if shown and shown[0].stage and total and best and best.total.above(total.whole):
            return (
                f"; {best.name} had {best.total} tok/s, more than the {total.text} printed with it"
            )
    return ""


def _beside(study: PublishedStudy, command: ServingCommand) -> Iterator[PublishedArm]:
    """The arms in the comparison that a command did not start."""
    for _, _, cell, _ in study.comparison.pairs():
        shown = study.shown(cell)
        if shown and shown[0].stage and not any(_serves(command, arm) for arm in shown):
            yield shown[0]


def _differs(study: PublishedStudy, arm: PublishedArm, command: ServingCommand) -> str:
    if not arm.command:
        return arm.name
    line = study.page.place(arm.command.at).line
    changes = []
    for name, (before, after) in command.changes(arm.command).items():
        instead = "" if before is None else f" instead of {before}"
        change_text = f"{setting_text(name, after)}{instead}".replace("  ", " ")
        changes.append(f"no {setting_text(name)}" if after is None else change_text)
    return f"{arm.settings} (line {line}), from which it differs: {'; '.join(changes)}"


def _not_best(
    study: PublishedStudy, command: ServingCommand, served: list[PublishedArm]
) -> Findings:
    """Another arm of the stages was better by what the page judges by."""
    best = study.best(study.tried)
    chosen = study.best(served)
    if (
        best is None
        or chosen is None
        or study.repeated
        or not (gain := study.gain(best, chosen)).above(MIN_BETTER_FACTOR)
    ):
        return
    unit = (
        "requests each take less time"
        if study.of_latency
        else f"{best.total} against {chosen.total} tok/s"
    )
    why = f"{best.name} was better by {change(gain.value)} (line {best.result.place.line}): {unit}"
    yield study.note(command.at, "recommended", f"`{command.text}`", why, "not the best")


def baselines(study: PublishedStudy) -> Findings:
    """All numbers of the baseline are of one configuration, and of the one that it is called."""
    commands = [
        arm.command for _, base, _, _ in study.comparison.pairs() for arm in study.shown(base)[:1]
    ]
    printed = [command for command in commands if command.text]
    if not printed:
        return
    for command in commands:
        if command and not command.text:
            why = (
                "the page does not say how the server of this row was started; other rows were "
                f"started with `{printed[0].text}`"
            )
            yield study.note(command.at, "baseline", "no parameters", why, "unknown command")
    for later in printed[1:]:
        if not printed[0].same_as(later):
            line = study.page.place(printed[0].at).line
            why = (
                f"other rows of the baseline are of `{printed[0].text}` (line {line}): another "
                "server"
            )
            yield study.finding(
                later.at, "baseline", f"`{later.text}`", f"`{printed[0].text}`", why
            )
            return
    table = study.comparison
    called = table.columns[table.baseline or 0]
    settings = printed[0].settings.items()
    changed = [
        setting_text(name, value) for name, value in settings if name not in (*INTERFACE, *WIDTHS)
    ]
    if changed and any(word in called.lower() for word in DEFAULTS):
        yield study.note(table.at, "baseline", called, f"it was started with {', '.join(changed)}")


def combinations(study: PublishedStudy) -> Findings:
    """A stage that is named "A && B" changes what A and B are, and nothing else."""
    base = next((arm.command for arm in study.arms if arm.command), NO_COMMAND)
    for stage, arms in study.staged():
        for arm in arms if JOINED in stage.title else ():
            words = stems(stage.title)
            letters = re.sub("[^a-z]", "", stage.title.lower())
            changed = [
                name for name, value in arm.command.flags.items() if base.flags.get(name) != value
            ]
            unnamed = [
                name
                for name in changed
                if not stems(name.replace("-", " ")) & words
                # A title may have a word of a flag in several words, such as "Cuda Graph".
                and not any(
                    len(word) >= MIN_WORD_LENGTH and word in letters
                    for word in name.lower().split("-")
                )
            ]
            if unnamed:
                named = ", ".join(map(setting_text, unnamed))
                why = f"it changes more than its title says: {named}: {arm.settings}"
                yield Finding(arm.result.place, "label", stage.title, "", why)


def duplicates(study: PublishedStudy) -> Findings:
    """No run is published as two treatments, nor again under another title as a second run."""
    reported: set[tuple[int, str]] = set()
    for first, second in itertools.combinations(study.arms, 2):
        if not first.result.same_run(second.result):
            continue
        if first.same_server(second) and (
            first.stage == second.stage or study.is_reference(second)
        ):
            rule, is_new = "reprinted", first.name != second.name
        else:
            is_told = first.command or second.command or first.label != second.label
            rule, is_new = "duplicate", bool(first.stage and second.stage and is_told)
        if not is_new or (id(second), rule) in reported:
            continue
        reported.add((id(second), rule))
        why = f"every number is that of {first.name} ({first.where}): one run, "
        if rule == "reprinted":
            yield second.note(rule, f"{why}printed twice", rule)
        else:
            says = f"{second.name}: total {second.total} tok/s"
            yield Finding(second.result.place, rule, says, "", f"{why}published as two treatments")


def one_sided(study: PublishedStudy) -> Findings:
    """Engines that are compared have the same settings, as far as all of them know these."""
    for _, arms in study.staged():
        commands = [arm.command for arm in arms if arm.command.engine in TABLES]
        for command in commands:
            rivals = [rival for rival in commands if rival.engine != command.engine]
            for name, value in command.settings.items() if rivals else ():
                is_known = all(
                    name in TABLES[rival.engine].forms and name not in rival.settings
                    for rival in rivals
                )
                if is_known and name not in (*INTERFACE, *WIDTHS, "context_len"):
                    why = (
                        f"{' and '.join(sorted({rival.engine for rival in rivals}))} at the default"
                    )
                    says = f"{command.engine} with {setting_text(name, value)}"
                    yield study.note(command.at, "one-sided", says, why)


def repeats(study: PublishedStudy) -> Findings:
    """One command that was measured twice has one result, as far as nothing else differs."""
    measured = [arm for arm in study.arms if arm.command.text and arm.total]
    for first, *later_arms in kinds(
        measured, lambda earlier, later: earlier.same_server(later) and earlier.same_work(later)
    ):
        for later in later_arms:
            if gain := study.gain(later, first):
                weight = abs(gain.value - 1)
                why = (
                    f"{first.name} ({first.where}) has {_judged(study, first)} with the same "
                    f"printed command: a difference of {plain(100 * weight)}% that no setting "
                    "explains"
                )
                says = f"{later.name}: {_judged(study, later)}"
                yield Finding(later.result.place, "repeat", says, "", why, True, weight=weight)


def _judged(study: PublishedStudy, arm: PublishedArm) -> str:
    latency = arm.result.latency_s()
    return f"{latency} s for a request" if study.of_latency and latency else f"{arm.total} tok/s"


def unreported(study: PublishedStudy) -> Findings:
    """A workload that was measured is in a table, whichever way it went."""
    if study.comparison is NO_TABLE:
        return
    shown = set(map(id, itertools.chain.from_iterable(arms for _, _, arms in study.cells())))
    rows = " / ".join(row.name.lower() for row in study.comparison.rows)
    for workload, arms in study.by_workload().items():
        if workload and workload.lower() not in rows and not any(id(arm) in shown for arm in arms):
            totals = " and ".join(f"{arm.total}" for arm in arms if arm.total)
            why = f"its {totals} tok/s are in no table"
            yield Finding(arms[0].result.place, "unreported", workload, "a row", why, note=True)
