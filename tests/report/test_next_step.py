"""The next step after a run: one sentence that is true and can be done."""

from collections.abc import Iterable
from typing import Any

import pytest

from loadgen.checks import PILE_UP, SERVER_HUNG, TOO_FEW_FOR_SLO, Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.report.run_state import State, state_of
from loadgen.report.sections.next_step import ADVICE, after_run, on_failures, once_valid
from tests.helpers import saved_json
from tests.helpers.run_facts import due_at, failed, result, steady
from tests.report.test_run_state import random_result

FEW = Check(
    TOO_FEW_FOR_SLO, False, "3 values", "at least 662", "send 662 requests or more", allowed=662.0
)
PILE = Check(PILE_UP, False, "from 1 to 90", "a rise of 9", "lower the rate below 9 req/s")
LATE = Check("requests sent late", False, "9 %", "1 %", "free a core")
ENOUGH = 662  # requests, for a p99
AS_THEY_WERE = "with the other flags as they were"


def ok(count: int) -> list[Record]:
    return [steady(index, due=index * 100) for index in range(count)]


def step(
    records: Iterable[Record] = (), *checks: Check, overloaded: bool = False, **settings: Any
) -> str:
    """The next step after a run of some records at 10 req/s."""
    requests = list(records)
    times = due_at(*range(0, 100 * max(len(requests), 1), 100))
    asked = RunSettings(request_rate=10.0).replace(**settings)
    data = result(requests, asked, checks=checks, schedule=times)
    data["loadgen"]["overloaded"] = overloaded
    return after_run(saved_json.result(data))


def test_a_failed_run_has_the_advice_on_its_failures_the_most_frequent_first() -> None:
    assert on_failures({"ok": 9, "status(503)": 1, "status(401)": 50}) == (
        f"{ADVICE['status(401)']}; {ADVICE['status(5']}"
    )
    assert step([failed(0, Outcome.REFUSED)]) == ADVICE["refused"]
    assert step() == "let a run go on until requests end"


def test_the_log_is_read_at_a_time_of_the_clock_where_the_start_is_known() -> None:
    data = result(ok(11), RunSettings(request_rate=10.0))
    data["loadgen"]["no_answer_since_s"] = 4.6
    told = after_run(saved_json.result(data))
    assert told == "read the log of the server at 4.6 s of the run, and start it again"
    data["benchmark_start_time_unix"] = 1735786800.0
    told = after_run(saved_json.result(data))
    assert told.startswith("read the log of the server at about 03:00:04 UTC (4.6 s into the run)")


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        (["requests sent late"], "repeat on an idle machine; then use it"),
        (["other programs used the CPU", "x"], "repeat on an idle machine; then use it"),
        (["token counts differ"], "remove the reasons of SUSPECT, repeat; then use it"),
    ],
)
def test_suspect_runs_are_to_be_repeated_before_their_answer_is_used(
    checks: list[str], told: str
) -> None:
    assert once_valid("use it", checks, "SUSPECT") == told
    assert once_valid("use it", checks, "VALID") == "use it"


def test_an_overloaded_run_is_told_its_capacity() -> None:
    assert step(ok(3), PILE, overloaded=True) == "lower the rate below 9 req/s"


@pytest.mark.parametrize(
    ("flags", "named"),
    [({}, "`--num-prompts 662`"), ({"duration": 30.0}, "`--duration 6620`")],
)
def test_too_few_requests_are_told_how_many_are_needed(flags: dict[str, Any], named: str) -> None:
    told = step(ok(3), FEW, slo="ttft_p99<1s", **flags)
    assert told == f"send 662 requests or more: {named}"


def test_a_server_that_hung_sends_to_its_log() -> None:
    hung = Check(SERVER_HUNG, False, "1 of 1 silence", "0", "read its log", group="A")
    assert step((), hung) == "read its log"
    assert step(()) == "let a run go on until requests end"


def test_a_run_of_few_requests_is_told_what_each_percentile_needs() -> None:
    assert step(ok(3)) == "send at least 11 for p50, 662 for p99: `--num-prompts 662`"
    assert step(ok(20)) == "send at least 662 for p99: `--num-prompts 662`"


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        ({}, '`loadgen search --slo "ttft_mean<1ms"`'),
        (
            {"request_rate": float("inf"), "max_concurrency": 1},
            '`loadgen search --over concurrency --slo "ttft_mean<1ms"`',
        ),
    ],
)
def test_a_missed_slo_names_the_search_that_finds_the_load(
    settings: dict[str, Any], command: str
) -> None:
    told = step(ok(20), slo="ttft_mean<1ms", **settings)
    assert told.startswith("lower the load; find the highest ")
    assert told.endswith(f" that meets the SLO: {command}, {AS_THEY_WERE}")


def test_a_load_that_no_search_can_vary_is_only_lowered() -> None:
    told = step(ok(20), slo="ttft_mean<1ms", rate_profile="1@5s,2@5s")
    assert told == "lower the load, or make the server faster"


@pytest.mark.parametrize(
    ("records", "checks", "settings", "then"),
    [
        (20, [PILE, LATE], {"overloaded": True}, "lower the rate below 9 req/s"),
        (3, [FEW, LATE], {"slo": "ttft_p99<1s"}, "send 662 requests or more: "),
        (3, [LATE], {}, "send at least 11 for p50"),
        (20, [LATE], {"slo": "ttft_mean<1ms"}, "lower the load; find the highest rate"),
    ],
    ids=["overloaded", "too few for an SLO", "too few", "SLO missed"],
)
def test_a_run_of_a_busy_machine_is_repeated_before_its_advice_is_followed(
    records: int, checks: list[Check], settings: dict[str, Any], then: str
) -> None:
    assert step(ok(records), *checks, **settings).startswith(
        f"repeat on an idle machine; then {then}"
    )


def test_a_suspect_run_says_what_that_means_and_has_the_advice_of_its_first_check() -> None:
    meaning = "do not rely on these figures"
    assert step(ok(20), LATE, PILE) == f"{meaning}: repeat on an idle machine; free a core"
    differ = Check("token counts differ", False, "3", "0", "read the usage")
    assert step(ok(20), differ) == f"{meaning}: read the usage"


def test_a_good_run_is_told_how_to_find_the_limit_and_the_simulator_that_it_is_one() -> None:
    assert step(ok(ENOUGH)) == (
        'find the highest rate within limits of yours: `loadgen search --slo "ttft_p99<500ms"`, '
        f"{AS_THEY_WERE}"
    )
    told = step(ok(ENOUGH), slo="tpot_mean<1s")
    assert '--slo "tpot_mean<1s"' in told
    assert told.startswith("find the highest rate that meets the SLO: ")
    data = result(ok(ENOUGH), RunSettings(), simulated=True)
    told = after_run(saved_json.result(data))
    assert told == "measure your own server: `loadgen run --base-url URL`"


def test_every_state_but_ok_has_a_next_step() -> None:
    for number in range(300):
        made = random_result(number)
        if state_of(made) is not State.OK:
            assert after_run(made), number
