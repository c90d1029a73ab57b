"""Every difference has a reason: without its rules a tool has loadgen's numbers."""

import json
from functools import cache
from pathlib import Path

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.lab.tools.emulate.comparison import TOOLS, compare, explain, loadgen_value
from loadgen.lab.tools.emulate.recorded_run import RecordedRun
from loadgen.lab.tools.emulate.tool import (
    CONNECTING,
    DIGITS,
    SPREAD,
    UNKNOWN,
    Row,
    Rule,
    Tool,
    View,
)
from loadgen.runner.run_result import Result
from loadgen.testing.replies import delta, event
from loadgen.workload.arrivals import Schedule
from tests.helpers.compared_runs import FEW, kept
from tests.helpers.recorded_streams import (
    GOLDEN,
    STREAMS,
    of_file,
    of_streams,
    record_of,
    result_of,
    rows_of,
    run_of,
)
from tests.helpers.run_facts import answered, failed, per_event, unsent

ASKED = {"percentile_metrics": "ttft,tpot,itl,e2el", "metric_percentiles": "90,99"}


def several_tokens_an_event() -> list[Record]:
    counted = [
        per_event((20, 3), (40, 5), (45, 5), (80, 11)),
        per_event((25, 1), (45, 2), (300, 9), index=1),
    ]
    return [*counted, answered(2, due=5, tokens=[40, 70], reasoning=[30], closed=90)]


def one_token_an_answer() -> list[Record]:
    return [
        answered(i, due=due, tokens=[due + 20], closed=due + 25) for i, due in enumerate((0, 7, 30))
    ]


def a_server_that_goes_away() -> list[Record]:
    return [*one_token_an_answer(), *(unsent(i, Outcome.REFUSED, due=100 * i) for i in (3, 4, 5))]


SYNTHETIC = {
    "several tokens an event": several_tokens_an_event,
    "one token an answer": one_token_an_answer,
    "a server that goes away": a_server_that_goes_away,
}
GENERATE = json.loads((GOLDEN / "sglang.json").read_text())["generate"]["streams"]
GROUPS = [*STREAMS, *SYNTHETIC]


def records_of(group: str) -> tuple[list[Record], bool]:
    return (SYNTHETIC[group](), True) if group in SYNTHETIC else of_file(group)


@cache
def run_and_result(group: str) -> tuple[RecordedRun, Result]:
    records, chat = records_of(group)
    return run_of(records, chat, **ASKED), result_of(records, chat, **ASKED)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("group", GROUPS)
def test_tool_without_rules_has_loadgens_numbers(name: str, group: str) -> None:
    run, result = run_and_result(group)
    compared = 0
    for row in rows_of(TOOLS[name], run, frozenset()):
        if row.ours is None or row.value is None:
            continue
        value = loadgen_value(result, row.ours)
        assert value is not None, row.label
        assert row.value == pytest.approx(value / row.unit_ms, rel=1e-3, abs=1e-5), row.label
        compared += 1
    assert compared > 5


@pytest.mark.integration
def test_generate_without_rules_has_loadgens_numbers() -> None:
    records, asked = of_streams(GENERATE), {**ASKED, "backend": "sglang-native"}
    lines = explain(TOOLS["sglang"], run_of(records, **asked), result_of(records, **asked))
    shown = [
        (line.row.label, line.row.shown(line.row.value), line.row.shown(line.ours))
        for line in lines
        if not line.why
    ]
    assert [each for each in shown if each[1] != each[2] and each[2] != "n/a"] == []
    peak = next(line for line in lines if line.row.ours == "max_output_tokens_per_s")
    assert SPREAD in peak.why
    for row in rows_of(TOOLS["sglang"], run_of(records, **asked), frozenset()):
        if row.ours is not None and row.value is not None:
            value = loadgen_value(result_of(records, **asked), row.ours)
            assert row.value == pytest.approx(value, rel=1e-3, abs=1e-5), row.label


def test_only_sglang_can_have_asked_generate(tmp_path: Path) -> None:
    settings = FEW.replace(backend="sglang-native", num_prompts=len(GENERATE))
    path = kept(tmp_path / "r.jsonl", of_streams(GENERATE), Schedule.burst(len(GENERATE)), settings)
    with pytest.raises(BadInput, match=r"vllm-0\.33 cannot ask /generate"):
        compare(path, "vllm-0.33")
    assert compare(path, "sglang").requests == len(GENERATE)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("group", GROUPS)
def test_every_difference_has_a_reason(name: str, group: str) -> None:
    records, chat = records_of(group)
    for line in explain(
        TOOLS[name], run_of(records, chat, **ASKED), result_of(records, chat, **ASKED)
    ):
        differs = (
            line.row.shown(line.row.value) != line.row.shown(line.ours)
            and line.row.ours is not None
        )
        assert bool(set(line.why) - set(line.row.notes)) <= differs, line.row.label
        assert line.why or not differs, line.row.label
        if DIGITS in line.why:
            assert line.why == (DIGITS,)
            assert line.row.value == pytest.approx(line.ours, rel=2e-3, abs=0.01), line.row.label


def test_abandoned_requests_are_the_only_other_reason() -> None:
    def seven(view: View) -> list[Row]:
        return [Row("Total generated tokens:", 7, "total_output_tokens")]

    for records, why in (
        ([answered()], ()),
        ([answered(), failed(1, Outcome.STALLED)], (UNKNOWN,)),
    ):
        (line,) = explain(Tool("other", (), (seven,)), run_of(records), result_of(records))
        assert (line.ours, line.why) == (3, why)


def test_connect_time_of_aiperf_has_one_reason() -> None:
    """Connecting from 8 to 20, and the last content is the last byte, at 60."""
    last = event(
        choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}],
        usage={"completion_tokens": 2},
    )
    records = [record_of(0, [(40, delta(content="a")), (60, last)], due=20, sent=20, connect=12)]
    lines = {
        line.row.label: line
        for line in explain(TOOLS["aiperf"], run_of(records), result_of(records))
    }
    line = lines["Request Throughput (requests/sec)"]
    assert (line.row.value, line.ours) == (pytest.approx(1 / 0.052), pytest.approx(1 / 0.040))
    assert line.why == (CONNECTING,)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    "records", [[], [failed(0, Outcome.STATUS)], [unsent(0)]], ids=["none", "refused", "unsent"]
)
def test_run_without_a_success_has_rows(name: str, records: list[Record]) -> None:
    tool = TOOLS[name]
    for on in (frozenset(tool.rules), frozenset[Rule]()):
        rows = {row.label: row.value for row in rows_of(tool, run_of(records, **ASKED), on)}
        assert rows.get("Successful requests:", rows.get("Request Count (requests)")) == 0
