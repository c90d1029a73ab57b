"""The HTML page of a result: its contents follow from the result and need no other resource."""

import re
from typing import Any

import pytest

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.report.html import Heading, Items, Note, Table
from tests.helpers import run_facts
from tests.helpers.html_page import Page
from tests.helpers.run_page_parts import blocks, charts, has, rows, tables, texts, words
from tests.helpers.saved_json import document, html
from tests.helpers.saved_results import INVALID, SUSPECT, big, ran, saved, sweep

# -- the verdict


@pytest.mark.parametrize(
    ("checks", "kind", "title"),
    [
        ((), "tip", "VALID: the numbers below may be believed"),
        (
            (SUSPECT,),
            "warning",
            "SUSPECT: the client, or something between it and the server, distorts the numbers below",
        ),
        ((INVALID, SUSPECT), "danger", "INVALID: requests, tokens or the engine went missing"),
    ],
)
def test_the_verdict_comes_first_in_words(checks: tuple[Any, ...], kind: str, title: str) -> None:
    first = next(block for block in blocks(ran(None, *checks)) if isinstance(block, Note))
    assert first.kind == kind
    assert first.title.startswith(title)


def test_failed_checks_are_listed_with_their_remedy() -> None:
    page = texts(ran(None, INVALID, SUSPECT))
    assert ": killed by SIGKILL, limit the same process. What to do: read the engine's log." in page
    assert ": 4.1 ms, limit 0.8 ms. What to do: free a core." in page
    assert "Verdict: INVALID, client at most 0.11 ms (2 of 5 checks passed, 1 note)." in page


def test_notes_are_told_apart_from_what_failed() -> None:
    verdict, noted, *_ = (block for block in blocks(ran()) if isinstance(block, Note))
    assert [block.shape for block in verdict.blocks] == ["paragraph"]
    assert noted.title == "Bear in mind"
    assert not has("Bear in mind", ran(checks=[]))


def test_every_check_is_there_folded() -> None:
    found = rows(tables(ran(None, SUSPECT))["group"])
    assert found["C did the client distort the times?"] == ["loop stall p99", "failed", "4.1 ms", "0.8 ms"]
    assert found["D are there enough values, and was the load steady?"][1] == "noted"
    assert found["B was everything sent on time?"][1] == "passed"


def test_commands_in_an_advice_are_code_as_they_are_in_what_is_printed() -> None:
    typed = Check("sent", False, "1 request", "0", "see what `loadgen doctor` says", group="B")
    page = Page(html([ran(None, typed)]))
    assert ("code", "loadgen doctor") in page.texts
    assert not any("`" in text for tag, text in page.texts if tag == "li")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"simulated": True}, "SIMULATED ENGINE"),
        ({"partial": "interrupted"}, "PARTIAL: interrupted."),
        ({"overloaded": True}, "OVERLOADED"),
        ({"insecure": True}, "INSECURE"),
    ],
)
def test_banners_stand_above_the_numbers(changes: dict[str, Any], said: str) -> None:
    names = [block.title if isinstance(block, Note) else block.shape for block in blocks(ran(**changes))]
    (place,) = (number for number, name in enumerate(names) if name.startswith(said))
    assert place < names.index("facts")


def test_failure_share_leads_and_no_note_is_green() -> None:
    first, verdict, *_ = (block for block in blocks(ran(failures=33)) if isinstance(block, Note))
    assert first.title == "NOT OK: 55.00% of 60 requests failed (status(503) 33)."
    said = "NOT OK, 55.00% of 60 requests failed; the measurement is VALID: the numbers below may be believed"
    assert (verdict.kind, verdict.title) == ("info", said)


def test_without_a_success_no_number_is_called_believable() -> None:
    *banners, verdict, _ = [block for block in blocks(ran(failures=60)) if isinstance(block, Note)][:4]
    assert banners[0].title.startswith("NO REQUEST SUCCEEDED")
    assert verdict.kind == "info"
    assert verdict.title.endswith("the measurement is VALID: the client worked correctly, but no request succeeded")


# -- numbers


def test_every_latency_is_a_row_with_its_meaning() -> None:
    result = ran()
    table = tables(result)["Latency (ms)"]
    found = rows(table)
    ttft = result["loadgen"]["latency_ms"]["ttft_due"]
    assert found["TTFT from due"][:2] == ["60", f"{ttft['mean']:.3f}"]
    assert found["TTFT from due"][-2] == f"{ttft['p99']:.3f}*"
    assert all(row[0][0][0].about for row in table.rows)
    assert has("if requests are independent, in ms: ", result)


def test_the_numbers_that_stand_for_the_run_are_seen_at_once() -> None:
    found = texts(ran(RunSettings(request_rate=10.0, goodput=("ttft:22",), slo="ttft_p99<1s,e2el_p50<1ms"), failures=3))
    limits = "0 of 2 limits met; 5.00% of 60 requests failed"
    for said in ("57 ok", "of 60; 3 failed", "asked: 10 req/s", "MISSED", limits):
        assert said in found
    assert "SLO ttft_p99<1s: MISSED (5.00% of 60 requests failed)" in found
    assert any(each.startswith("SLO e2el_p50<1ms: MISSED") for each in found)


def test_definitions_are_reached_by_keyboard() -> None:
    page = Page(html([ran()]))
    shown = {value for _, name, value in page.attributes if name == "aria-describedby"}
    assert shown <= {value for _, name, value in page.attributes if name == "id"}
    assert not [each for each in page.attributes if each[1] == "title"]


# -- what became of requests and tokens


def test_every_outcome_is_told_in_words() -> None:
    assert all(outcome.about.endswith(".") for outcome in Outcome)


def test_failures_show_share_meaning_and_escaped_examples() -> None:
    result = ran(failures=3)
    text = html([result])
    found = rows(tables(result)["outcome"])
    assert found["status(503)"] == ["3", "5.00%"]
    examples = [words(one) for block in blocks(result) if isinstance(block, Items) for one in block.lines]
    assert "status(503): request 57, first token: <b>busy</b> & [31mred" in examples
    assert "<b>busy" not in text
    assert "\x1b" not in text
    assert has("An HTTP status other than 200.", result)
    assert has("NOT OK: 5.00% of 60 requests failed (status(503) 3).", result)


def test_run_without_success_has_a_page() -> None:
    result = ran(failures=60)
    assert has("NO REQUEST SUCCEEDED", result)
    assert "n/a" in texts(result)


def test_run_without_sent_requests_has_a_page() -> None:
    nothing = saved(run_facts.result([], scheduled=5))
    nothing["loadgen"]["timeline"] = None
    assert has("No request has ended.", nothing)
    assert charts(nothing) == {}


def test_tokens_are_accounted_for() -> None:
    found = rows(tables(ran())["of requests that are ok"])
    assert found["output, as it was asked for"] == ["600"]
    assert found["events with tokens"] == ["600"]


def test_the_server_s_words_stand_beside_ours() -> None:
    heads = ("", "the server", "ours")
    (table,) = (block for block in blocks(ran()) if isinstance(block, Table) and block.head == heads)
    found = rows(table)
    assert found["output tokens"] == ["600", "600"]
    assert found["requests that have ended"] == ["60", "60"]
    assert found["KV cache in use, mean"][0].startswith("25.0%")
    assert has("No server metrics", ran(said=False))


def test_unknown_client_usage_is_left_out() -> None:
    unknown = dict.fromkeys(("wall_s", "cpu_s", "busy_share", "peak_memory_bytes", "stolen_share", "throttled_s"))
    result = saved(run_facts.result([run_facts.steady()], client=unknown))
    firsts = [words(row[0][0]) for block in blocks(result) if isinstance(block, Table) for row in block.rows]
    assert "lag" in firsts
    assert "CPU time" not in firsts
    assert has("Server metrics are unknown", result)
    assert not has("No server metrics", result)


def test_page_contains_the_console_report() -> None:
    assert has("============ Serving Benchmark Result ============", ran())


# -- the whole


def test_page_loads_no_resource_and_runs_one_script() -> None:
    text = html([ran(failures=2)])
    page = Page(text)
    loads = [value or "" for tag, name, value in page.attributes if name in ("src", "href", "srcset", "action", "data")]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in loads)
    assert [tag for tag, _ in page.texts if tag == "script"].count("script") == 4  # one, and the words of three charts
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


def test_a_run_of_100_000_requests_is_under_1_500_000_bytes() -> None:
    assert len(html([big()]).encode()) < 1_500_000


def test_several_results_have_a_part_each_below_a_table() -> None:
    page = document([ran(), ran(None, INVALID), sweep((1.0, 20.0, True))])
    assert page.title == "3 results"
    headings = [(block.level, block.text) for block in page.blocks if isinstance(block, Heading)]
    assert [text for level, text in headings if level == 2] == [
        "1. org/tiny: 10 requests/s",
        "2. org/tiny: 10 requests/s",
        "3. org/tiny: sweep over the request rate",
    ]
    assert (3, "Latencies") in headings
    table = page.blocks[0]
    assert isinstance(table, Table)
    assert [row[3][0][0].text for row in table.rows] == ["VALID", "INVALID", "1 run"]
    ids = [value for _, name, value in Page(html([ran(), ran()])).attributes if name == "id"]
    assert len(ids) == len(set(ids))


# -- several runs


def test_a_series_has_its_table_its_picture_and_every_run() -> None:
    data = sweep((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), knee=2.0, partial="interrupted")
    found = texts(data)
    for said in (
        "PARTIAL: interrupted.",
        "ttft_p99<500ms is met at: 1, 2 requests/s",
        "Knee (highest ratio of tokens/s to mean E2EL): 2 requests/s",
        "Throughput against latency",
    ):
        assert said in found
    table = tables(data)
    first, *_ = (block for block in blocks(data) if isinstance(block, Table))
    assert first.head[:7] == ("rate", "verdict", "SLO", "req/s", "tok/s", "peak", "TTFT p50")
    assert first.numbers[:4] == (False, False, False, True)
    assert [row[0][0][0].text for row in first.rows] == ["1", "2", "4"]
    assert rows(first)["4"][:2] == ["VALID", "MISSED"]
    assert table["rate"].head == ("rate", "verdict", "why", "kept in")
    links = [value for _, name, value in Page(html([data])).attributes if name == "href"]
    assert [link for link in links if link and not link.startswith("#")] == ["r-01.html", "r-02.html", "r-03.html"]


def test_a_series_in_which_no_run_had_an_answer_has_a_page() -> None:
    data = sweep((1.0, 20.0, None))
    data["points"][0]["result"]["output_throughput"] = None
    assert charts(data) == {}
