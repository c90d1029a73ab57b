"""Paired blocks: two treatments compared block by block, where others may have disturbed values.

A disturbance never corrects a value. It says on which noise the bounds rest, and which bound the
differences cannot give.
"""

import math
from dataclasses import dataclass

import numpy as np

from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

TRIMMED_FROM = 5  # blocks from which on the least and the greatest difference are left out


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of a treatment from a reference, in the blocks that have both.

    Attributes:
        effect: The mean of the differences: what the means of the values show.
        center: The estimate that the bounds are around.
        sd: The standard error of the latter; NaN or infinite if the values do not tell it.
        df: Degrees of freedom of the standard error.
        disturbed: Whether a value was disturbed.
        bounded_below, bounded_above: Whether the standard error bounds the effect on that side.
    """

    effect: float
    center: float
    sd: float
    df: int
    disturbed: bool = False
    bounded_below: bool = True
    bounded_above: bool = True


class PairedBlocks:
    """The differences of two treatments in the blocks that have both.

    From TRIMMED_FROM blocks on the least and the greatest one are left out of the estimate, so that
    a single value cannot move it far; its standard error is Yuen's (Biometrika 61, 1974).

    Args:
        treatment, reference: Values, shape (blocks,); NaN where there is none.
        disturbance: Of each value, shape (2, blocks), as a multiple of the least that counts; 0
            where there is none. None: nothing was disturbed.
    """

    def __init__(
        self, treatment: Floats, reference: Floats, disturbance: Floats | None = None
    ) -> None:
        differences = treatment - reference
        common = ~np.isnan(differences)
        self._differences: Floats = np.sort(differences[common])
        self._disturbance: Floats = (
            np.zeros((2, 0)) if disturbance is None else disturbance[:, common]
        )
        self._trimmed = 1 if len(self._differences) >= TRIMMED_FROM else 0

    @property
    def noise(self) -> Noise:
        """The noise of one value, from these differences alone."""
        kept = len(self._kept)
        if kept < 2:
            return Noise(math.nan, 0)
        winsorized = np.clip(self._differences, self._kept[0], self._kept[-1])
        squares = float(np.sum((winsorized - winsorized.mean()) ** 2))
        # Of the trimmed mean, as if it were the mean of all differences.
        scale = len(self._differences) / kept / 2
        return Noise.from_squares(squares * scale, kept - 1)

    def contrast(self, noise: Noise | None = None) -> Contrast:
        """Return the difference.

        Args:
            noise: The noise of one value, as it is known from more than these values; used if
                nothing was disturbed and these differences are not noisier. None: unknown.
        """
        blocks = len(self._differences)
        if not blocks:
            return Contrast(math.nan, math.nan, math.inf, 0)
        mean = float(self._differences.mean())
        own = self.noise
        is_noisier = noise is not None and bool(own.df) and own.sd > noise.sd
        if noise is not None and not is_noisier and not self._is_disturbed:
            return Contrast(mean, mean, noise.sd * math.sqrt(2 / blocks), noise.df)
        apart = self._apart
        return Contrast(
            mean,
            float(self._kept.mean()),
            own.sd * math.sqrt(2 / blocks),
            own.df,
            self._is_disturbed,
            bounded_below=apart >= -self._trimmed,
            bounded_above=apart <= self._trimmed,
        )

    @property
    def _kept(self) -> Floats:
        return self._differences[self._trimmed : len(self._differences) - self._trimmed]

    @property
    def _is_disturbed(self) -> bool:
        return bool(np.any(self._disturbance > 0))

    @property
    def _apart(self) -> int:
        """In how many more blocks the treatment was disturbed than the reference was."""
        more = self._disturbance[0] - self._disturbance[1]
        return int(np.sum(more >= 1)) - int(np.sum(more <= -1))
