"""Noise: arms that are the same treatment, what they differ by, and whether a gain is more than that."""

import math

import numpy as np

from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.number import change
from loadgen.lab.audit.rules.gains import of_stages, printed_change
from loadgen.lab.audit.study import PublishedArm, PublishedStudy, kinds
from loadgen.stats import distributions
from loadgen.stats.variance import Noise

CONFIDENCE = 0.95  # two-sided
MIN_SINGLE_GAIN = 0.03  # relative: on a page that tells by how much runs differ, one run each shows none below it
MIN_DF = 2  # degrees of freedom; below it a difference would have to be beyond any that is printed


def noise(study: PublishedStudy) -> Findings:
    """A gain of one run over one run is more than runs that are alike differ by."""
    sets = alike(study)
    rates = [[arm.result.tokens_per_second().value for arm in arms] for arms in sets]
    values = [[math.log(rate) for rate in each if rate > 0] for each in rates]
    within = Noise.pooled([Noise.of_replicates(np.array(each)) for each in values if each])
    if study.repeated:
        return
    if within is None or within.df < MIN_DF:
        yield from _unknown(study)
        return
    kinds_of = "one treatment" if len(values) == 1 else f"{len(values)} treatments"
    least = math.exp(distributions.student_two_sided_quantile(1 - CONFIDENCE, within.df) * within.sd * math.sqrt(2))
    for row, base, cell in study.pairs():
        before, after = (study.showing(found.get("total_per_s")) for found in (base, cell))
        if not before or not after or not any(arm.stage for arm in before + after):
            continue
        total = cell.get("total_per_s")
        ratio = (after[0].result.tokens_per_second() / before[0].result.tokens_per_second()).value
        if total and (total.change is None or total.change.ratio.value > 1) and 1 < ratio < least:
            why = (
                f"{row.name}: {sum(map(len, values))} arms are of {kinds_of}, and differ within "
                f"by SD {100 * within.sd:.2f} % (df {within.df}): one run each shows no gain below {change(least)}, "
                f"and this is {change(ratio)}"
            )
            says, at = (total.change.text, total.change.at) if total.change else (f"{total.text} tok/s", total.at)
            yield study.note(at, "noise", says, why, "one run each", ratio - 1)


def _unknown(study: PublishedStudy) -> Findings:
    """The small gains of a page that does not tell by how much runs differ."""
    for row in study.summary.rows:
        printed = printed_change(row)
        if printed is not None and of_stages(study, row) and 0 < printed.ratio.value - 1 < MIN_SINGLE_GAIN:
            why = f"{row.name}: one run each, and too few were run again to tell by how much runs differ"
            yield study.note(printed.at, "noise", printed.text, why, "one run each", printed.ratio.value)


def alike(study: PublishedStudy) -> list[list[PublishedArm]]:
    """Arms of the stages whose commands differ in nothing that binds, two or more of each kind; no run twice."""
    known = [arm for arm in study.tried if arm.command and arm.result["ok"]]
    return [kind for kind in kinds(known, _is_like) if len(kind) > 1]


def _is_like(first: PublishedArm, second: PublishedArm) -> bool:
    limit = first.result["cap"] or first.result["peak_in_flight"]
    one, other = (arm.command.binding(limit.value) for arm in (first, second))
    return bool(limit) and first.same_work(second) and one.same_as(other)
