"""Paired blocks: estimates, the noise that bounds rest on, and what a disturbance changes."""

import math

import numpy as np
import pytest

from loadgen.stats.paired_blocks import TRIMMED_FROM, PairedBlocks
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

DIFFERENCE = 0.3
KNOWN = Noise(0.01, 12)


def blocks(number: int, sd: float = 0.01, seed: int = 1) -> Floats:
    """Values of a treatment and of a reference, DIFFERENCE apart, on a machine that drifts."""
    generator = np.random.default_rng(seed)
    values: Floats = generator.normal(scale=sd, size=(2, number))
    values += generator.normal(scale=0.05, size=number)
    values[0] += DIFFERENCE
    return values


def disturbed(number: int, *where: tuple[int, int]) -> Floats:
    """A disturbance of twice the limit at these places."""
    found = np.zeros((2, number))
    for place in where:
        found[place] = 2.0
    return found


@pytest.mark.parametrize("number", [2, 4, 7])
def test_undisturbed_blocks_have_their_mean_and_the_known_noise(number: int) -> None:
    values = blocks(number, sd=0.004)
    contrast = PairedBlocks(*values, np.zeros((2, number))).contrast(KNOWN)
    assert contrast.effect == contrast.center == pytest.approx(np.mean(values[0] - values[1]))
    assert (contrast.sd, contrast.df) == (pytest.approx(0.01 * math.sqrt(2 / number)), 12)
    assert not contrast.disturbed


def test_blocks_that_are_noisier_than_known_stand_alone() -> None:
    values = blocks(4, sd=0.06)
    contrast = PairedBlocks(*values).contrast(KNOWN)
    differences = values[0] - values[1]
    assert contrast.sd == pytest.approx(np.std(differences, ddof=1) / math.sqrt(4))
    assert contrast.df == 3


def test_disturbed_blocks_never_rest_on_noise_from_elsewhere() -> None:
    values = blocks(4, sd=0.001)
    quiet = PairedBlocks(*values).contrast(KNOWN)
    busy = PairedBlocks(*values, np.full((2, 4), 7.0)).contrast(KNOWN)
    assert (quiet.df, busy.df) == (12, 3)
    assert busy.disturbed


@pytest.mark.parametrize("number", [TRIMMED_FROM, 7])
def test_one_slow_start_moves_the_mean_but_not_the_bounds(number: int) -> None:
    values = blocks(number, sd=0.004)
    values[1, 2] -= 0.4  # the reference lost a third
    contrast = PairedBlocks(*values, np.full((2, number), 7.0)).contrast(KNOWN)
    assert contrast.effect == pytest.approx(DIFFERENCE + 0.4 / number, abs=0.01)
    assert contrast.center == pytest.approx(DIFFERENCE, abs=0.01)
    assert contrast.sd < 0.01


def test_the_trimmed_standard_error_is_yuens() -> None:
    values = blocks(7, sd=0.05)
    contrast = PairedBlocks(*values, np.full((2, 7), 7.0)).contrast()
    differences = np.sort(values[0] - values[1])
    winsorized = np.clip(differences, differences[1], differences[5])
    squares = np.sum((winsorized - winsorized.mean()) ** 2)
    assert contrast.center == pytest.approx(differences[1:6].mean())
    assert (contrast.sd, contrast.df) == (pytest.approx(math.sqrt(squares / (5 * 4))), 4)


@pytest.mark.parametrize(
    ("where", "below", "above"),
    [
        ((), True, True),
        (((0, 0), (1, 0)), True, True),  # both, in one block
        (((0, 0), (1, 1)), True, True),  # each as often
        (((0, 0),), True, False),  # the treatment alone: its gain may be greater
        (((1, 0), (1, 2), (0, 1)), False, True),  # the reference more often: it may be nothing
    ],
)
def test_what_was_disturbed_more_often_has_no_bound_on_that_side(
    where: tuple[tuple[int, int], ...], below: bool, above: bool
) -> None:
    contrast = PairedBlocks(*blocks(4), disturbed(4, *where)).contrast()
    assert (contrast.bounded_below, contrast.bounded_above) == (below, above)


def test_a_trimmed_estimate_bears_one_block_that_was_disturbed_on_one_side() -> None:
    once = PairedBlocks(*blocks(6), disturbed(6, (1, 3))).contrast()
    twice = PairedBlocks(*blocks(6), disturbed(6, (1, 3), (1, 4))).contrast()
    assert (once.bounded_below, twice.bounded_below) == (True, False)


def test_disturbances_that_differ_by_less_than_the_limit_are_alike() -> None:
    disturbance = np.array([[7.0] * 4, [7.9] * 4])
    contrast = PairedBlocks(*blocks(4), disturbance).contrast()
    assert contrast.bounded_below
    assert contrast.bounded_above


def test_only_blocks_that_have_both_values_count() -> None:
    values = blocks(5)
    values[0, 1] = values[1, 3] = math.nan
    common = [0, 2, 4]
    contrast = PairedBlocks(*values, disturbed(5, (0, 1))).contrast()
    assert contrast.effect == pytest.approx(np.mean(values[0, common] - values[1, common]))
    assert contrast.df == 2
    assert contrast.bounded_above  # the block that was disturbed does not count


@pytest.mark.parametrize("number", [0, 1])
def test_a_single_block_has_no_noise(number: int) -> None:
    contrast = PairedBlocks(*blocks(number)).contrast()
    assert contrast.df == 0
    assert not math.isfinite(contrast.sd)
