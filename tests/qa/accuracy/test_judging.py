"""Judging: what a made-up run must not get away with."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from bench.accuracy.judging import Claim, stamps, truths
from bench.accuracy.measuring import Run
from loadgen.core.record import Record
from loadgen.testing.truth import Truth

WRITTEN_MS = (20, 30, 40)
TAKES_NS = 10_000  # a call of the server's that writes


def run_of(
    stamps_ms: Sequence[float],
    earliest: Sequence[tuple[int, float]] = (),
    written_ms: Sequence[float] = WRITTEN_MS,
    read_late_ms: float = 0.0,
) -> Run:
    """A run of one request that was due at 0 and left at 1 ms, stamped as given; ms."""
    record = Record(0, 1, len(written_ms), 0)
    record.sent = record.written = 1_000_000
    record.restore(
        [int(at * 1e6) for at in stamps_ms],
        earliest=[(i, int(at * 1e6)) for i, at in earliest],
        read_late=[int(read_late_ms * 1e6)] * len(stamps_ms),
    )
    write = np.array(written_ms) * 1_000_000
    truth = Truth(
        id=np.array([b"x-0"]),
        arrival_ns=np.array([1_100_000]),
        starts=np.array([0, len(write)]),
        plan_ns=write,
        write_ns=write,
        written_ns=write + TAKES_NS,
        held_back=0,
        busy_share=0.0,
    )
    snapshot = SimpleNamespace(counters={"user_stamped_events": 0})
    return Run(SimpleNamespace(snapshot=snapshot), [record], truth)  # type: ignore[arg-type]


def test_stamps_during_the_writes_are_met() -> None:
    assert stamps(run_of([20.005, 30.01, 40.0])).met


def test_exact_stamps_that_are_beyond_the_median_are_a_miss() -> None:
    assert not stamps(run_of([20.005, 30.03, 40.03])).met


def test_late_stamp_that_claims_to_be_exact_is_a_miss() -> None:
    found = stamps(run_of([20.005, 31.0, 40.005]))
    assert not found.met
    assert "1 of 3 outside" in found.measured


def test_late_stamp_with_its_interval_is_met() -> None:
    assert stamps(run_of([20.005, 31.0, 40.005], [(1, 29.0)])).met


@pytest.mark.parametrize(("read_late_ms", "misses"), [(9.0, 1), (11.0, 0)])
def test_token_beyond_a_congestion_window_may_leave_late(read_late_ms: float, misses: int) -> None:
    written_ms = range(20, 31)
    stamps_ms = [*(at + 0.005 for at in range(20, 30)), 31.0]
    found = stamps(run_of(stamps_ms, written_ms=written_ms, read_late_ms=read_late_ms))
    assert found.measured.count("outside of") == misses


def test_stamp_before_the_write_raises() -> None:
    with pytest.raises(AssertionError, match="before it was written"):
        stamps(run_of([20.005, 29.999, 40.005]))


def test_truth_is_bounded_by_the_calls_that_write() -> None:
    found = truths(run_of([20, 30, 40]))
    assert {
        name: (least.tolist(), greatest.tolist()) for name, (least, greatest) in found.items()
    } == {
        "ttft_due": ([20_000_000], [20_010_000]),
        "ttft_sent": ([19_000_000], [19_010_000]),
        "e2el_due": ([40_000_000], [40_010_000]),
        "e2el_sent": ([39_000_000], [39_010_000]),
        "tpot": ([9_995_000], [10_005_000]),
        "icl": ([9_990_000] * 2, [10_010_000] * 2),
    }


@pytest.mark.parametrize(("true_ms", "holds"), [(0.1, True), (0.2, True), (0.21, False)])
def test_claim_holds_up_to_its_bound(true_ms: float, holds: bool) -> None:
    assert Claim("icl", "p99", 10.0, 0.2, true_ms).holds is holds
