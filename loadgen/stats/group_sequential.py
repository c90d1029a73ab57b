"""Group-sequential comparison of several treatments with a reference, block by block.

It decides which treatments are better than the reference by more than a minimum effect. A block
holds one value of each treatment. Values are compared by their logarithms, so effects are ratios,
and in pairs within blocks (`PairedBlocks`). After each block from the second to the last one, an
interim analysis (a look) decides what it can:

- The chance of a false rejection is spent over the looks by the O'Brien-Fleming type function of
  Lan and DeMets (Biometrika 70, 1983): little at first, nearly all at the last look. The boundaries
  for known noise follow from the recursion of Armitage, McPherson and Rowe (J. R. Stat. Soc. A 132,
  1969); for estimated noise Student's quantile at SPENT of the boundary's nominal level is used.
- The noise is pooled with that of the other treatments and of earlier comparisons, so that the
  first looks, which have few values, can decide where the evidence is plain. A pair that is
  noisier, or that was disturbed, has its own.
- Over the treatments it is controlled by Holm's procedure (`StepDown`) at each look, as Ye, Li, Liu
  and Yao (Stat. Med. 32, 2013) do it.

So the chance of calling any treatment better that is not better by more than the minimum effect is
at most 1 - confidence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Self

import numpy as np

from loadgen.stats import distributions, hypothesis_tests
from loadgen.stats.paired_blocks import Contrast, PairedBlocks
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

GRID_POINTS = 401  # of the recursion: boundaries are exact to four digits
GRID_END = 8.0  # standard deviations
POWER = 0.8  # of the effect that is called detectable
NOISE_CONFIDENCE = 0.9  # of the upper bound of the noise that this effect is computed with
# Of several looks: the noise of a look is estimated, so looks are less alike than with known noise.
# At the full nominal levels 5.3 to 6 % would pass in place of 5.0 %, by simulation.
SPENT = 0.9
PRECISION = 1e-13  # of a boundary, as a share of it


class Decision(StrEnum):
    """What has been decided about a treatment."""

    BETTER = "better"  # than the reference by more than the minimum effect
    NOT_BETTER = "not better"  # by more than the minimum effect
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Plan:
    """The design of a comparison.

    Attributes:
        least_effect: By how much a treatment must be better, as a share: 0.01 is 1 %.
        confidence: The chance that no treatment is called better that is not.
        first: Number of blocks at the first look, 2 or more.
        last: Number of blocks at the last look, which decides everything.
    """

    least_effect: float = 0.01
    confidence: float = 0.95
    first: int = 2
    last: int = 7

    @property
    def looks(self) -> tuple[int, ...]:
        """The number of blocks at each look."""
        return tuple(range(self.first, self.last + 1))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The effect of a treatment against the reference, as ratios less 1: 0.02 is 2 % more.

    Attributes:
        decision: What has been decided.
        effect: The estimate.
        low: Lower confidence bound, at the level that the look leaves for this treatment.
        high: Upper confidence bound, at the same level.
        blocks: Number of blocks that were compared.
        disturbed: Whether others disturbed one of the values.
    """

    decision: Decision
    effect: float
    low: float
    high: float
    blocks: int
    disturbed: bool = False

    @property
    def inverted(self) -> Self:
        """The effect on the reciprocal of the values, as on a latency where its reciprocal was
        compared.
        """
        return replace(
            self, effect=_inverse(self.effect), low=_inverse(self.high), high=_inverse(self.low)
        )


def spent(alpha: float, fraction: float) -> float:
    """Return how much of `alpha`, one-sided, may be spent when a `fraction` of the blocks has
    been observed.
    """
    return 2 * _upper_tail(NormalDist().inv_cdf(1 - alpha / 2) / math.sqrt(fraction))


@lru_cache(maxsize=256)
def boundaries(alpha: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the standard normal quantile that must be exceeded at each look.

    Without any effect, the chance to exceed one of them is `alpha`.

    Args:
        alpha: One-sided.
        looks: Number of blocks at each look, ascending; the last is the number of all blocks.
    """
    crossed = 0.0
    edges = []
    # Distribution of the sum of differences that has not crossed yet, scaled to variance 1 at the
    # last look.
    sums = np.zeros(1)
    mass = np.ones(1)
    before = 0.0
    for time in (look / looks[-1] for look in looks):
        step = math.sqrt(time - before)
        root = math.sqrt(time)
        chance = spent(alpha, time) - crossed
        edge = _boundary(sums, mass, step, chance)
        reached = np.linspace(-GRID_END * root, edge, GRID_POINTS)
        width = np.full(GRID_POINTS, reached[1] - reached[0])
        width[[0, -1]] /= 2
        z = (reached[:, None] - sums) / step
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        mass = width * (density / step @ mass)
        sums = reached
        before = time
        crossed += chance
        edges.append(edge / root)
    return tuple(edges)


def _boundary(sums: Floats, mass: Floats, step: float, chance: float) -> float:
    """Return the value above 0 that `chance` of the mass exceeds after one more step of standard
    deviation `step`.
    """

    def beyond(edge: float) -> float:
        return math.fsum(
            part * _upper_tail(z)
            for part, z in zip(mass.tolist(), ((edge - sums) / step).tolist(), strict=True)
        )

    return distributions.bisect_end(lambda edge: beyond(edge) > chance, PRECISION)


def _upper_tail(z: float) -> float:
    """Return the chance that a standard normal variable exceeds `z`; exact far from 0 too."""
    return math.erfc(z / math.sqrt(2)) / 2


def compare(
    runs: Mapping[str, Sequence[float]],
    reference: str,
    plan: Plan,
    prior: Noise | None = None,
    disturbances: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, Comparison]:
    """Compare treatments with a reference at every look so far, and decide what can be decided.

    Args:
        runs: Values of each treatment (above 0), one per block from the first on. A treatment that
            has been decided may lack the blocks after that.
        reference: The treatment that the others are compared with.
        plan: The design.
        prior: The noise of earlier comparisons; None: unknown.
        disturbances: What disturbed each value, as a multiple of the least that counts, 0 where
            nothing did; see `PairedBlocks`. None: nothing did.

    Returns:
        The comparison of every other treatment at its last look, in the order of `runs`. Before the
        first look all are open.
    """
    values = np.log(table(runs))
    disturbance = (
        None if disturbances is None else table({name: disturbances[name] for name in runs})
    )
    names = list(runs)
    base = names.index(reference)
    rivals = [name for name in names if name != reference]
    decided: dict[str, Comparison] = {}
    latest: dict[str, Comparison] = {}
    for number, look in enumerate(plan.looks):
        if values.shape[1] < look:
            break
        if np.isnan(values[base, :look]).any():
            break
        complete = [name for name in rivals if not np.isnan(values[names.index(name), :look]).any()]
        if not complete:
            break
        noise = Noise.of_layout(values[:, :look]).with_prior(prior)
        contrasts = {}
        for name in complete:
            row = names.index(name)
            lost = None if disturbance is None else disturbance[[row, base], :look]
            pairs = PairedBlocks(values[row, :look], values[base, :look], lost)
            contrasts[name] = pairs.contrast(noise)
        adopted = sum(comparison.decision is Decision.BETTER for comparison in decided.values())
        procedure = hypothesis_tests.StepDown(1 - plan.confidence, len(rivals), rejected=adopted)
        for name in sorted(contrasts, key=lambda name: contrasts[name].effect, reverse=True):
            contrast = contrasts[name]
            boundary = _student_boundary(
                boundaries(procedure.level, plan.looks)[number], contrast.df, len(plan.looks)
            )
            comparison = _comparison(
                contrast, boundary * contrast.sd, look, plan, procedure, last=look == plan.last
            )
            latest[name] = comparison
            if comparison.decision is not Decision.OPEN:
                decided[name] = comparison
                # Later looks must not depend on further values.
                values[names.index(name), look:] = math.nan
    nothing = Comparison(Decision.OPEN, math.nan, -1.0, math.inf, 0)
    return {name: latest.get(name, nothing) for name in rivals}


def table(runs: Mapping[str, Sequence[float]]) -> Floats:
    """Return values as shape (treatments, blocks); NaN where a treatment has no value."""
    table = np.full((len(runs), max(map(len, runs.values()))), math.nan)
    for row, achieved in zip(table, runs.values(), strict=True):
        row[: len(achieved)] = achieved
    return table


def detectable_effect(noise: Noise, arms: int, plan: Plan) -> float:
    """Return the detectable effect, as a share: the one that is found with a chance of POWER if all
    blocks are run.

    It holds for the upper bound of the noise, since few values may have shown less noise than there
    is.

    Args:
        noise: The noise of one value's logarithm, as known before.
        arms: Number of treatments besides the reference. One of them alone is taken to be better.
        plan: The design.
    """
    return math.expm1(
        math.log1p(plan.least_effect) + _needed_sds(noise, arms, plan) * math.sqrt(2 / plan.last)
    )


def blocks_needed(effect: float, noise: Noise, arms: int, plan: Plan) -> int | None:
    """Return about how many blocks show an effect with a chance of POWER; None if no number does.

    Args:
        effect: The effect, as a share.
        noise: The noise of one value's logarithm.
        arms: Number of treatments besides the reference.
        plan: The design.
    """
    beyond = math.log1p(effect) - math.log1p(plan.least_effect)
    if beyond <= 0 or not noise.df:
        return None
    return max(plan.first, math.ceil(2 * (_needed_sds(noise, arms, plan) / beyond) ** 2))


def _needed_sds(noise: Noise, arms: int, plan: Plan) -> float:
    """Return the effect beyond the least one that a single block would have to show, as a
    logarithm.
    """
    df = arms * (plan.last - 1) + noise.df
    last = boundaries((1 - plan.confidence) / arms, plan.looks)[-1]
    quantiles = _student_boundary(
        last, df, len(plan.looks)
    ) + distributions.student_two_sided_quantile(2 * (1 - POWER), df)
    return quantiles * noise.upper_bound(NOISE_CONFIDENCE)


def _inverse(effect: float) -> float:
    """Return the effect on the reciprocal; -1 (unbounded loss) and infinity change places."""
    return math.inf if effect == -1 else 1 / (1 + effect) - 1


def _student_boundary(z: float, df: int, looks: int) -> float:
    """Return Student's quantile for the normal boundary `z`, above 0, of one of several looks;
    NaN without a df.
    """
    level = _upper_tail(z) * (SPENT if looks > 1 else 1.0)
    return distributions.student_two_sided_quantile(2 * level, df) if df else math.nan


def _comparison(
    contrast: Contrast,
    half_width: float,
    blocks: int,
    plan: Plan,
    procedure: hypothesis_tests.StepDown,
    *,
    last: bool,
) -> Comparison:
    minimum = math.log1p(plan.least_effect)
    width = math.inf if math.isnan(half_width) else half_width
    # The bounds hold both estimates: no verdict contradicts the means.
    low = min(contrast.center - width, contrast.effect) if contrast.bounded_below else -math.inf
    high = max(contrast.center + width, contrast.effect) if contrast.bounded_above else math.inf
    decision = Decision.OPEN
    if procedure.test(low > minimum):
        decision = Decision.BETTER
    elif last or high < 0 or (high < minimum and contrast.effect > -minimum):
        decision = Decision.NOT_BETTER
    effect = math.expm1(contrast.effect)
    try:
        most = math.expm1(high)
    except OverflowError:  # a float has no room for it
        most = math.inf
    return Comparison(decision, effect, math.expm1(low), most, blocks, contrast.disturbed)
