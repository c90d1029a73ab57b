"""The summary line: a run in one line that can be pasted into a chat."""

from array import array

import pytest

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.report.summary_line import summary_line
from loadgen.util.terminal_text import PLAIN, Screen
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import FOLLOWS
from tests.helpers import saved_json
from tests.helpers.run_facts import due_at, failed, measured, result, steady

RATE = RunSettings(request_rate=10.0)
TEN = [steady(i, due=i * 100) for i in range(10)]
EVERY_100_MS = due_at(*range(0, 1000, 100))


def said(settings=RATE, records=TEN, screen=PLAIN, schedule=EVERY_100_MS, **options):
    options["schedule"] = schedule
    return summary_line(saved_json.result(result(records, settings, **options)), screen)


def test_it_has_verdict_outcomes_rate_and_latencies():
    figures = "10/10 ok | 10 of 10 req/s | TTFT p50 20 p99 20 ms | TPOT 10 ms"
    assert said() == f"VALID (client at most 0.062 ms in this line) | {figures}"


def test_the_client_error_is_that_of_its_figures_and_never_rounded_down():
    data = result(TEN, RATE)
    errors = data["loadgen"]["client_error_ms"]
    for name in ("ttft_due", "tpot"):
        errors[name] = dict.fromkeys(errors[name], 0.2)
    errors["ttft_due"]["p99"] = 19.23
    errors["e2el_due"] = dict.fromkeys(errors["e2el_due"], 100.0)
    assert summary_line(saved_json.result(data)).startswith(
        "VALID (client at most 20 ms in this line) | "
    )


def test_checks_that_failed_are_named():
    checks = [
        Check(name, False, "1", "0", "wait", group="B")
        for name in ("late sends", "client error too large", "run cut short")
    ]
    assert said(checks=checks[:1]).startswith("SUSPECT: late sends (client at most ")
    assert said(checks=checks).startswith(
        "SUSPECT: late sends, client error too large and 1 more (client at most "
    )


def test_users_who_left_are_told_after_the_answers():
    gone = [failed(10, Outcome.DISCONNECTED)]
    assert " | 10/10 ok | 1 user left | " in said(
        RATE.replace(disconnect="10%@tokens=2"), records=[*TEN, *gone]
    )


def test_failures_come_first_with_their_ways():
    one = failed(10, Outcome.STATUS)
    assert said(records=[*TEN, one]).startswith(
        "NOT OK 1 of 11 failed (503: 1) | measured VALID (client at most "
    )
    allowed = RATE.replace(max_error_rate=0.2)
    assert said(allowed, [*TEN, one]).startswith(
        "OK 10 of 11 (503: 1) | measured VALID (client at most "
    )


def test_a_run_whose_users_all_left_says_that_none_succeeded():
    everybody = [failed(index, Outcome.DISCONNECTED) for index in range(3)]
    assert said(records=everybody).startswith("NOT OK no request succeeded | measured VALID")


def test_a_met_slo_follows_the_latencies():
    assert said(RATE.replace(slo="ttft_p50<1s,error_rate<1%")).split(" | ")[-1] == "SLO met"


def test_a_server_that_stopped_answering_comes_first_and_the_rate_is_that_until_then():
    data = result(TEN, RATE)
    data["loadgen"]["no_answer_since_s"] = 3.9
    first, second, _, rate, *_ = summary_line(saved_json.result(data)).split(" | ")
    assert first == "NO ANSWER from 3.9 s on"
    assert second.startswith("VALID")
    assert rate == "2.56 of 10 req/s until then"  # ten answers in 3.9 s


@pytest.mark.parametrize("records", [TEN, [*TEN, failed(10, Outcome.STATUS)]])
def test_a_missed_slo_that_decides_the_exit_code_comes_first(records):
    settings = RATE.replace(slo="tpot_mean<1ms", max_error_rate=0.2)
    first, second, *others = said(settings, records).split(" | ")
    assert first.startswith("SLO MISSED")
    assert second.startswith(("VALID", "OK 10 of 11"))
    assert not any("SLO" in each for each in others)


def test_failed_requests_come_before_a_missed_slo():
    parts = said(RATE.replace(slo="tpot_mean<1ms"), [*TEN, failed(10, Outcome.STATUS)]).split(" | ")
    assert parts[0].startswith("NOT OK 1 of 11 failed")
    assert parts[-1].startswith("SLO MISSED")


def test_doubts_and_the_simulator_come_last():
    cut = measured(TEN, partial="interrupted")
    assert said(records=cut, simulated=True).split(" | ")[-2:] == [
        "ended early: interrupted",
        "simulated engine",
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


def test_few_answers_show_only_the_asked_rate():
    assert " | asked 10 req/s | " in said(records=TEN[:9])
    assert " | asked 10 req/s" in said(records=[failed(0, Outcome.REFUSED)])


def test_on_a_screen_it_ends_between_parts_and_the_parts_are_the_same():
    lines = said(screen=Screen(columns=60)).splitlines()
    assert lines == [
        "VALID (client at most 0.062 ms in this line) | 10/10 ok |",
        "10 of 10 req/s | TTFT p50 20 p99 20 ms | TPOT 10 ms",
    ]
    assert " ".join(lines) == said()


@pytest.fixture(scope="module")
def mostly_refused():
    records = [*TEN, *(failed(i, Outcome.REFUSED) for i in range(10, 30))]
    return saved_json.result(result(records, RATE, schedule=EVERY_100_MS))


@pytest.mark.parametrize("columns", range(1, 120))
def test_no_line_is_wider_than_the_screen(mostly_refused, columns):
    lines = summary_line(mostly_refused, Screen(columns=columns)).splitlines()
    longest = max(map(len, summary_line(mostly_refused, PLAIN).split()))
    assert max(map(len, lines)) <= max(columns, longest + 2)


def test_colours_are_for_terminals_alone():
    assert "\x1b[" not in said()
    assert said(screen=Screen(has_colours=True)).startswith("\x1b[32mVALID")


def test_the_rate_of_sessions_is_not_that_of_their_turns():
    due_ns = [at for start in range(0, 1_000_000_000, 200_000_000) for at in (start, FOLLOWS)]
    schedule = Schedule(array("q", due_ns), 10**9)
    assert " | 5 sessions/s asked, 10 turns/s answered | " in said(
        RunSettings(request_rate=5.0), schedule=schedule
    )
