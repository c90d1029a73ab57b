"""Noise: arms that are the same treatment, what they differ by, and whether a gain is more than that."""

import itertools
import math
from collections.abc import Iterator

from loadgen.audit.finding import Finding
from loadgen.audit.number import change
from loadgen.audit.study import Arm, Study

CONFIDENCE = 0.95  # two-sided
LEAST_DF = 2  # degrees of freedom; below it a difference would have to be beyond any that is printed


def noise(study: Study) -> Iterator[Finding]:
    """A gain of one run over one run is more than runs that are alike differ by."""
    sets = alike(study)
    values = [[math.log(rate) for arm in arms if (rate := _rate(arm))] for arms in sets]
    sd, df = pooled_sd(values)
    if df < LEAST_DF or study.comparison is None:
        return
    least = math.exp(student_t(df) * sd * math.sqrt(2))
    for row, base, cell, _ in study.comparison.pairs():
        before, after = (study.showing(found.get("total_per_s")) for found in (base, cell))
        if not before or not after or not any(arm.stage for arm in before + after):
            continue
        rates = _rate(after[0]), _rate(before[0])
        total = cell.get("total_per_s")
        if rates[0] and rates[1] and total and rates[1] < rates[0] < least * rates[1]:
            why = (
                f"{row.name}: {sum(map(len, values))} arms are of {_treatments(len(values))}, and differ within "
                f"by SD {100 * sd:.2f} % (df {df}): one run each shows no gain below {change(least)}, "
                f"and this is {change(rates[0] / rates[1])}"
            )
            says = total.change.text if total.change else f"{total.text} tok/s"
            at = total.change.at if total.change else total.at
            yield Finding(study.page.place(at), "noise", says, "", why, note=True)


def alike(study: Study) -> list[list[Arm]]:
    """Arms of the stages whose commands differ in nothing that binds, two or more of each kind; no run twice."""
    kinds: list[list[Arm]] = []
    for arm in study.arms:
        ok = arm.result.get("ok")
        if arm.stage is None or _bound(arm) is None or ok is None:
            continue
        kind = next((kind for kind in kinds if _is_like(kind[0], arm)), None)
        if kind is None:
            kinds.append([arm])
        elif all(arm.result.numbers != other.result.numbers for other in kind):
            kind.append(arm)
    return [kind for kind in kinds if len(kind) > 1]


def _bound(arm: Arm) -> tuple[str, str, frozenset[tuple[str, str]]] | None:
    """What of a command binds, given how many requests were in flight at most."""
    limit = arm.result.get("cap") or arm.result.get("peak_in_flight")
    if arm.command is None or limit is None:
        return None
    command = arm.command.binding(limit.value)
    return command.engine, command.name, frozenset(command.flags.items())


def _is_like(first: Arm, second: Arm) -> bool:
    names = ("input_tokens", "ok", "cap")
    same_work = all(first.result.get(name) == second.result.get(name) for name in names)
    return same_work and _bound(first) == _bound(second)


def _rate(arm: Arm) -> float | None:
    rate = arm.result.tokens_per_second()
    return rate.value if rate and rate.value > 0 else None


def _treatments(count: int) -> str:
    return "one treatment" if count == 1 else f"{count} treatments"


def pooled_sd(groups: list[list[float]]) -> tuple[float, int]:
    """The standard deviation that groups with means of their own share, and its degrees of freedom."""
    squares, df = 0.0, 0
    for group in groups:
        mean = sum(group) / len(group) if group else 0.0
        squares += sum((value - mean) ** 2 for value in group)
        df += max(0, len(group) - 1)
    return (math.sqrt(squares / df), df) if df else (0.0, 0)


def student_t(df: int) -> float:
    """The value that Student's t exceeds, in size, with probability 1 - CONFIDENCE; `df` degrees of freedom.

    From its distribution for whole degrees of freedom, a finite sum (Abramowitz and Stegun 26.7.3 and 26.7.4).
    """

    def inside(t: float) -> float:
        angle = math.atan(t / math.sqrt(df))
        cosine = math.cos(angle)
        first = 1.0 if df % 2 == 0 else cosine
        steps = range(2, df - 1, 2) if df % 2 == 0 else range(3, df - 1, 2)
        ratios = [(k - 1) / k * cosine**2 for k in steps]
        terms = list(itertools.accumulate(ratios, lambda term, ratio: term * ratio, initial=first))
        if df % 2 == 0:
            return math.sin(angle) * sum(terms)
        return 2 / math.pi * (angle + (math.sin(angle) * sum(terms) if df > 1 else 0.0))

    low, high = 0.0, 1.0
    while inside(high) < CONFIDENCE:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < CONFIDENCE else (low, middle)
    return high
