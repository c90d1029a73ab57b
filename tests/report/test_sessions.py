"""Turns have the figures of the requests at their place in a session; a session takes from its
start to its end.
"""

from array import array
from collections.abc import Sequence

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.run_data import RunData
from loadgen.report import render
from loadgen.report.result import RunResult
from loadgen.report.result.request_groups import SessionTimes, Turn
from loadgen.report.sections import groups
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.helpers.console_lines import cells, printed, table, unwrapped
from tests.helpers.run_facts import failed, run_data, steady


def run_of(records: Sequence[Record], due: Sequence[int]) -> RunData:
    return run_data(
        records,
        schedule=Schedule(array("q", [at * 1_000_000 if at >= 0 else at for at in due]), 10**9),
    )


TWO_SESSIONS = run_of(
    [
        steady(0, due=0, ttft=100, n=1),
        steady(1, due=300, ttft=20, n=1),
        steady(2, due=50, ttft=200, n=1),
        steady(3, due=500, ttft=40, n=1),
        steady(4, due=900, ttft=60, n=1),
    ],
    [0, FOLLOWS, 50, FOLLOWS, FOLLOWS],
)


def test_a_turn_has_the_latencies_of_all_sessions() -> None:
    first, second, third = Turn.each(TWO_SESSIONS)
    assert [turn.turn for turn in (first, second, third)] == [1, 2, 3]
    assert [turn.requests for turn in (first, second, third)] == [2, 2, 1]
    assert [turn.ttft_ms.mean for turn in (first, second, third)] == pytest.approx([150, 30, 60])


def test_a_session_takes_from_due_of_its_first_turn_to_the_end_of_its_last_answer() -> None:
    times = SessionTimes.of(TWO_SESSIONS)
    assert times is not None
    assert (times.count, times.complete, times.turns_mean) == (2, 2, 2.5)
    ends = [record_end - start for record_end, start in ((320, 0), (960, 50))]
    # A response ends a little after its last token.
    assert times.time_ms.mean == pytest.approx(sum(ends) / 2, abs=15)


def test_a_session_with_a_turn_that_failed_is_not_complete() -> None:
    times = SessionTimes.of(run_of([steady(0, due=0), failed(1, due=100)], [0, FOLLOWS]))
    assert times is not None
    assert (times.count, times.complete, times.time_ms.p50) == (1, 0, None)


def test_turns_whose_users_left_have_a_column_of_their_own() -> None:
    run = run_of([steady(0, due=0), failed(1, Outcome.DISCONNECTED, due=100)], [0, FOLLOWS])
    first, second = Turn.each(run)
    assert [(turn.ok, turn.failed, turn.left) for turn in (first, second)] == [(1, 0, 0), (0, 0, 1)]
    _, head, *rows = printed(groups.blocks(RunResult.of(run, [])))
    assert cells(head)[:5] == ["turn", "requests", "ok", "failed", "left"]
    assert [cells(row)[:5] for row in rows[:2]] == [
        ["1", "1", "1", "0", "0"],
        ["2", "1", "0", "0", "1"],
    ]


def with_cached(record: Record, cached: int, prompt: int) -> Record:
    record.cached_tokens, record.prompt_tokens = cached, prompt
    return record


def test_turns_have_the_share_of_their_prompt_tokens_that_came_from_the_cache() -> None:
    first, second = with_cached(steady(0, due=0), 0, 100), with_cached(steady(1, due=300), 96, 120)
    other, uncounted = with_cached(steady(2, due=50), 60, 200), steady(3, due=400)
    run = run_of([first, second, other, uncounted], [0, FOLLOWS, 50, FOLLOWS])
    assert [turn.cached_share for turn in Turn.each(run)] == [
        pytest.approx(60 / 300),
        pytest.approx(0.8),
    ]
    lines = printed(groups.blocks(RunResult.of(run, [])))
    assert [cells(line)[:5] for line in lines[1:4]] == [
        ["turn", "requests", "ok", "failed", "cached"],
        ["1", "2", "2", "0", "20.0%"],
        ["2", "2", "2", "0", "80.0%"],
    ]


def test_turns_of_a_server_that_counts_no_cached_tokens_have_no_such_column() -> None:
    assert [turn.cached_share for turn in Turn.each(TWO_SESSIONS)] == [None] * 3
    lines = printed(groups.blocks(RunResult.of(TWO_SESSIONS, [])))
    assert not any("cached" in line for line in lines)


def test_single_requests_are_no_sessions() -> None:
    run = run_of([steady(0, due=0), steady(1, due=10)], [0, 10])
    assert (Turn.each(run), SessionTimes.of(run)) == ([], None)


def test_the_console_has_a_row_for_each_turn_and_a_line_of_the_sessions() -> None:
    title, head, *rows, sessions = printed(groups.blocks(RunResult.of(TWO_SESSIONS, [])))
    assert title == "Turns of sessions; latencies are p50 / p99 in ms from scheduled send"
    assert cells(head) == ["turn", "requests", "ok", "failed", "TTFT", "TPOT", "E2EL"]
    assert [cells(row)[:4] for row in rows] == [
        ["1", "2", "2", "0"],
        ["2", "2", "2", "0"],
        ["3", "1", "1", "0"],
    ]
    assert sessions.startswith(
        "2 of 2 sessions complete, 2.5 turns planned on average, median time of a session "
    )


def test_many_turns_are_cut_in_a_short_report() -> None:
    found = RunResult.of(
        run_of([steady(i, due=100 * i) for i in range(25)], [0, *[FOLLOWS] * 24]), []
    )
    for form in ("brief", "block"):
        lines = unwrapped(render(found, form=form).splitlines())
        assert [*table(lines, "turn ")] == [str(turn) for turn in range(1, 21)]
        assert "and 5 more turns in the JSON (loadgen.turns)" in lines
    lines = unwrapped(render(found).splitlines())
    assert [*table(lines, "turn ")] == [str(turn) for turn in range(1, 26)]
    assert not any("more turns" in line for line in lines)
