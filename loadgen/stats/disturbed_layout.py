"""Disturbed layout: treatments in blocks of which some values were lowered by a disturbance."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from loadgen.stats.two_way_layout import TwoWayLayout
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

MIN_DF = 2  # degrees of freedom that slopes must leave, or they explain whatever was seen


class Adjustment(StrEnum):
    """What was done about disturbed values when a difference was estimated."""

    NONE = "none"  # no value was disturbed
    SLOPES = "slopes"
    LEFT_OUT = "left out"
    OPEN_BOUNDS = "open bounds"


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of a treatment from a reference.

    Attributes:
        effect: The estimate.
        sd: Its standard error; NaN or infinite if the values do not tell it.
        df: Degrees of freedom of the standard error.
        adjustment: What was done about disturbed values.
        bounded_below, bounded_above: Whether the standard error bounds the effect on that side.
    """

    effect: float
    sd: float
    df: int
    adjustment: Adjustment = Adjustment.NONE
    bounded_below: bool = True
    bounded_above: bool = True


class DisturbedLayout:
    """Values of treatments in blocks, with the disturbance of each value.

    A difference is estimated in the first of these ways that the values allow:

    1. No value is disturbed: a two-way layout.
    2. Slopes leave MIN_DF degrees of freedom: a slope of the disturbance for each treatment is taken out.
    3. The undisturbed values determine the difference: the disturbed ones are left out.
    4. All values count as they are. Their noise is that of these values alone, unless it was higher before. A
       disturbance lowers a value, so the treatment that was disturbed more often is not bounded above, and the other
       one, compared with it, not below.

    Args:
        values: Shape (treatments, blocks); NaN where a treatment has no value.
        disturbance: Of each value, same shape, 0 where there is none; None: none at all.
        prior: The noise of earlier values; None: unknown.
    """

    def __init__(
        self,
        values: Floats,
        disturbance: Floats | None = None,
        prior: Noise | None = None,
    ) -> None:
        self._values, self._prior = values, prior
        present = ~np.isnan(values)
        is_disturbed = disturbance is not None and bool(np.any(disturbance[present] > 0))
        self._disturbance = disturbance if is_disturbed else None

    @property
    def noise(self) -> Noise:
        """The noise of one value, without earlier values."""
        return (self._adjusted or self._plain).noise

    def contrast(self, treatment: int, reference: int) -> Contrast:
        """Return the difference of two treatments."""
        if self._disturbance is None:
            return self._of(self._plain, treatment, reference, Adjustment.NONE)
        ways = ((self._adjusted, Adjustment.SLOPES), (self._undisturbed, Adjustment.LEFT_OUT))
        for layout, adjustment in ways:
            if layout is not None:
                found = self._of(layout, treatment, reference, adjustment)
                if math.isfinite(found.effect):
                    return found
        return self._as_they_are(treatment, reference, self._disturbance)

    def _as_they_are(self, treatment: int, reference: int, disturbance: Floats) -> Contrast:
        effect, variance = self._plain.difference(treatment, reference)
        noise = self._plain.noise
        if self._prior is None or not noise.df or noise.sd <= self._prior.sd:
            noise = noise.with_prior(self._prior)
        times, reference_times = (int(np.sum(disturbance[row] > 0)) for row in (treatment, reference))
        return Contrast(
            effect,
            noise.sd * math.sqrt(variance),
            noise.df,
            Adjustment.OPEN_BOUNDS,
            bounded_below=times >= reference_times,
            bounded_above=times <= reference_times,
        )

    def _of(self, layout: TwoWayLayout, treatment: int, reference: int, adjustment: Adjustment) -> Contrast:
        effect, variance = layout.difference(treatment, reference)
        noise = layout.noise.with_prior(self._prior)
        return Contrast(effect, noise.sd * math.sqrt(variance), noise.df, adjustment)

    @cached_property
    def _plain(self) -> TwoWayLayout:
        return TwoWayLayout.fit(self._values)

    @cached_property
    def _adjusted(self) -> TwoWayLayout | None:
        """The layout with slopes; None if they leave too few degrees of freedom, or nothing was disturbed."""
        if self._disturbance is None:
            return None
        layout = TwoWayLayout.fit(self._values, self._disturbance)
        return layout if layout.noise.df >= MIN_DF else None

    @cached_property
    def _undisturbed(self) -> TwoWayLayout | None:
        """The layout of the undisturbed values; None if there is none."""
        if self._disturbance is None:
            return None
        values = np.where(self._disturbance > 0, math.nan, self._values)
        return None if np.isnan(values).all() else TwoWayLayout.fit(values)
