"""Stats: which of several treatments are better than a reference by more than a least effect, block by block.

A block holds one run of each arm, started afresh, in random order. Runs are compared by the logarithm of what they
achieved, so that effects are ratios, and are taken to be an arm's level, plus the block's, plus independent normal
noise of one size for all arms. After each block from the second to the last one looks whether to go on:

- The chance of a false adoption over all looks is spent as O'Brien and Fleming do it, by the function of Lan and DeMets
  (Biometrika 70, 1983): little at first, nearly all at the last look. Boundaries follow from the recursion of Armitage,
  McPherson and Rowe (J. R. Stat. Soc. A 132, 1969), for known noise; noise that was estimated is met by Student's
  quantile at the boundary's nominal level.
- Over the arms of a stage it is controlled by Holm's procedure (Scand. J. Stat. 6, 1979) at each look, as Ye, Li, Liu
  and Yao (Stat. Med. 32, 2013) do it: an arm that was adopted gives its share to those that remain.

So the chance that a stage adopts any arm that is not better by more than the least effect is at most 1 - confidence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Self

import numpy as np

from loadgen.stats import student_t
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

GRID_POINTS = 401  # of the recursion: its boundaries are then right to four digits
BEYOND = 8.0  # standard deviations, where the grid ends
POWER = 0.8  # of what is called the least effect that can be seen
HALVINGS = 45  # of the range in which a boundary is sought: exact to 1e-12


class Decision(StrEnum):
    """What is known of an arm."""

    BETTER = "better"  # by more than the least effect
    NOT_BETTER = "not better"  # by more than it
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a stage is decided.

    Attributes:
        least_effect: What an arm must be better by, as a share: 0.01 is 1 %.
        confidence: That a stage adopts no arm that is not.
        first: The block after which is looked first, from 2.
        last: The block after which all is decided.
    """

    least_effect: float = 0.01
    confidence: float = 0.95
    first: int = 2
    last: int = 7

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of blocks after which is looked."""
        return tuple(range(self.first, self.last + 1))


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm beside the reference, as ratios less 1: 0.02 is 2 % more.

    Attributes:
        decision: What is known.
        effect: The estimate.
        low: No less than this, at the level that the look has left for this arm.
        high: No more than this, at the same level.
        blocks: With a run of both.
    """

    decision: Decision
    effect: float
    low: float
    high: float
    blocks: int

    @property
    def inverted(self) -> Self:
        """The same of 1 / what was compared: of a value of which less is better, where more of that was a gain."""
        return replace(self, effect=_inverse(self.effect), low=_inverse(self.high), high=_inverse(self.low))


def spent(alpha: float, fraction: float) -> float:
    """How much of `alpha`, one-sided, may be spent when `fraction` of the blocks are there (0 to 1)."""
    return 2 * _above(NormalDist().inv_cdf(1 - alpha / 2) / math.sqrt(fraction))


@lru_cache(maxsize=256)
def boundaries(alpha: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """The standard normal quantile to exceed at each look, of which the last is at all the blocks there will be.

    Without any effect, the chance to exceed one of them is `alpha`.
    """
    crossed, found = 0.0, []
    # Where the sum of all blocks' differences stands that has not crossed yet, scaled to variance 1 at the last look.
    sums, mass, before = np.zeros(1), np.ones(1), 0.0
    for time in (look / looks[-1] for look in looks):
        step, root = math.sqrt(time - before), math.sqrt(time)
        wanted = spent(alpha, time) - crossed
        edge = _edge(sums, mass, step, wanted)
        reached = np.linspace(-BEYOND * root, edge, GRID_POINTS)
        width = np.full(GRID_POINTS, reached[1] - reached[0])
        width[[0, -1]] /= 2
        mass = width * (_density((reached[:, None] - sums) / step) / step @ mass)
        sums, before, crossed = reached, time, crossed + wanted
        found.append(edge / root)
    return tuple(found)


def _edge(sums: Floats, mass: Floats, step: float, wanted: float) -> float:
    """The value above 0 that `wanted` of the mass exceeds after one more step of standard deviation `step`."""

    def beyond(edge: float) -> float:
        return math.fsum(
            part * _above(z) for part, z in zip(mass.tolist(), ((edge - sums) / step).tolist(), strict=True)
        )

    low, high = 0.0, BEYOND
    while beyond(high) > wanted:  # so little is spent at the first of many looks
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > wanted else (low, middle)
    return high


def _above(z: float) -> float:
    """The chance that a standard normal variable exceeds `z`, exact far from 0 too."""
    return math.erfc(z / math.sqrt(2)) / 2


def _density(z: Floats) -> Floats:
    """Of the standard normal distribution."""
    density: Floats = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return density


def compare(runs: Mapping[str, Sequence[float]], reference: str, plan: Plan) -> dict[str, Comparison]:
    """Decide what can be decided.

    Args:
        runs: What each arm achieved (above 0), a value for each block from the first on. An arm that was decided need
            have none of the blocks after.
        reference: The arm that the others are held against.
        plan: How.

    Returns:
        Every other arm's comparison after its last look, in the order of `runs`. Before the first all are open.
    """
    values = _table(runs)
    names = list(runs)
    base, rivals = names.index(reference), [name for name in names if name != reference]
    decided: dict[str, Comparison] = {}
    latest: dict[str, Comparison] = {}
    for number, look in enumerate(plan.looks):
        if values.shape[1] < look:
            break
        so_far = values[:, :look]
        means = dict(zip(names, np.mean(so_far - so_far[base], axis=1).tolist(), strict=True))  # NaN where a run lacks
        effects = {name: means[name] for name in rivals if name not in decided and not math.isnan(means[name])}
        if not effects:
            break
        noise = Noise.of(so_far)
        undecided = sorted(effects, key=effects.__getitem__, reverse=True)
        better = sum(one.decision is Decision.BETTER for one in decided.values())
        refused = False
        for name in undecided:
            alpha = (1 - plan.confidence) / (len(rivals) - better)
            half = _half_width(alpha, plan.looks, number, noise, look)
            one = _comparison(effects[name], half, look, plan, last=look == plan.last, may_win=not refused)
            better += one.decision is Decision.BETTER
            refused = refused or one.decision is not Decision.BETTER
            latest[name] = one
            if one.decision is not Decision.OPEN:
                decided[name] = one
                values[names.index(name), look:] = math.nan  # whoever sees more looks no further
    nothing = Comparison(Decision.OPEN, math.nan, -1.0, math.inf, 0)
    return {name: latest.get(name, nothing) for name in rivals}


def least_effect_seen(noise: Noise, arms: int, plan: Plan) -> float:
    """The effect that POWER of stages of so many arms besides the reference would find, as a share, if all blocks run.

    The shares of Holm's procedure are those of an arm that is the only one to be better.
    """
    df = arms * (plan.last - 1)
    last = boundaries((1 - plan.confidence) / arms, plan.looks)[-1]
    needed = _student(last, df) + student_t.beyond(2 * (1 - POWER), df)
    return math.expm1(math.log1p(plan.least_effect) + needed * noise.sd * math.sqrt(2 / plan.last))


def _inverse(effect: float) -> float:
    """The effect on 1 / a value; -1, where nothing bounds a loss, and infinity change places."""
    return math.inf if effect == -1 else 1 / (1 + effect) - 1


def _table(runs: Mapping[str, Sequence[float]]) -> Floats:
    table = np.full((len(runs), max(map(len, runs.values()))), math.nan)
    for row, achieved in zip(table, runs.values(), strict=True):
        row[: len(achieved)] = np.log(achieved)
    return table


def _half_width(alpha: float, looks: tuple[int, ...], number: int, noise: Noise, blocks: int) -> float:
    return _student(boundaries(alpha, looks)[number], noise.df) * noise.sd * math.sqrt(2 / blocks)


def _student(z: float, df: int) -> float:
    """Student's quantile that is exceeded as seldom as the standard normal one `z`, above 0; NaN of no freedom."""
    return student_t.beyond(2 * _above(z), df) if df else math.nan


def _comparison(effect: float, half: float, blocks: int, plan: Plan, *, last: bool, may_win: bool) -> Comparison:
    least = math.log1p(plan.least_effect)
    decision = Decision.OPEN
    if effect - half > least and may_win:
        decision = Decision.BETTER
    elif effect + half < least or last:
        decision = Decision.NOT_BETTER
    return Comparison(decision, math.expm1(effect), math.expm1(effect - half), math.expm1(effect + half), blocks)
