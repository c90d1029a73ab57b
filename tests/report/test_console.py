"""The console report: loadgen's own rows below the block of `vllm bench serve`."""

import re

import pytest

from loadgen.checks import PILE_UP, TOO_FEW_FOR_SLO, Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from tests.helpers.console_lines import cells, section, table
from tests.helpers.console_reports import (
    RUN,
    below,
    red,
)
from tests.helpers.run_facts import answered, failed, measured, per_event, result, steady
from tests.helpers.saved_json import render


def test_percentiles_of_few_values_are_marked_with_what_they_need():
    lines = below(records=[steady(i, ttft=20 + i, n=1) for i in range(100)])
    row = table(lines, "Latency (ms)")["TTFT from scheduled send"]
    assert [cell.endswith("*") for cell in row] == [False, False, False, True, False, False]
    (note,) = [line for line in lines if line.startswith("*")]
    assert note == "* too few requests: p99 needs 662"


def test_rows_that_the_client_may_have_moved_are_marked():
    records = [steady(i, due=i * 100, n=20) for i in range(100)]
    for record in records:
        record.restore([], earliest=[(10, record.stamps[10] - 8_000_000)])
    lines = below(records=records)
    marked = [title for title in table(lines, "Latency (ms)") if title.endswith("~")]
    assert marked == ["ICL ~"]
    (note,) = [line for line in lines if line.startswith("~")]
    assert note.startswith("~ ICL: timing error of loadgen at most 8.0")


def test_gaps_are_marked_by_their_requests_and_have_no_interval():
    lines = below(records=[steady(i, n=700) for i in range(100)])
    row = table(lines, "Latency (ms)")["ICL"]
    assert [cell.endswith("*") for cell in row] == [False, False, False, True, False, False]
    (note,) = [line for line in lines if line.startswith("*")]
    assert "ICL" not in note


def test_icl_is_printed_and_itl_only_where_it_differs():
    lines = below(records=[per_event((20, 1), (40, 5))])
    rows = table(lines, "Latency (ms)")
    assert (rows["ITL"][0], rows["ICL"][0]) == ("5.000", "20.00")
    assert sum(line.startswith("ICL: inter-chunk latency") for line in lines) == 1
    assert "ITL" not in table(below(), "Latency (ms)")


def test_marks_do_not_shift_the_columns():
    records = [steady(i, n=3 if i < 5 else 1) for i in range(700)]
    lines = below(records=records)
    (plain,) = [line for line in lines if line.startswith("TTFT from scheduled send  ")]
    (marked,) = [line for line in lines if line.startswith("TPOT  ")]
    assert ("*" in plain, marked.count("*")) == (False, 3)
    ends = [
        [found.end() for found in re.finditer(r"\d+\b(?!\.)", line)] for line in (plain, marked)
    ]
    assert ends[0] == ends[1]


def test_enough_values_need_no_mark():
    assert not any("*" in line for line in below(records=[steady(i, n=3) for i in range(700)]))


def test_outcomes_are_counted_with_an_example_of_each_failure_in_one_line():
    records = [steady(0), failed(1, Outcome.STATUS, detail="two\nlines \x1b[31m" + "x y " * 300)]
    lines = below(records=records)
    counted = {"ok": ["1", "50.00%"], "status(503)": ["1", "50.00%"]}
    assert table(lines, "outcome ") == counted
    (example,) = [
        line
        for line in lines
        if line.startswith("status(503): first seen at request 1: two lines [31mx y x")
    ]
    assert example.endswith("...")
    assert len(example) < 210
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("form", ["brief", "block"])
@pytest.mark.parametrize("answers", [[], [steady(0)]])
def test_failures_of_a_short_report_are_an_item_each_and_the_next_step_is_their_advice(
    form, answers
):
    records = [*answers, failed(1, Outcome.STATUS), failed(2, Outcome.REFUSED)]
    records.append(failed(3, Outcome.STATUS))  # the most frequent way comes first
    lines = render(result(records), form=form).splitlines()
    (state, *_) = (number for number, line in enumerate(lines) if line.startswith("FAILED: "))
    assert lines[state + 1 : state + 4] == [
        "next: read the log of the server; check that the server is running and that --base-url "
        "is right",
        "- status(503): first seen at request 1: why",
        "- refused or closed without a response: first seen at request 2 (waiting): why",
    ]


def test_failures_of_a_run_that_did_not_fail_have_their_advice():
    records = [*RUN, failed(30, Outcome.STATUS)]
    settings = RunSettings(max_error_rate=0.5, slo="ttft_p50<1ms")
    lines = render(result(records, settings), form="brief").splitlines()
    following = next(number for number, line in enumerate(lines) if line.startswith("next: "))
    assert lines[following].startswith("next: lower the load; find the highest ")
    assert lines[following + 1 : following + 3] == [
        "- status(503): first seen at request 30: why",
        "  -> read the log of the server",
    ]


@pytest.mark.parametrize("form", ["brief", "block", "full"])
def test_a_run_that_failed_is_not_told_to_send_more_requests(form):
    few = Check(TOO_FEW_FOR_SLO, False, "1 value", "662", "send more requests", group="D")
    records = [steady(0), failed(1, Outcome.STATUS), failed(2, Outcome.STATUS)]
    shown = render(result(records, RunSettings(slo="ttft_p99<1s"), checks=[few]), form=form)
    assert "\nFAILED: " in shown
    assert "send more requests" not in shown


@pytest.mark.parametrize("form", ["brief", "block"])
def test_an_overloaded_run_says_what_to_do_at_once(form):
    pile = Check(
        PILE_UP, False, "from 3 to 90 in 9 s", "a rise of 10", "lower the rate", counts=False
    )
    made = result(RUN, RunSettings(request_rate=10.0), checks=[pile])
    made["loadgen"]["overloaded"] = True
    lines = render(made, form=form).splitlines()
    following = lines.index("next: lower the rate")
    assert lines[following - 1].startswith("OVERLOADED")
    assert lines[following + 1] == "- requests pile up: from 3 to 90 in 9 s"
    assert "-> lower the rate" not in "".join(lines)


def test_rows_of_a_trace_that_were_left_out_are_counted():
    lines = below(prompts={"rows_left_out": 3})
    assert "Rows of the trace without input or output tokens, left out: 3" in lines
    assert not any("of the trace" in line for line in below(prompts={"rows_left_out": 0}))


def test_hashes_are_in_the_file_alone():
    assert not any(
        "ab" * 32 in line for line in below(prompts={"requests": 24, "sha256": "ab" * 32})
    )


def test_no_line_is_wider_than_100_columns_and_no_word_is_broken():
    records = [steady(0), failed(1, Outcome.STATUS, detail="many words " * 30)]
    made = result(records, checks=[red()], prompts={"rows_left_out": 3})
    rows = render(made).splitlines()
    # The answer is for pasting, and so is the next step.
    wrapped = [row for row in rows if not row.startswith(("FAILED: ", "next: "))]
    assert max(map(len, wrapped)) <= 100
    assert "many words " * 10 in " ".join(line.strip() for line in rows)


def test_chosen_clock_is_printed_first():
    records = [answered(due=0, sent=5, tokens=[25, 35])]
    for clock, first, second in (
        ("due", "TTFT from scheduled send", "TTFT from actual send"),
        ("sent", "TTFT from actual send", "TTFT from scheduled send"),
    ):
        lines = below(RunSettings(latency_from=clock), records)
        rows = {title.rstrip(" ~"): row for title, row in table(lines, "Latency (ms)").items()}
        assert [*rows].index(first) + 1 == [*rows].index(second)
        for title, value in (
            ("TTFT from scheduled send", "25.00"),
            ("TTFT from actual send", "20.00"),
        ):
            assert [each.rstrip("*") for each in rows[title]] == [*[value] * 5, "1"]


def test_the_columns_are_mean_percentiles_max_and_the_number_of_values():
    (header,) = [
        line
        for line in below(RunSettings(metric_percentiles="99.9"))
        if line.startswith("Latency (ms)")
    ]
    columns = ["mean", "p50", "p90", "p99", "p99.9", "max", "count"]
    assert cells(header) == ["Latency (ms)", *columns]


def test_table_prints_n_a_without_a_value():
    rows = table(below(records=[steady(n=1)]), "Latency (ms)")
    assert rows["TPOT"] == [*["n/a"] * 5, "0"]


def test_how_tokens_were_counted_is_said_with_what_usage_and_stream_disagree_on():
    records = [answered(0, reasoning=[20], tokens=[30], counts={"completion_tokens": 5})]
    lines = below(records=records)
    rows = table(lines, "of requests that are ok")
    assert rows["output, counted by usage"] == ["5"]
    assert rows["of that, events of reasoning"] == ["1"]
    assert (
        "Usage and stream differ: 3 tokens counted but not seen as events, 0 events beyond the "
        "count" in lines
    )
    lines = below(records=[steady()])
    rows = table(lines, "of requests that are ok")
    assert rows["output, counted by events"] == ["3"]
    assert "of that, events of reasoning" not in rows
    assert not any("differ" in line for line in lines)


def test_a_run_in_which_nothing_succeeded_has_no_counts_of_tokens():
    lines = below(records=[failed(0)])
    assert section(lines, "Tokens: ") == ["No request succeeded."]
    assert section(below(records=[steady(0), failed(1)]), "Tokens: ") != ["No request succeeded."]


def test_token_weighted_tpot_stands_beside_the_mean():
    records = [answered(0, tokens=[i * 10 for i in range(1, 102)]), answered(1, tokens=[20, 120])]
    assert "TPOT weighted by tokens: 10.891 ms" in below(records=records)


def test_limits_are_shown_as_met_or_missed():
    lines = below(
        RunSettings(slo="ttft_p99<1s,tpot_mean<1ms,error_rate<1%,ttfo_p50<1ms"),
        [steady(i) for i in range(3)],
    )
    assert "SLO ttft_p99<1s: met (20 ms)" in lines
    assert "SLO tpot_mean<1ms: MISSED (10 ms)" in lines
    assert "SLO error_rate<1%: met (0%)" in lines


def test_a_limit_that_was_written_without_a_unit_is_shown_with_the_one_it_has():
    records = [steady(0), steady(1), failed(2, Outcome.STATUS)]
    lines = below(RunSettings(slo="ttft_p50<25,error_rate<=0.5"), records)
    assert "SLO ttft_p50<25ms: met (20 ms)" in lines
    assert "SLO error_rate<=0.5: met (33.33%)" in lines


def test_a_limit_on_what_was_not_measured_is_missed():
    assert "SLO tpot_mean<1s: MISSED (n/a)" in below(RunSettings(slo="tpot_mean<1s"), [steady(n=1)])


@pytest.mark.parametrize(
    ("line", "settings", "options"),
    [
        ("PARTIAL: interrupted.", {}, {"records": measured([steady()], partial="interrupted")}),
        ("Closed loop: ", {"max_concurrency": 4}, {}),
        ("SIMULATED ENGINE: ", {}, {"simulated": True}),
        ("Goodput from scheduled send: ", {"goodput": ("ttft:5",)}, {}),
    ],
)
def test_note_is_printed_only_where_it_applies(line, settings, options):
    assert any(row.startswith(line) for row in below(RunSettings(**settings), **options))
    assert not any(
        row.startswith(line) for row in below(RunSettings(request_rate=5.0, max_concurrency=4))
    )


def test_connections_and_the_loop_are_told_as_far_as_they_are_known():
    def said(**client):
        (line,) = [line for line in below(client=client) if line.startswith("Client: ")]
        return line

    assert (
        said()
        == "Client: loop 25% busy, 0 connections opened before the clock, 0 requests waited for one"
    )
    assert said(wall_s=None, busy_share=None) == "Client: 0 requests waited for a connection"


@pytest.mark.parametrize(("reused", "told"), [(False, True), (True, False), (None, False)])
def test_unused_connection_reuse_is_printed_if_known(reused, told):
    lines = below(client={"connections_reused": reused})
    assert any("No connection was used twice" in line for line in lines) is told


def test_a_ramp_under_a_cap_is_no_closed_loop():
    ramp = RunSettings(
        ramp_up_strategy="linear", ramp_up_start_rps=1.0, ramp_up_end_rps=5.0, max_concurrency=4
    )
    assert not any(row.startswith("Closed loop") for row in below(ramp))
