"""Gains: what a page says each stage brought, against the best before it and against noise.

Noise is how much arms of the same treatment differ.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import UNKNOWN, Number, change, off
from loadgen.lab.audit.page import Section, stages_of
from loadgen.lab.audit.rules.results import SUMMARY, misprint, misprints
from loadgen.lab.audit.study import PublishedArm, PublishedStudy, kinds
from loadgen.lab.audit.table import Change, Row
from loadgen.stats import distributions
from loadgen.stats.variance import Noise

TOTAL = re.compile(r"(?i)\W*(?:total|overall|combined|cumulative|all)\b")
NUMBERED = re.compile(r"(\d+)\.\s")
SKIPPED = re.compile(r"(?i)\b(?:skipped|rejected|not adopted|lower than)\b")
LATENCY_ROUNDING = 0.005  # relative: how far a latency of two digits is off
CONFIDENCE = 0.95  # two-sided
# Relative: on a page that tells by how much runs differ, one run each shows none below it.
MIN_SINGLE_GAIN = 0.03
MIN_DF = 2  # degrees of freedom; below it a difference would have to be beyond any that is printed


def gains(study: PublishedStudy) -> Findings:
    """A stage's gain is its best by the best before it, or by the baseline of its row."""
    for row in study.summary.rows:
        printed = printed_change(row)
        if printed is None or any(SKIPPED.search(cell.text) for cell in row.cells):
            continue
        pair = of_stages(study, row)
        if TOTAL.match(row.name):
            best = study.best(study.tried)
            pair = (best, study.tried[0]) if best else None
        if pair:
            yield from _checked(study, row, printed, *pair)


def printed_change(row: Row) -> Change | None:
    """The change that a row of the summary prints."""
    return next((cell.change for cell in row.cells if cell.change and not cell.quantities), None)


def of_stages(study: PublishedStudy, row: Row) -> tuple[PublishedArm, PublishedArm] | None:
    """The best arm of the stages of a row, and the best before it that is of none."""
    stages = stages_of(row, study.stages)
    best = study.best([arm for arm in study.tried if arm.stage in stages])
    if best is None:
        return None
    before = [
        arm for arm in study.tried if arm.stage not in stages and arm.result.at < best.stage.begin
    ]
    incumbent = study.best(before) or next(iter(study.tried), None)
    return (best, incumbent) if incumbent else None


def _checked(
    study: PublishedStudy, row: Row, printed: Change, best: PublishedArm, incumbent: PublishedArm
) -> Findings:
    after = study.whole(best)
    before = study.whole(incumbent)
    ratio = after / before
    if not ratio:
        return
    if any(printed.ratio.agrees(reading) for reading in _readings(study, best, incumbent, ratio)):
        yield from _multiplied(study, row, printed, best, incumbent)
        return
    why = (
        f"{row.name}: {_said(study, best)} / {_said(study, incumbent)} - 1 = {change(ratio.value)}"
    )
    start = study.whole(study.tried[0])
    if study.of_latency:
        ratio = _latencies(best, incumbent) or ratio
        why = (
            f"{row.name}: the mean time of a request is {_time(incumbent)} s before and "
            f"{_time(best)} s after"
        )
    elif printed.ratio.agrees(after / start):
        why += (
            f", over the best so far ({incumbent.label}); {printed.text} is over the first "
            f"arm's {start}"
        )
    # A change is over the first arm where rows of the summary print a baseline.
    readings = _readings(study, best, study.tried[0], UNKNOWN)
    has_baseline = study.summary.baseline is not None and any(map(printed.ratio.agrees, readings))
    if has_baseline:
        why += f"; {printed.text} is over the baseline that the row prints"
    should_be = change(ratio.value)
    weight = off(printed.ratio, ratio)
    place = study.page.place(printed.at)
    rule = "gain"
    cause = "own baseline" if has_baseline else ""
    for wrong in misprints(study):
        if any(printed.ratio.agrees(misreading) for misreading in (wrong / before, after / wrong)):
            rule = "result-line"
            cause = misprint(wrong)
    yield Finding(
        place, rule, printed.text, should_be, why, has_baseline, cause=cause, weight=weight
    )


def _multiplied(
    study: PublishedStudy, row: Row, printed: Change, best: PublishedArm, incumbent: PublishedArm
) -> Findings:
    """A gain of several servers, where one was measured and the row does not say so."""
    times = study.replicas(best), study.replicas(incumbent)
    per_server = best.total / incumbent.total
    if times[0] > times[1] and not study.per_device and printed.ratio.differs(per_server):
        why = f"{row.name}: {_said(study, best)} against {_said(study, incumbent)}; "
        why += f"one server is {change(per_server.value)}"
        yield study.note(
            printed.at, "extrapolated", printed.text, why, "replicas", best.total.value
        )


def _readings(
    study: PublishedStudy, best: PublishedArm, incumbent: PublishedArm, ratio: Number
) -> Iterator[Number]:
    """What a gain can be of: all devices, each, the time of a request; or the reference."""
    yield ratio
    beside = [arm for arm in study.tried if arm.stage == best.stage and arm is not best]
    for shown in filter(study.is_reference, beside):
        yield study.whole(best) / study.whole(shown)
    for arm in (*beside, best) if study.per_device else ():
        yield arm.total / incumbent.total * (incumbent.width / arm.width)
    if study.of_latency:
        yield Number.within(_latencies(best, incumbent).value, 2 * LATENCY_ROUNDING)


def _latencies(best: PublishedArm, incumbent: PublishedArm) -> Number:
    return incumbent.result.latency_s() / best.result.latency_s()


def rows(study: PublishedStudy) -> Findings:
    """Every row of a summary is about a stage that is on the page."""
    for row in study.summary.rows if study.stages else ():
        if not stages_of(row, study.stages) and not TOTAL.match(row.name):
            why = f"no stage covers it: {', '.join(stage.title for stage in study.stages)}"
            yield study.finding(row.at, "row-without-stage", row.name, "", why)


def incumbents(study: PublishedStudy) -> Findings:
    """The engine that won a stage is among those that later ones tune."""
    best: PublishedArm | None = None
    lost = ""
    tuned = set().union(*(_engines(study, stage) for stage in study.stages[1:]))
    for stage, arms in study.staged():
        winner = best.command.engine if best else ""
        engines = _engines(study, stage)
        if best and winner and engines and winner != lost and winner not in tuned:
            lost = winner
            says = f"the stages from here on use {' and '.join(sorted(engines))}"
            why = (
                f"{winner} won before this stage, with {best.total} tok/s: only gains of the "
                "winner add up"
            )
            yield study.note(stage.begin, "incumbent", says, why, should_be=winner)
        best = study.best([*arms, best])


def _engines(study: PublishedStudy, stage: Section) -> set[str]:
    return {
        command.engine for command in study.page.commands if command.at in stage and command.engine
    }


def numbers(study: PublishedStudy) -> Findings:
    """Stages that are numbered have every number."""
    numbered = [
        (int(match[1]), stage) for stage in study.stages if (match := NUMBERED.match(stage.title))
    ]
    for (before, _), (number, stage) in pairwise(numbered):
        if number > before + 1:
            why = (
                f"stage {number} follows stage {before}: what was tried between them is not on "
                "the page"
            )
            yield study.note(stage.begin, "stage-number", stage.title, why)


def extrapolated(study: PublishedStudy) -> Findings:
    """A throughput of several servers was measured with several servers."""
    for _, row, cell in study.table_cells():
        quantity = cell.get("total_per_s")
        if quantity is None or quantity.times < 2 or "est." in cell.text:
            continue
        why = f"{row.name}: one server was measured, and {quantity.times} of them never were"
        arms = study.showing(quantity)
        if arms and (sent := arms[0].result["ok"]):
            why += (
                f"; each of them would be sent {sent} requests, where the others had {sent} in all"
            )
        says = f"total {quantity.text} x {quantity.times} tok/s"
        yield study.note(quantity.at, "extrapolated", says, why, "replicas", quantity.whole.value)


def references(study: PublishedStudy) -> Findings:
    """ "A is faster by p %" is over the best that was there, and not over another that A was
    tried beside.
    """
    for line in SUMMARY.finditer(study.page.prose):
        winner, loser = (
            (line["a"], line["b"]) if line["first"] == line["a"] else (line["b"], line["a"])
        )
        arms = {arm.label: arm for arm in study.tried if line.start() in arm.stage}
        best = arms.get(winner)
        loser_arm = arms.get(loser)
        if line["way"] != "faster" or best is None or loser_arm is None:
            continue
        rivals = (arm for arm in arms.values() if not arm.same_server(best))
        rival = study.best(study.before(best.stage)) or study.best(rivals)
        if rival is None or rival.same_server(best) or rival.total.above(best.total):
            continue
        excess = rival.total / loser_arm.total
        ratio = best.total / rival.total
        if excess.above(1) and ratio:
            why = f"{loser} was not the best so far: {rival.name} had {rival.total} tok/s"
            says = f"{line['share']}%"
            at, off_by = line.start("share"), excess.value - 1
            yield study.note(at, "reference", says, why, "", off_by, change(ratio.value))


def _time(arm: PublishedArm) -> str:
    latency = arm.result.latency_s()
    return f"{latency.value:.2f}" if latency else "n/a"


def _said(study: PublishedStudy, arm: PublishedArm) -> str:
    times = study.replicas(arm)
    return f"{arm.total}" if times == 1 else f"{arm.total} x {times}"


def noise(study: PublishedStudy) -> Findings:
    """A gain of one run over one run is more than runs that are alike differ by."""
    sets = alike(study)
    rates = [[arm.result.tokens_per_second().value for arm in arms] for arms in sets]
    values = [[math.log(rate) for rate in set_rates if rate > 0] for set_rates in rates]
    within = Noise.pooled(
        [Noise.of_replicates(np.array(set_rates)) for set_rates in values if set_rates]
    )
    if within is None or within.df < MIN_DF:
        yield from _unknown(study)
        return
    kinds_of = "one treatment" if len(values) == 1 else f"{len(values)} treatments"
    least = math.exp(
        distributions.student_two_sided_quantile(1 - CONFIDENCE, within.df)
        * within.sd
        * math.sqrt(2)
    )
    for row, base, cell in study.pairs():
        before, after = (study.showing(part.get("total_per_s")) for part in (base, cell))
        if not before or not after or not any(arm.stage for arm in before + after):
            continue
        total = cell.get("total_per_s")
        ratio = (after[0].result.tokens_per_second() / before[0].result.tokens_per_second()).value
        if total and (total.change is None or total.change.ratio.value > 1) and 1 < ratio < least:
            why = (
                f"{row.name}: {sum(map(len, values))} arms are of {kinds_of}, and differ within by "
                f"SD {100 * within.sd:.2f}% (df {within.df}): one run each shows no gain below "
                f"{change(least)}, and this is {change(ratio)}"
            )
            says, at = (
                (total.change.text, total.change.at)
                if total.change
                else (f"{total.text} tok/s", total.at)
            )
            yield study.note(at, "noise", says, why, "one run each", ratio - 1)


def _unknown(study: PublishedStudy) -> Findings:
    """The small gains of a page that does not tell by how much runs differ."""
    for row in study.summary.rows:
        printed = printed_change(row)
        if (
            printed is not None
            and of_stages(study, row)
            and 0 < printed.ratio.value - 1 < MIN_SINGLE_GAIN
        ):
            why = (
                f"{row.name}: one run each, and too few were run again to tell by how much runs "
                "differ"
            )
            yield study.note(
                printed.at, "noise", printed.text, why, "one run each", printed.ratio.value
            )


def alike(study: PublishedStudy) -> list[list[PublishedArm]]:
    """Arms of the stages whose commands differ in nothing that binds, two or more of a kind."""
    measured = [arm for arm in study.tried if arm.command and arm.result["ok"]]
    return [kind for kind in kinds(measured, _is_like) if len(kind) > 1]


def _is_like(first: PublishedArm, second: PublishedArm) -> bool:
    limit = first.result["cap"] or first.result["peak_in_flight"]
    left, right = (arm.command.binding(limit.value) for arm in (first, second))
    return bool(limit) and first.same_work(second) and left.same_as(right)
