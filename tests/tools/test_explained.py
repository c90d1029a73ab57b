"""Every difference has its reason: without any of its rules a tool says what loadgen says."""

import pytest

from loadgen.outcomes import Outcome
from loadgen.tools.comparison import TOOLS, explained
from loadgen.tools.ours import ours
from loadgen.tools.rule import DIGITS, Rule
from loadgen.wire import Record
from tests.tools.recorded import STREAMS, of_file, result_of, run_of
from tests.unit.making import answered, failed, per_event, unsent

ASKED = {"percentile_metrics": "ttft,tpot,itl,e2el", "metric_percentiles": "90,99"}


def records_of(group: str) -> tuple[list[Record], bool]:
    if group != "several tokens an event":
        return of_file(group)
    counted = [per_event((20, 3), (40, 5), (45, 5), (80, 11)), per_event((25, 1), (45, 2), (300, 9), index=1)]
    return [*counted, answered(2, due=5, tokens=[40, 70], reasoning=[30], closed=90)], True


GROUPS = [*STREAMS, "several tokens an event"]


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
        value /= row.unit_ms if " " in row.ours else 1
        assert row.value == pytest.approx(value, rel=1e-3, abs=1e-5), row.label
        compared += 1
    assert compared > 5


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


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("records", [[], [failed(0, Outcome.STATUS)], [unsent(0)]], ids=["none", "refused", "unsent"])
def test_a_run_without_a_success_has_its_page_too(name: str, records: list[Record]) -> None:
    tool = TOOLS[name]
    for on in (frozenset(tool.rules), frozenset[Rule]()):
        rows = {row.label: row.value for row in tool.rows(run_of(records, **ASKED), on)}
        assert rows.get("Successful requests:", rows.get("Request Count (requests)")) == 0
