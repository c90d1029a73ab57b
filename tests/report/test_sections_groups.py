"""Classes in the report: a row for each in JSON, on the console and on the page, adding up to
the total.
"""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.document import Note, Table, cell
from loadgen.metrics import parted_recorder
from loadgen.report.sections import groups
from tests.helpers import saved_json
from tests.helpers.console_lines import cells, section, unwrapped
from tests.helpers.run_facts import START, failed, result, steady
from tests.helpers.saved_json import render

SETTINGS = RunSettings(
    classes=(
        "chat:share=0.75,priority=0,slo=ttft_p50<25ms,goodput=ttft:30",
        "batch:share=0.25,model=x,slo=e2el_p99<90ms,slo=error_rate<10%",
    ),
    slo="ttft_p50<60ms",
)


def made(settings=SETTINGS):
    recorder = parted_recorder.recorder_for(settings, START, 24)
    for index in range(24):
        is_batch = index % 4 == 3
        record = steady(index, due=index * 10, ttft=80 if is_batch else 20, n=4)
        if index in (7, 9, 11):
            record = failed(index, due=index * 10)
        record.class_number = int(is_batch)
        recorder.add(record)
    return result(recorder.snapshot(), settings)


def shown(found):
    """The lines of the console on the classes."""
    lines = unwrapped(render(found).splitlines())
    return section(lines, "Classes; latencies are p50 / p99 in ms from scheduled send")


def test_each_class_has_a_row_with_its_requests_and_latencies():
    chat, batch = made()["loadgen"]["classes"]
    assert [
        (row["name"], row["share"], row["priority"], row["model"]) for row in (chat, batch)
    ] == [("chat", 0.75, 0, None), ("batch", 0.25, None, "x")]
    assert [(row["requests"], row["ok"], row["failed"]) for row in (chat, batch)] == [
        (18, 17, 1),
        (6, 4, 2),
    ]
    medians = [row["latency_ms"]["ttft_due"]["p50"] for row in (chat, batch)]
    assert medians == [pytest.approx(20, rel=1e-3), pytest.approx(80, rel=1e-3)]


def test_requests_whose_users_left_have_a_column_and_are_in_no_goodput():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 4)
    for index in range(4):
        record = steady(index, ttft=20, n=4) if index else failed(0, Outcome.DISCONNECTED)
        recorder.add(record)
    found = result(recorder.snapshot(), SETTINGS)
    chat, _ = found["loadgen"]["classes"]
    assert (chat["requests"], chat["ok"], chat["failed"], chat["left"], chat["good_share"]) == (
        4,
        3,
        0,
        1,
        1.0,
    )
    head, chat, batch, *_ = shown(found)
    assert cells(head)[5:8] == ["tok/s", "left", "good"]
    assert cells(chat)[6:8] == ["1", "100.0%"]
    assert cells(batch)[6:8] == ["0", "n/a"]


def test_the_rows_add_up_to_the_result():
    whole = made()
    rows = whole["loadgen"]["classes"]
    for name, total in {
        "ok": whole["completed"],
        "failed": whole["failed"],
        "requests": whole["num_prompts"],
        "output_tokens": whole["total_output_tokens"],
        "output_throughput": whole["output_throughput"],
        "request_throughput": whole["request_throughput"],
    }.items():
        assert sum(row[name] for row in rows) == pytest.approx(total), name


def test_limits_of_a_class_are_judged_by_its_requests_and_stand_beside_those_of_the_run():
    own = made()["loadgen"]
    assert [(row["limit"], row["met"]) for row in own["slo"]] == [
        ("ttft_p50<60ms", True),
        ("chat:ttft_p50<25ms", True),
        ("batch:e2el_p99<90ms", False),
        ("batch:error_rate<10%", False),
    ]
    assert [len(row["slo"]) for row in own["classes"]] == [1, 2]


def test_goodput_is_that_of_a_class_until_every_class_has_limits():
    whole = made()
    assert [row["good_share"] for row in whole["loadgen"]["classes"]] == [
        pytest.approx(17 / 18),
        None,
    ]
    assert whole["request_goodput"] is None
    both = made(SETTINGS.replace(goodput=("ttft:100",)))
    assert [row["good_share"] for row in both["loadgen"]["classes"]] == [
        pytest.approx(17 / 18),
        pytest.approx(4 / 6),
    ]
    assert both["loadgen"]["rates"]["good_share"] == pytest.approx(21 / 24)


def test_the_console_shows_a_row_for_each_class_and_why_a_limit_is_missed():
    head, chat, batch = shown(made())
    assert cells(head)[:6] == ["class", "share", "requests", "ok", "failed", "tok/s"]
    assert cells(chat)[:5] == ["chat", "75.0%", "18", "17", "1"]
    assert cells(batch)[:5] == ["batch", "25.0%", "6", "4", "2"]
    limits = "SLO batch:e2el_p99<90ms: MISSED (33.33% of 6 requests failed)"
    assert limits in section(unwrapped(render(made()).splitlines()), "All checks and limits")


def test_the_page_shows_the_same_rows():
    (fold,) = groups.blocks(saved_json.result(made()))
    assert isinstance(fold, Note)
    title = "Classes; latencies are p50 / p99 in ms from scheduled send"
    assert (fold.title, fold.folded) == (title, True)
    (table,) = fold.blocks
    assert isinstance(table, Table)
    assert table.head[:5] == ("class", "share", "requests", "ok", "failed")
    assert [row[0] for row in table.rows] == [cell("chat"), cell("batch")]


def test_without_classes_there_is_no_table():
    own = made(RunSettings())
    assert own["loadgen"]["classes"] == []
    assert "Classes" not in render(own)
