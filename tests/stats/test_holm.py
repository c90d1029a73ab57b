"""Holm's procedure on p-values and step by step."""

import pytest

from loadgen.stats.holm import StepDown, largest_rejected


@pytest.mark.parametrize(
    ("p_values", "largest"),
    [
        ([], None),
        ([0.05], 0.05),
        ([0.06], None),
        ([0.04, 0.012, 0.010, 0.9], 0.012),  # 0.05 / 4, / 3, / 2: 0.04 is above 0.025
        ([0.03, 0.03], None),
        ([0.025, 0.025], 0.025),
        ([0.0126, 0.001, 0.001, 0.001], 0.0126),
        ([0.02, 0.02, 0.02], None),  # the first is above 0.05 / 3, so nothing after it counts
    ],
)
def test_largest_rejected(p_values: list[float], largest: float | None) -> None:
    assert largest_rejected(p_values, 0.05) == largest


def test_a_rejection_raises_the_level_of_the_next() -> None:
    procedure = StepDown(0.05, 4, rejected=1)
    assert procedure.level == pytest.approx(0.05 / 3)
    assert procedure.test(True)
    assert procedure.level == pytest.approx(0.05 / 2)


def test_step_down_stops_at_the_first_acceptance() -> None:
    procedure = StepDown(0.05, 3)
    assert not procedure.test(False)
    assert not procedure.test(True)
    assert procedure.level == pytest.approx(0.05 / 3)
