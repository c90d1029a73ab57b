"""Several targets in the report: a row for each in JSON and on the console, adding up to the
total.
"""

import pytest

from loadgen import report
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics import parted_recorder
from loadgen.util.terminal_text import Screen
from tests.helpers import saved_json
from tests.helpers.console_lines import cells, section, unwrapped
from tests.helpers.run_facts import START, failed, result, steady
from tests.helpers.saved_json import render

URLS = ("http://a:1", "http://me:hunter2@b:1")
SETTINGS = RunSettings(base_url=URLS, balance="round-robin")


def made(settings=SETTINGS, **options):
    recorder = parted_recorder.recorder_for(settings, START, 20)
    for index in range(20):
        slow = index % 2
        failing = index in (7, 9)
        record = (
            failed(index, due=index * 10)
            if failing
            else steady(index, due=index * 10, ttft=20 + 5 * slow, n=4)
        )
        record.target = slow
        recorder.add(record)
    return result(recorder.snapshot(), settings, **options)


def shown(**options):
    """The lines of the console."""
    return unwrapped(render(made(**options)).splitlines())


def test_each_target_has_a_row_in_the_order_of_the_urls_without_their_users():
    rows = made()["loadgen"]["targets"]
    assert [row["base_url"] for row in rows] == ["http://a:1", "http://(given)@b:1"]
    assert [(row["requests"], row["ok"], row["failed"]) for row in rows] == [
        (10, 10, 0),
        (10, 8, 2),
    ]
    assert rows[1]["outcomes"] == {"ok": 8, "stream_error": 2}
    assert [row["latency_ms"]["ttft_sent"]["p50"] for row in rows] == [
        pytest.approx(20, rel=1e-3),
        pytest.approx(25, rel=1e-3),
    ]
    assert [row["max_concurrent_requests"] for row in rows] == [3, 3]


def test_cancelled_requests_of_a_target_have_not_failed():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 1)
    recorder.add(failed(0, Outcome.CANCELLED))
    first, _ = result(recorder.snapshot(), SETTINGS)["loadgen"]["targets"]
    assert (first["requests"], first["ok"], first["failed"]) == (1, 0, 0)


def test_the_rows_add_up_to_the_result():
    whole = made()
    rows = whole["loadgen"]["targets"]
    for name, total in {
        "ok": whole["completed"],
        "failed": whole["failed"],
        "requests": whole["num_prompts"],
        "output_tokens": whole["total_output_tokens"],
        "output_throughput": whole["output_throughput"],
        "request_throughput": whole["request_throughput"],
    }.items():
        assert sum(row[name] for row in rows) == pytest.approx(total), name


def test_a_single_target_is_the_whole_and_shown_as_ever():
    single = made(RunSettings(base_url="http://a:1"))
    assert single["loadgen"]["targets"] == []
    assert render(single).count("http://a:1") == 1  # in the title


def test_results_saved_before_there_were_several_are_printed():
    single = made(RunSettings(base_url="http://a:1"))
    text = render(single)
    del single["loadgen"]["targets"]
    assert render(single) == text


def test_the_console_has_a_line_for_each():
    *rows, balance = section(shown(), "Targets; latencies are p50 / p99 in ms from scheduled send")
    head, first, second, *rest = map(cells, rows)
    assert head == ["target", "requests", "ok", "failed", "tok/s", "peak", "TTFT", "TPOT"]
    assert first[:4] == ["http://a:1", "10", "10", "0"]
    assert second[:4] == ["http://(given)@b:1", "10", "8", "2"]
    assert rest == [
        ["target", "E2EL"],
        ["http://a:1", "50.00 / 50.00*"],
        ["http://(given)@b:1", "55.00 / 55.00*"],
    ]
    assert balance == "Requests are balanced: round-robin"


def test_the_url_of_a_target_is_whole_on_a_narrow_console():
    url = "http://a-server-of-a-long-name.example.org:8000/v2"
    settings = SETTINGS.replace(base_url=(url, URLS[1]))
    text = report.render(saved_json.result(made(settings)), screen=Screen(columns=60))
    rows = [line for line in text.splitlines() if line.startswith("  http")]
    assert {cells(row)[0] for row in rows} == {url, "http://(given)@b:1"}
    assert len(rows) == 16


def test_percentiles_of_few_values_are_marked():
    rows = [cells(line)[1:] for line in shown() if line.startswith("http://a:1 ")]
    marked = [cell.endswith("*") for row in rows for cell in row]
    assert marked == [False] * 5 + [True] * 3


def test_a_failure_says_where_its_request_was_sent():
    assert any(
        line.startswith("stream error: first seen at request 7 to http://(given)@b:1 (streaming): ")
        for line in shown()
    )


def test_differences_between_targets_are_printed():
    engine = {
        "name": "tests",
        "version": "1",
        "differ": ["their versions: 1 at http://a:1; 2 at http://b:1"],
    }
    differ = "The targets differ in their versions: 1 at http://a:1; 2 at http://b:1"
    assert differ in section(shown(engine=engine), "Targets; ")


def test_details_say_of_each_request_where_it_went():
    detailed = made(SETTINGS.replace(save_detailed=True))
    assert detailed["targets"] == [0, 1] * 10
    assert "targets" not in made(RunSettings(base_url="http://a:1", save_detailed=True))


def test_targets_without_requests_have_no_latency():
    snapshot = parted_recorder.recorder_for(SETTINGS, START, 0).snapshot()
    empty = result(snapshot, SETTINGS)
    assert [row["output_throughput"] for row in empty["loadgen"]["targets"]] == [None, None]
    assert "n/a / n/a" in render(empty)


def test_a_failure_that_was_never_sent_names_no_target():
    recorder = parted_recorder.recorder_for(SETTINGS, START, 1)
    recorder.add_never_sent(0, 1, Outcome.CANCELLED, "interrupted")
    lines = unwrapped(render(result(recorder.snapshot(), SETTINGS)).splitlines())
    assert "cancelled: first seen at request 0 (scheduled): interrupted" in lines
