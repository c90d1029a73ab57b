"""The summary line: a run in one line that can be pasted into a chat."""

from array import array

import pytest

from loadgen.checks import PILE_UP, TOO_FEW_FOR_SLO, Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.document import terminal_writer
from loadgen.report.summary_line import answer, summary_line
from loadgen.util.terminal_text import PLAIN, Screen
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.helpers import saved_json
from tests.helpers.run_facts import due_at, failed, measured, result, steady

RATE = RunSettings(request_rate=10.0)
ELEVEN = [steady(i, due=i * 100) for i in range(11)]
EVERY_100_MS = due_at(*range(0, 1100, 100))


def said(settings=RATE, records=ELEVEN, screen=PLAIN, schedule=EVERY_100_MS, **options):
    options["schedule"] = schedule
    made = saved_json.result(result(records, settings, **options))
    return terminal_writer.join_parts(answer(made).parts, screen)


def test_it_has_state_outcomes_rate_latencies_and_the_verdict_on_the_measurement():
    figures = "10 req/s (target 10) | TTFT p50 20 ms | TPOT p50 10 ms"
    belief = "measurement VALID (timing error of loadgen at most 0.062 ms)"
    assert said() == f"OK | 11/11 ok | {figures} | {belief}"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(10, "TTFT mean 20 ms"), (11, "TTFT p50 20 ms"), (661, "TTFT p50 20 ms"), (662, "p99 20 ms")],
)
def test_a_percentile_of_too_few_requests_is_not_in_the_line(count, shown):
    records = [steady(i, due=i * 100) for i in range(count)]
    line = said(records=records, schedule=due_at(*range(0, count * 100, 100)))
    assert f"{shown} | TPOT" in line
    assert ("p99" in line) is (count >= 662)


def test_a_figure_that_the_client_may_have_moved_has_the_mark_of_the_table():
    data = result(ELEVEN, RATE)
    data["loadgen"]["client_error_ms"]["ttft_due"]["p50"] = 19.23
    assert " | TTFT p50 ~20 ms | TPOT p50 10 ms | " in summary_line(saved_json.result(data))


def test_the_client_error_is_that_of_its_figures_and_never_rounded_down():
    data = result(ELEVEN, RATE)
    errors = data["loadgen"]["client_error_ms"]
    for name in ("ttft_due", "tpot"):
        errors[name] = dict.fromkeys(errors[name], 0.2)
    errors["ttft_due"] |= {"p50": 19.23, "p99": 99.0}  # its p99 is of too few requests
    errors["e2el_due"] = dict.fromkeys(errors["e2el_due"], 100.0)
    line = summary_line(saved_json.result(data))
    assert line.endswith("measurement VALID (timing error of loadgen at most 20 ms)")


def test_checks_that_failed_are_named():
    checks = [
        Check(name, False, "1", "0", "wait", group="B")
        for name in ("requests sent late", "timing error too large", "run cut short")
    ]
    assert said(checks=checks[:1]).startswith("SUSPECT: requests sent late (1) | 11/11 ok | ")
    assert said(checks=checks).startswith(
        "SUSPECT: requests sent late (1), timing error too large, run cut short | "
    )
    assert said(checks=checks).endswith(" | timing error of loadgen at most 0.062 ms")
    late = Check("requests sent late", False, "4.8% late (lag p99 7 ms, max 9 ms)", "1%", "wait")
    assert said(checks=[late]).startswith("SUSPECT: requests sent late (4.8% late) | ")


def test_a_run_without_a_median_is_too_few_whatever_else_is_wrong():
    late = [Check("requests sent late", False, "1", "0", "wait", group="B")]
    line = said(records=ELEVEN[:3], checks=late)
    assert line.startswith("TOO FEW: 3 requests; a median needs at least 11 | 3/3 ok | ")
    assert " | measurement SUSPECT: requests sent late (" in line


def test_users_who_left_are_told_after_the_answers():
    gone = [failed(11, Outcome.DISCONNECTED)]
    assert " | 11/11 ok | 1 user left | " in said(
        RATE.replace(disconnect="10%@tokens=2"), records=[*ELEVEN, *gone]
    )


def test_failures_come_first_with_their_ways():
    one = failed(11, Outcome.STATUS)
    assert said(records=[*ELEVEN, one]).startswith(
        "FAILED: 1 of 12 requests failed (503: 1) | 10 req/s (target 10) | "
    )
    allowed = RATE.replace(max_error_rate=0.2)
    assert said(allowed, [*ELEVEN, one]).startswith("OK | 1 of 12 requests failed (503: 1) | ")


def test_where_no_request_succeeded_no_word_says_that_all_is_well():
    everybody = [failed(index, Outcome.DISCONNECTED) for index in range(3)]
    assert said(records=everybody).startswith("FAILED: no request ended")
    refused = [failed(index, Outcome.STATUS) for index in range(3)]
    for line in (said(records=everybody), said(records=refused)):
        assert "VALID" not in line
        assert "OK" not in line


def test_a_met_slo_follows_the_answers():
    slo = RATE.replace(slo="ttft_mean<1s,error_rate<1%")
    assert said(slo).startswith("OK | 11/11 ok | SLO met: ttft_mean<1s, error_rate<1% | ")


def test_an_slo_on_a_percentile_of_too_few_requests_is_not_met():
    few = Check(TOO_FEW_FOR_SLO, False, "10 values, and p99 needs 662", "662", "", group="D")
    slo = RATE.replace(slo="ttft_p99<1s")
    line = said(slo, checks=[few])
    assert line.startswith("TOO FEW: 10 values, and p99 needs 662 | 11/11 ok | 10 req/s ")
    missed = said(slo.replace(slo="ttft_p99<1s,tpot_mean<1ms"), checks=[few])
    assert missed.startswith("SLO MISSED: tpot_mean<1ms (10 ms) | 11/11 ok | ")


def test_overload_is_the_state_of_an_open_loop_alone():
    rising = [Check(PILE_UP, False, "1 to 90", "a rise of 9", "lower the rate", group="D")]
    assert said(checks=rising).startswith(
        "OVERLOADED: the server completed 10 of 10 req/s | 11/11 ok | "
    )
    closed = result(ELEVEN, RATE, checks=rising)
    closed["loadgen"]["closed_loop"] = True
    assert summary_line(saved_json.result(closed)).startswith("SUSPECT: requests pile up (1 to 90)")


def test_a_server_that_stopped_answering_comes_first_and_the_rate_is_that_until_then():
    data = result(ELEVEN, RATE)
    data["loadgen"]["no_answer_since_s"] = 3.9
    first, second, rate, *_ = summary_line(saved_json.result(data)).split(" | ")
    assert first == "FAILED: the server stopped answering at 3.9 s"
    assert second == "11/11 ok"
    assert rate == "2.82 req/s before that (target 10)"  # eleven answers in 3.9 s


@pytest.mark.parametrize("records", [ELEVEN, [*ELEVEN, failed(11, Outcome.STATUS)]])
def test_a_missed_slo_that_decides_the_exit_code_comes_first(records):
    settings = RATE.replace(slo="tpot_mean<1ms,error_rate<20%", max_error_rate=0.2)
    first, second, *others = said(settings, records).split(" | ")
    assert first == "SLO MISSED: tpot_mean<1ms (10 ms)"
    assert second in ("11/11 ok", "1 of 12 requests failed (503: 1)")
    assert not any("SLO" in each for each in others)


def test_failed_requests_come_before_a_missed_slo():
    parts = said(RATE.replace(slo="tpot_mean<1ms"), [*ELEVEN, failed(11, Outcome.STATUS)]).split(
        " | "
    )
    assert parts[0].startswith("FAILED: 1 of 12 requests failed")
    assert parts[1].startswith("SLO MISSED")


def test_doubts_and_the_simulator_come_last():
    cut = measured(ELEVEN, partial="interrupted")
    assert said(records=cut, simulated=True).split(" | ")[-2:] == [
        "PARTIAL: interrupted",
        "SIMULATED, not a real server",
    ]


@pytest.mark.parametrize("settings", [RunSettings(), RunSettings(max_concurrency=4)])
def test_bursts_and_closed_loops_show_their_throughput(settings):
    """The rate of answers that end in waves would be too high: here, a wave of four in 0.1 s."""
    waves = [steady(i, due=i // 4 * 100) for i in range(12)]
    assert " | 50 req/s | " in said(settings, waves, schedule=due_at(*[0] * 12))


def test_a_ramp_shows_its_rate_of_answers_alone():
    assert " | 10 req/s | " in said(
        RunSettings(ramp_up_strategy="linear", ramp_up_start_rps=1.0, ramp_up_end_rps=5.0)
    )


def test_few_answers_show_only_the_requested_rate():
    assert " | 10 req/s requested | " in said(records=ELEVEN[:9])
    assert "req/s" not in said(records=[failed(0, Outcome.REFUSED)])


def test_on_a_screen_it_ends_between_parts_and_the_parts_are_the_same():
    lines = said(screen=Screen(columns=60)).splitlines()
    assert lines == [
        "OK | 11/11 ok | 10 req/s (target 10) | TTFT p50 20 ms",
        "    | TPOT p50 10 ms",
        "    | measurement VALID (timing error of loadgen at most",
        "    0.062 ms)",
    ]
    assert " ".join(map(str.strip, lines)) == said()


@pytest.fixture(scope="module")
def mostly_refused():
    records = [*ELEVEN, *(failed(i, Outcome.REFUSED) for i in range(11, 31))]
    return saved_json.result(result(records, RATE, schedule=EVERY_100_MS))


@pytest.mark.parametrize("columns", range(1, 120))
def test_no_line_is_wider_than_the_screen(mostly_refused, columns):
    screen = Screen(columns=columns)
    lines = terminal_writer.join_parts(answer(mostly_refused).parts, screen).splitlines()
    longest = max(map(len, summary_line(mostly_refused).split()))
    assert max(map(len, lines)) <= max(columns, longest + 2)


def test_colours_are_for_terminals_alone():
    assert "\x1b[" not in said()
    assert said(screen=Screen(has_colours=True)).startswith("\x1b[32mOK\x1b[0m")


def test_the_rate_of_sessions_is_not_that_of_their_turns():
    due_ns = [at for start in range(0, 1_200_000_000, 200_000_000) for at in (start, FOLLOWS)]
    schedule = Schedule(array("q", due_ns), 10**9)
    assert " | 5 sessions/s requested, 10 turns/s answered | " in said(
        RunSettings(request_rate=5.0), schedule=schedule
    )
