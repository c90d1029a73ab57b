"""Holm's step-down procedure (Scand. J. Stat. 6, 1979): several hypotheses at one family-wise error rate."""

from collections.abc import Iterable


class StepDown:
    """Tests hypotheses one after another, in order of decreasing evidence.

    Args:
        alpha: Family-wise error rate.
        count: Number of hypotheses in the family.
        rejected: How many of them were rejected before; they pass their share on to the others.
    """

    def __init__(
        self,
        alpha: float,
        count: int,
        rejected: int = 0,
    ) -> None:
        self._alpha, self._count, self._rejected, self._stopped = alpha, count, rejected, False

    @property
    def level(self) -> float:
        """Significance level at which the next hypothesis is tested. Some hypothesis must be left."""
        return self._alpha / (self._count - self._rejected)

    def test(self, significant: bool) -> bool:
        """Test the next hypothesis: it is rejected unless one before it was not.

        Args:
            significant: Whether it is significant at `level`.
        """
        if not significant:
            self._stopped = True
        elif not self._stopped:
            self._rejected += 1
        return not self._stopped


def largest_rejected(p_values: Iterable[float], alpha: float) -> float | None:
    """Return the largest p-value whose hypothesis is rejected at family-wise error rate `alpha`; None if none is."""
    ordered = sorted(p_values)
    procedure, largest = StepDown(alpha, len(ordered)), None
    for p in ordered:
        if not procedure.test(p <= procedure.level):
            break
        largest = p
    return largest
