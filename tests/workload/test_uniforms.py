"""Draws are functions of a seed, a purpose and what they are drawn for, and look independent of each other."""

import numpy as np
import pytest

from loadgen.workload.draws import uniforms

COUNT = 20_000


def test_the_same_names_draw_the_same_on_every_machine() -> None:
    assert uniforms(1, 7, "disconnect", 3) == [0.07188711436484851]
    assert uniforms(2, 7, "think", 3, 1) == [0.4802819382391874, 0.834614651482287]


@pytest.mark.parametrize("other", [(8, "think", 3), (7, "start", 3), (7, "think", 4), (7, "think", 3, 0)])
def test_other_names_draw_others(other: tuple[int, str, int]) -> None:
    seed, purpose, *of = other
    assert not set(uniforms(3, seed, purpose, *of)) & set(uniforms(3, 7, "think", 3))


def test_draws_are_uniform_and_independent() -> None:
    """Bounds are five standard errors: of a mean of uniform numbers, and of a correlation."""
    drawn = np.array([uniforms(3, 7, "think", number) for number in range(COUNT)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert drawn.mean(axis=0) == pytest.approx([0.5] * 3, abs=5 / np.sqrt(12 * COUNT))
    columns = np.corrcoef(np.column_stack([drawn[:-1], drawn[1:]]), rowvar=False)
    assert np.abs(columns - np.eye(6)).max() < 5 / np.sqrt(COUNT)
