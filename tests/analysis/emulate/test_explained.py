"""Every difference has its reason: without any of its rules a tool says what loadgen says."""

import pytest

from loadgen.analysis.emulate.comparison import TOOLS, explained
from loadgen.analysis.emulate.own_numbers import ours
from loadgen.analysis.emulate.recorded_run import Run
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import CONNECTING, DIGITS, UNKNOWN, Rule, Rules
from loadgen.analysis.emulate.tool import Tool
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.testing.replies import delta, event
from tests.helpers.recorded_streams import STREAMS, of_file, record_of, result_of, run_of
from tests.helpers.run_facts import answered, failed, per_event, unsent

ASKED = {"percentile_metrics": "ttft,tpot,itl,e2el", "metric_percentiles": "90,99"}


def several_tokens_an_event() -> list[Record]:
    counted = [per_event((20, 3), (40, 5), (45, 5), (80, 11)), per_event((25, 1), (45, 2), (300, 9), index=1)]
    return [*counted, answered(2, due=5, tokens=[40, 70], reasoning=[30], closed=90)]


def one_token_an_answer() -> list[Record]:
    return [answered(i, due=due, tokens=[due + 20], closed=due + 25) for i, due in enumerate((0, 7, 30))]


def a_server_that_goes_away() -> list[Record]:
    return [*one_token_an_answer(), *(unsent(i, Outcome.REFUSED, due=100 * i) for i in (3, 4, 5))]


MADE = {
    "several tokens an event": several_tokens_an_event,
    "one token an answer": one_token_an_answer,
    "a server that goes away": a_server_that_goes_away,
}
GROUPS = [*STREAMS, *MADE]


def records_of(group: str) -> tuple[list[Record], bool]:
    return (MADE[group](), True) if group in MADE else of_file(group)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("group", GROUPS)
def test_without_its_rules_a_tool_says_what_loadgen_says(name: str, group: str) -> None:
    records, chat = records_of(group)
    run, result = run_of(records, chat, **ASKED), result_of(records, chat, **ASKED)
    compared = 0
    for row in TOOLS[name].rows(run, frozenset()):
        if row.ours is None or row.value is None:
            continue
        value = ours(result, row.ours)
        assert value is not None, row.label
        assert row.value == pytest.approx(value / row.unit_ms, rel=1e-3, abs=1e-5), row.label
        compared += 1
    assert compared > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("group", GROUPS)
def test_no_difference_is_left_without_a_reason(name: str, group: str) -> None:
    records, chat = records_of(group)
    for line in explained(TOOLS[name], run_of(records, chat, **ASKED), result_of(records, chat, **ASKED)):
        differs = line.row.shown(line.row.value) != line.row.shown(line.ours) and line.row.ours is not None
        assert bool(set(line.why) - set(line.row.notes)) <= differs, line.row.label
        assert line.why or not differs, line.row.label
        if DIGITS in line.why:
            assert line.why == (DIGITS,)
            assert line.row.value == pytest.approx(line.ours, rel=2e-3, abs=0.01), line.row.label


def test_no_reason_is_made_up_but_requests_that_were_given_up_are_one() -> None:
    def says_7(run: Run, on: Rules) -> list[Row]:
        return [Row("Total generated tokens:", 7, "total_output_tokens")]

    for records, why in (([answered()], ()), ([answered(), failed(1, Outcome.STALLED)], (UNKNOWN,))):
        (line,) = explained(Tool("other", (), (says_7,)), run_of(records), result_of(records))
        assert (line.ours, line.why) == (3, why)


def test_what_connecting_adds_to_the_duration_of_aiperf_is_put_down_to_no_other_rule() -> None:
    """Connecting from 8 to 20, and the last content is the last byte, at 60."""
    last = event(choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}], usage={"completion_tokens": 2})
    records = [record_of(0, [(40, delta(content="a")), (60, last)], due=20, sent=20, connect=12)]
    lines = {line.row.label: line for line in explained(TOOLS["aiperf"], run_of(records), result_of(records))}
    line = lines["Request Throughput (requests/sec)"]
    assert (line.row.value, line.ours) == (pytest.approx(1 / 0.052), pytest.approx(1 / 0.040))
    assert line.why == (CONNECTING,)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("records", [[], [failed(0, Outcome.STATUS)], [unsent(0)]], ids=["none", "refused", "unsent"])
def test_a_run_without_a_success_has_its_page_too(name: str, records: list[Record]) -> None:
    tool = TOOLS[name]
    for on in (frozenset(tool.rules), frozenset[Rule]()):
        rows = {row.label: row.value for row in tool.rows(run_of(records, **ASKED), on)}
        assert rows.get("Successful requests:", rows.get("Request Count (requests)")) == 0
