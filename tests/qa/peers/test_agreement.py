"""Two results under the same names must agree within 2 % or a millisecond where they mean the
same.
"""

import pytest

from bench.peers.agreement import (
    AGREE,
    DISAGREE,
    FROM_DUE,
    NOT_TOLD,
    Kept,
    Metric,
    Row,
    kept,
    metrics,
    rows,
    verdict_text,
)


@pytest.mark.parametrize(
    ("key", "theirs", "ours", "agrees"),
    [
        ("mean_e2el_ms", 500.0, 510.0, True),  # 2 %
        ("mean_e2el_ms", 500.0, 510.1, False),
        ("mean_tpot_ms", 5.0, 6.0, True),  # a millisecond, though 20 %
        ("mean_tpot_ms", 5.0, 3.9, False),
        ("total_output_tokens", 100.0, 102.0, True),
        ("total_output_tokens", 10.0, 10.5, False),  # a millisecond is none of these
        ("failed", 0.0, 0.0, True),
        ("failed", 0.0, 1.0, False),
    ],
)
def test_two_figures_agree(key: str, theirs: float, ours: float, agrees: bool) -> None:
    row = Row(Metric(key, key), theirs, ours, ours - theirs)
    assert row.judgement == row.cells[-1] == (AGREE if agrees else DISAGREE)


def test_a_figure_that_one_does_not_tell_agrees_with_none() -> None:
    row = Row(Metric("mean_ttft_ms", "mean TTFT (ms)"), None, 20.0)
    assert row.cells == ("mean TTFT (ms)", "n/a", "20.0", "n/a", "**DISAGREE**")


def test_where_the_meaning_differs_the_reason_stands_in_place_of_a_judgement() -> None:
    row = Row(Metric("duration", "duration (s)", "another clock"), 10.0, 5.0, -5.0)
    assert row.cells == ("duration (s)", "10.0", "5.00", "-5.00, -50.0 %", "another clock")


def test_the_latencies_that_mean_the_same() -> None:
    plain = {metric.key for metric in metrics(chat=False, judged=True) if not metric.differs}
    chat = {metric.key for metric in metrics(chat=True, judged=True) if not metric.differs}
    capped = {metric.key for metric in metrics(chat=False, judged=False) if not metric.differs}
    assert {"median_ttft_ms", "p99_tpot_ms", "mean_itl_ms", "median_e2el_ms"} <= plain
    assert {key for key in chat if key.endswith("_ms")} == {
        key for key in plain if key.endswith("_e2el_ms")
    }
    assert capped == {"completed", "failed", "total_input_tokens", "total_output_tokens"}


def runs(*values: float) -> list[Kept]:
    return [Kept({"mean_e2el_ms": value}, 0.0) for value in values]


def test_rows_hold_medians_of_the_quiet_runs_and_differences_of_quiet_rounds() -> None:
    theirs = [*runs(100.0, 300.0), Kept({"mean_e2el_ms": 9900.0}, 9.0)]
    (row,) = rows([Metric("mean_e2el_ms", "E2EL")], theirs, runs(101.0, 303.0, 202.0))
    assert (row.theirs, row.ours, row.apart) == (200.0, 202.0, 2.0)


@pytest.mark.parametrize(
    ("ours", "judgement"),
    [
        ((101.0, 149.0, 99.0, 120.0), AGREE),
        # in every round, though the server varies by half
        ((110.0, 160.0, 110.0, 130.0), DISAGREE),
        ((90.0, 190.0, 100.0, 125.0), NOT_TOLD),  # as much, but in one round alone
    ],
)
def test_difference_is_judged_only_where_rounds_agree(
    ours: tuple[float, ...], judgement: str
) -> None:
    (row,) = rows([Metric("mean_e2el_ms", "E2EL")], runs(100.0, 150.0, 100.0, 120.0), runs(*ours))
    assert row.judgement == judgement


def test_the_interval_is_that_of_a_paired_test() -> None:
    (row,) = rows([Metric("mean_e2el_ms", "E2EL")], runs(10.0, 20.0, 30.0), runs(11.0, 22.0, 33.0))
    assert (row.apart, row.within) == (2.0, pytest.approx(4.303 / 3**0.5, rel=1e-3))
    assert row.cells[3] == "+2.00 ± 2.48, +10.0 %"


def test_single_round_shows_no_difference() -> None:
    (row,) = rows([Metric("mean_e2el_ms", "E2EL")], runs(100.0), runs(150.0))
    assert row.judgement == NOT_TOLD
    assert row.cells[3] == "+50.00, +50.0 %"


def test_times_from_due_are_made_of_what_each_tells() -> None:
    theirs = kept(
        {"ttfts": [0.02, 0.04], "queue_times": [0.0, 0.1], "completed": 2, "label": None}, 1.0
    )
    assert theirs.data == {"completed": 2.0, FROM_DUE: pytest.approx(80.0)}
    own = {"verdict": "VALID", "checks": [], "latency_ms": {"ttft_due": {"mean": 80.5}}}
    ours = kept({"loadgen": own}, 1.0)
    assert ours.data == {FROM_DUE: 80.5}
    assert ours.says == "VALID"


def test_verdict_has_what_was_measured_of_each_check_that_decided_it() -> None:
    failed = {"name": "requests sent late", "ok": False, "counts": True, "value": "2.5% late"}
    note = failed | {"name": "too few for percentiles", "counts": False}
    own = {"verdict": "SUSPECT", "checks": [failed, note, failed | {"ok": True}]}
    assert verdict_text(own) == "SUSPECT (requests sent late: 2.5% late)"
