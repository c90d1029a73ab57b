"""Paces are drawn by seed and number, with the requested means."""

from typing import Any

import numpy as np
import pytest

from loadgen.errors import BadInput
from loadgen.testing.metronome import SHAPES, Pace

MS = 1_000_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pace_is_a_function_of_seed_and_number(shape: str) -> None:
    pace = Pace(shape=shape, seed=3)
    assert np.array_equal(pace.offsets_ns(7, 20), pace.offsets_ns(7, 20))
    if shape != "constant":
        assert not np.array_equal(pace.offsets_ns(7, 20), pace.offsets_ns(8, 20))
        assert not np.array_equal(
            pace.offsets_ns(7, 20), Pace(shape=shape, seed=4).offsets_ns(7, 20)
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_longer_answer_begins_as_a_shorter_one(shape: str) -> None:
    pace = Pace(shape=shape)
    assert np.array_equal(pace.offsets_ns(7, 20)[:5], pace.offsets_ns(7, 5))


@pytest.mark.integration
@pytest.mark.parametrize("shape", SHAPES)
def test_times_have_their_means(shape: str) -> None:
    pace = Pace(shape=shape, first_ms=50.0, gap_ms=10.0)
    gaps = np.diff(pace.offsets_ns(1, 200_000))
    assert gaps.min() >= 0
    assert np.mean(gaps) == pytest.approx(10 * MS, rel=0.02)
    firsts = [pace.offsets_ns(number, 1)[0] for number in range(4_000)]
    assert np.mean(firsts) == pytest.approx(50 * MS, rel=0.1)


def test_shapes_differ_in_their_tails() -> None:
    gaps = {
        shape: np.diff(Pace(shape=shape, gap_ms=10.0).offsets_ns(1, 100_000)) / MS
        for shape in SHAPES
    }
    assert set(gaps["constant"].round(3)) == {10.0}
    assert np.std(gaps["exponential"]) == pytest.approx(10.0, rel=0.05)
    assert np.std(np.log(gaps["lognormal"])) == pytest.approx(0.5, rel=0.05)
    slow = gaps["bimodal"] > 20
    assert np.mean(slow) == pytest.approx(0.1, abs=0.01)
    assert np.median(gaps["bimodal"][slow]) == pytest.approx(
        10 * np.median(gaps["bimodal"][~slow]), rel=1e-3
    )


def test_a_queue_plans_one_service_time() -> None:
    assert Pace(first_ms=2.0, queue=True).offsets_ns(0, 50).tolist() == [2 * MS]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"shape": "uniform"}, "shape"),
        ({"first_ms": -1}, "first_ms"),
        ({"gap_ms": float("nan")}, "gap_ms"),
        ({"spread": "wide"}, "spread"),
        ({"queue": 1}, "queue"),
        ({"seed": 0.5}, "seed"),
        ({"speed": 1}, "metronome"),
        ("fast", "metronome"),
    ],
)
def test_invalid_pace_is_refused_by_field(fields: Any, named: str) -> None:
    with pytest.raises(BadInput) as refused:
        Pace().changed(fields)
    assert refused.value.field == named
