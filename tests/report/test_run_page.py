"""The HTML page of a result: its contents follow from the result and need no other resource."""

import re
from typing import Any

import pytest

from loadgen import __version__, report
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.document import Code, Heading, Items, Note, Paragraph, Table
from loadgen.report.result import RunResult
from loadgen.report.summary_line import answer
from loadgen.util.terminal_text import Screen
from tests.helpers import run_facts, saved_json
from tests.helpers.console_lines import unwrapped
from tests.helpers.html_page import Page
from tests.helpers.run_page_parts import (
    blocks,
    charts,
    folds,
    has,
    listed,
    rows,
    tables,
    texts,
    words,
)
from tests.helpers.saved_json import document, html
from tests.helpers.saved_results import INVALID, SUSPECT, big, ran, saved, sweep
from tests.report import test_departures, test_sections_groups, test_sessions, test_targets

LIMITED = RunSettings(slo="ttft_p99<1s,e2el_p50<1ms", goodput=("ttft:22",), max_concurrency=4)


def test_answer_figures_and_two_charts_are_seen_and_all_else_is_folded() -> None:
    page = document([ran(RunSettings(slo="ttft_p99<1s"), SUSPECT)])
    shapes = [block.shape for block in page.blocks]
    shown = ["facts", "drawing", "drawing"]
    assert shapes == [*shown, *["note"] * (len(shapes) - len(shown))]
    notes = [block for block in page.blocks if isinstance(block, Note)]
    assert all(note.folded for note in notes)
    assert [note.title.partition(":")[0] for note in notes] == [
        *("Reasons and advice", "Bear in mind", "Latencies", "Over time", "Requests", "Tokens"),
        *("The server", "The client", "All checks and limits of the SLO"),
        *("Run it again", "Where it comes from", "What vllm bench serve prints"),
    ]


def test_the_title_has_model_and_load_and_the_load_stands_below_it() -> None:
    page = document([ran()])
    assert page.title == "model org/tiny: 10 req/s"
    assert page.about.split(", ") == [
        *("60 requests", "10 tokens in and 10 out on average", "random data set"),
        *("Poisson arrivals at 10 req/s", "duration 6 s."),
    ]


def test_last_line_of_each_page_says_when_where_and_with_what_it_was_measured() -> None:
    settings = RunSettings(base_url="http://gpu:8000")
    origin = f"2025-01-02 03:04:05, http://gpu:8000, loadgen {__version__}"
    runs = sweep((1.0, 20.0, True))
    runs["points"][0]["result"]["loadgen"] |= {"target": "http://gpu:8000", "loadgen": __version__}
    for results in ([ran(settings)], [runs], [ran(settings), ran(settings)]):
        assert document(results).origin == origin
        assert html(results).count(f"</main>\n<footer>{origin}</footer>\n") == 1


def test_rates_stand_among_the_tokens() -> None:
    result = ran(RunSettings(request_rate=10.0, goodput=("ttft:22",)))
    _, rates = folds(result)["Tokens: counts, rates and efficiency"].blocks
    assert isinstance(rates, Items)
    assert any(line.startswith("Goodput from scheduled send: ") for line in listed(rates))


@pytest.mark.parametrize(
    "result",
    [
        ran(),
        ran(LIMITED, INVALID, SUSPECT, failures=3, partial="interrupted", insecure=True),
        ran(checks=[], said=False, simulated=True),
        ran(failures=60),
        saved(run_facts.result([], scheduled=5)),
        saved(test_targets.made()),
        saved(test_sections_groups.made()),
        saved(RunResult.of(test_sessions.TWO_SESSIONS, []).to_dict()),
        saved(run_facts.result(test_departures.RUN, test_departures.LEAVING)),
        saved(run_facts.result(test_departures.RETRIED, test_departures.AGAIN)),
    ],
    ids=[
        *("ok", "limits missed", "simulated", "no answers", "nothing sent"),
        *("targets", "classes", "sessions", "users who leave", "retries"),
    ],
)
def test_nothing_of_the_console_report_is_lost(result: dict[str, Any]) -> None:
    """Its block is tested below; its answer stands at its end again, in lines of the screen."""
    printed = report.render(RunResult.from_dict(result), screen=Screen(columns=120))
    lines = unwrapped(printed.splitlines())
    below = lines[lines.index("=" * 50) + 1 :]
    without_definitions = re.sub('<span role="tooltip".*?</span>', "", html([result]))
    shown = squeezed(*(text for _, text in Page(without_definitions).texts))
    end = max(number for number, line in enumerate(below) if not line)  # of the blocks
    assert [line for line in below[:end] if squeezed(line) not in shown] == []
    parts = answer(RunResult.from_dict(result)).parts
    assert [text for text, _ in parts if squeezed(text) not in shown] == []


def squeezed(*texts: str) -> str:
    """Texts without blanks, and without the marks of code, which a page shows as such."""
    return re.sub(r"[\s`]", "", "".join(texts))


def test_definitions_are_reached_by_keyboard() -> None:
    page = Page(html([ran()]))
    shown = {value for _, name, value in page.attributes if name == "aria-describedby"}
    assert shown <= {value for _, name, value in page.attributes if name == "id"}
    assert not [each for each in page.attributes if each[1] == "title"]


def test_every_outcome_is_told_in_words() -> None:
    assert all(outcome.about.endswith(".") for outcome in Outcome)


def test_failures_show_share_meaning_and_escaped_examples() -> None:
    result = ran(failures=3)
    text = html([result])
    found = rows(tables(result)["outcome"])
    assert found["status(503)"] == ["3", "5.00%"]
    said = [line for block in blocks(result) if isinstance(block, Items) for line in listed(block)]
    assert "status(503): first seen at request 57: <b>busy</b> & [31mred" in said
    assert "<b>busy" not in text
    assert "\x1b" not in text
    assert has("An HTTP status other than success (2xx).", result)


def test_run_without_success_has_a_page() -> None:
    result = ran(failures=60)
    assert has("FAILED: 60 of 60 requests failed", result)
    assert "n/a" in texts(result)
    (told,) = folds(result)["Tokens: counts, rates and efficiency"].blocks
    assert isinstance(told, Paragraph)
    assert words(told.text) == "No request succeeded."


def test_run_without_sent_requests_has_a_page() -> None:
    nothing = saved(run_facts.result([], scheduled=5))
    nothing["loadgen"]["timeline"] = None
    assert has("No request has ended.", nothing)
    assert charts(nothing) == {}


def test_tokens_are_accounted_for_once() -> None:
    found = rows(tables(ran())["of requests that are ok"])
    assert found["output, as it was requested"] == ["600"]
    assert found["output, counted by events"] == ["600"]
    assert found["events with tokens"] == ["600"]
    lost = "events with tokens of failed requests, not counted above"
    assert lost not in found
    counts = [text for text in texts(ran()) if "counted by" in text]
    assert counts == ["output, counted by events"]
    result = ran()
    result["loadgen"]["tokens"]["lost_token_events"] = 7
    assert rows(tables(result)["of requests that are ok"])[lost] == ["7"]


def test_the_server_s_words_stand_beside_ours() -> None:
    heads = ("", "server", "loadgen")
    (table,) = (
        block for block in blocks(ran()) if isinstance(block, Table) and block.head == heads
    )
    found = rows(table)
    assert found["output tokens"] == ["600", "600"]
    assert found["requests ended"] == ["60", "60"]
    assert found["KV cache in use, mean"][0].startswith("25.0%")
    assert has("No server metrics", ran(said=False))


def test_unknown_client_usage_is_left_out() -> None:
    unknown = dict.fromkeys(
        ("wall_s", "cpu_s", "busy_share", "peak_memory_bytes", "stolen_share", "throttled_s")
    )
    result = saved(run_facts.result([run_facts.steady()], client=unknown))
    firsts = [
        words(row[0][0])
        for block in blocks(result)
        if isinstance(block, Table)
        for row in block.rows
    ]
    assert not {"lag", "CPU time"} & {*firsts}
    assert firsts.count("Lag") == 1  # among the latencies
    assert has("Server metrics are unknown", result)
    assert not has("No server metrics", result)


def test_page_contains_the_block_of_vllm_as_it_is_printed() -> None:
    (code,) = folds(ran())["What vllm bench serve prints"].blocks
    assert isinstance(code, Code)
    assert code.text.startswith("============ Serving Benchmark Result ============\n")
    assert f"\n{code.text}\n\n" in saved_json.render(ran())


def test_page_loads_no_resource_and_runs_one_script() -> None:
    text = html([ran(failures=2)])
    page = Page(text)
    loads = [
        value or ""
        for tag, name, value in page.attributes
        if name in ("src", "href", "srcset", "action", "data")
    ]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in loads)
    assert [tag for tag, _ in page.texts if tag == "script"].count(
        "script"
    ) == 5  # one, and the words of four charts
    assert not re.search(r"@import|<link|<iframe|<object|url\((?!#)| on\w+=", text)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    anchors = [value for value in loads if value.startswith("#")]
    assert {value[1:] for value in anchors} <= set(ids)


def test_the_same_result_gives_the_same_bytes() -> None:
    result = ran(failures=2)
    before = repr(result)
    assert html([result]) == html([result])
    assert repr(result) == before


@pytest.mark.integration
def test_a_run_of_100_000_requests_is_under_1_500_000_bytes() -> None:
    assert len(html([big()]).encode()) < 1_500_000


@pytest.mark.integration
def test_several_results_have_a_part_each_below_a_table() -> None:
    page = document([ran(), ran(None, INVALID), sweep((1.0, 20.0, True))])
    assert page.title == "3 results"
    headings = [(block.level, block.text) for block in page.blocks if isinstance(block, Heading)]
    assert [text for level, text in headings if level == 2] == [
        "1. model org/tiny: 10 req/s",
        "2. model org/tiny: 10 req/s",
        "3. Sweep over the request rate: model org/tiny",
    ]
    table = page.blocks[0]
    assert isinstance(table, Table)
    assert [row[3][0][0].text for row in table.rows] == ["VALID", "INVALID", "1 run"]
    ids = [value for _, name, value in Page(html([ran(), ran()])).attributes if name == "id"]
    assert len(ids) == len(set(ids))
