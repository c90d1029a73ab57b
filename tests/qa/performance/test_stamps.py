"""The bench of kernel stamps joins log and truth, and reports both; its figures are not tested."""

import shutil

import numpy as np
import pytest

from bench.performance.load import Load
from bench.performance.stamps import (
    CASES,
    EVENT,
    QUICK,
    Case,
    Findings,
    Lateness,
    measure,
    percentiles,
    report,
    written,
)
from loadgen.testing.truth import Truth

# Answers end in another order than they began: request 1 is first, with tokens at 30 and 40 us.
TRUTH = Truth(
    id=np.array([b"stamps-1", b"stamps-0"]),
    arrival_ns=np.zeros(2, dtype=np.int64),
    starts=np.array([0, 2, 4]),
    plan_ns=np.zeros(4, dtype=np.int64),
    write_ns=np.array([30_000, 40_000, 10_000, 20_000]),
    written_ns=np.array([31_000, 41_000, 11_000, 21_000]),
    held_back=0,
    busy_share=0.1,
)
# Request, token, read, stamp, tokens behind it, bytes left.
EVENTS = np.array(
    [
        (0, 0, 25_000, 21_000, 1, 0),
        (0, 1, 25_000, 22_000, 0, 0),
        (1, 0, 50_000, 34_000, 0, 300),
        (1, 1, 60_000, 0, 0, 0),
    ],
    dtype=EVENT,
)


def test_an_event_has_the_size_of_the_struct_in_c() -> None:
    assert EVENT.itemsize == 32


def test_each_token_is_joined_with_its_own_write() -> None:
    assert written(EVENTS, TRUTH).tolist() == [10_000, 20_000, 30_000, 40_000]


def test_user_lateness_is_of_all_tokens_kernel_lateness_of_exact_ones() -> None:
    late = Lateness.of(EVENTS, TRUTH)
    assert late.user_us.tolist() == [15.0, 5.0, 20.0, 20.0]
    assert late.kernel_us.tolist() == [2.0], "of the others' stamps none is known to be their own"
    assert (late.together, late.left, late.unstamped) == (1, 1, 1)


def test_runs_are_put_together() -> None:
    once = Lateness.of(EVENTS, TRUTH)
    twice = Lateness.joined([once, once])
    assert len(twice.user_us) == 8
    assert twice.kernel_us.tolist() == [2.0, 2.0]
    assert (twice.together, twice.left, twice.unstamped) == (2, 2, 2)


def test_percentiles_without_a_stamp_are_not_available() -> None:
    assert percentiles(np.array([])) == "n/a"
    assert percentiles(np.arange(1001, dtype=np.float64)) == "500 / 990 / 999"


def test_tables_have_a_row_per_case() -> None:
    case = Case(Load("light", rate=200, count=1, tokens=4), burn_us=10)
    late_once = Lateness.of(EVENTS, TRUTH)
    found = Findings([late_once], with_us=[6.0, 9.0], without_us=[5.0, 6.0], busy=[0.25, 0.5])
    text = report({case: found})
    late, costs = (line.split(" | ") for line in text.splitlines() if "10 us of work" in line)
    assert [late[1].split(" / ")[0], late[2].split(" / ")[0]] == ["17.5", "2.00"]
    assert late[3:] == ["25.0", "25.0", "25.0 |"]
    assert [cell.split()[0] for cell in costs[1:]] == ["7.50", "5.50", "1.35", "37.5"]


def test_a_server_that_had_to_wait_is_noted() -> None:
    found = Findings([Lateness.of(EVENTS, TRUTH)], [6.0], [5.0], [0.25], held_back=3)
    assert "wait 3 times" in report({CASES[0]: found})


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_client_in_c_logs_every_token_of_every_load() -> None:
    found = measure(QUICK, 1)
    for case, findings in found.items():
        (late,) = findings.lateness
        assert len(late.user_us) == case.load.count * case.load.tokens
        assert late.user_us.min() > 0
        assert min(*findings.with_us, *findings.without_us) > case.burn_us
