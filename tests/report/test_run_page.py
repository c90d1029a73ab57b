"""The HTML page of a result: its contents follow from the result and need no other resource."""

import re
from typing import Any

import pytest

from loadgen import __version__, report
from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.document import Badge, Code, Drawing, Facts, Heading, Items, Note, Paragraph, Table
from loadgen.report.result import RunResult
from loadgen.util.terminal_text import Screen
from tests.helpers import run_facts, saved_json
from tests.helpers.console_lines import unwrapped
from tests.helpers.html_page import Page
from tests.helpers.run_page_parts import (
    blocks,
    charts,
    has,
    listed,
    rows,
    tables,
    texts,
    words,
)
from tests.helpers.saved_json import document, html
from tests.helpers.saved_results import INVALID, SUSPECT, big, ran, saved, search, sweep
from tests.report import test_departures, test_sections_groups, test_sessions, test_targets

LIMITED = RunSettings(slo="ttft_p99<1s,e2el_p50<1ms", goodput=("ttft:22",), max_concurrency=4)

# -- the answer


def badge(*arguments: Any, **changes: Any) -> tuple[str, str]:
    """Return the colour and the text of the badge of a result."""
    (found,) = (block for block in blocks(ran(*arguments, **changes)) if isinstance(block, Badge))
    return found.kind, words(found.text)


def folds(result: dict[str, Any]) -> dict[str, Note]:
    """Return the folded notes by their titles."""
    return {
        block.title: block for block in blocks(result) if isinstance(block, Note) and block.folded
    }


def test_answer_figures_and_two_charts_are_seen_and_all_else_is_folded() -> None:
    page = document([ran(RunSettings(slo="ttft_p99<1s"), SUSPECT)])
    shapes = [block.shape for block in page.blocks]
    # The load, the answer, the next step.
    shown = ["paragraph", "badge", "paragraph", "facts", "drawing", "drawing"]
    assert shapes == [*shown, *["note"] * (len(shapes) - len(shown))]
    notes = [block for block in page.blocks if isinstance(block, Note)]
    assert all(note.folded for note in notes)
    assert [note.title.partition(":")[0] for note in notes] == [
        *("Reasons and advice", "Bear in mind", "Latencies", "Over time", "Requests", "Tokens"),
        *("The server", "The client", "All checks and limits of the SLO"),
        *("Run it again", "Where it comes from", "What vllm bench serve prints"),
    ]


def test_load_is_the_first_line_of_the_page() -> None:
    page = document([ran()])
    first, *_ = page.blocks
    assert isinstance(first, Paragraph)
    assert page.title == "org/tiny: 10 requests/s"
    assert words(first.text).split(", ") == [
        *("60 requests", "10 tokens in and 10 out on average", "data set random"),
        *("Poisson arrivals at 10 requests/s", "lasted 6 s."),
    ]


def test_last_line_of_each_page_says_when_where_and_with_what_it_was_measured() -> None:
    settings = RunSettings(base_url="http://gpu:8000")
    origin = f"2025-01-02 03:04:05, http://gpu:8000, loadgen {__version__}"
    runs = sweep((1.0, 20.0, True))
    runs["points"][0]["result"]["loadgen"] |= {"target": "http://gpu:8000", "loadgen": __version__}
    for results in ([ran(settings)], [runs], [ran(settings), ran(settings)]):
        assert document(results).origin == origin
        assert html(results).count(f"</main>\n<footer>{origin}</footer>\n") == 1


@pytest.mark.parametrize(
    ("checks", "kind", "first"),
    [
        ((), "tip", "OK"),
        ((SUSPECT,), "warning", "SUSPECT: loop stalls (4.1 ms)"),
        ((INVALID, SUSPECT), "danger", "INVALID: engine lost (killed by SIGKILL), loop stalls"),
    ],
)
def test_badge_has_the_state_in_words_and_in_colour(
    checks: tuple[Any, ...], kind: str, first: str
) -> None:
    assert badge(None, *checks)[0] == kind
    assert badge(None, *checks)[1].startswith(f"{first} \N{MIDDLE DOT} 60/60 ok \N{MIDDLE DOT} ")


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        (
            {"failures": 33},
            "danger",
            "FAILED: 33 of 60 requests failed (503: 33) \N{MIDDLE DOT} measured VALID",
        ),
        ({"failures": 60}, "danger", "FAILED: 60 of 60 requests failed (503: 60)"),
        ({"overloaded": True}, "warning", "OVERLOADED above 9.96 req/s \N{MIDDLE DOT} 60/60 ok"),
        ({"partial": "interrupted"}, "warning", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"insecure": True}, "warning", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"simulated": True}, "info", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"simulated": True, "failures": 33}, "danger", "FAILED: 33 of 60"),
        ({"simulated": True, "overloaded": True}, "warning", "OVERLOADED"),
    ],
)
def test_the_state_leads_the_badge_and_what_is_worst_colours_it(
    changes: dict[str, Any], kind: str, said: str
) -> None:
    found = badge(**changes)
    assert found[0] == kind
    assert found[1].startswith(said)
    assert found[1].endswith("simulated engine") is bool(changes.get("simulated"))


@pytest.mark.parametrize(
    ("limits", "kind", "said"),
    [
        ("ttft_p99<1s", "tip", "SLO met"),
        ("ttft_p99<1s,e2el_p50<1ms", "danger", "SLO MISSED: e2el_p50<1ms (104 ms)"),
    ],
)
def test_badge_names_the_limits_of_the_slo(limits: str, kind: str, said: str) -> None:
    found = badge(RunSettings(slo=limits))
    assert found[0] == kind
    assert said in found[1].split(" \N{MIDDLE DOT} ")


def test_few_failures_are_a_doubt_and_no_failure() -> None:
    kind, text = badge(RunSettings(max_error_rate=0.1), failures=3)
    assert (kind, text.split(" \N{MIDDLE DOT} ")[:2]) == (
        "warning",
        ["OK", "3 of 60 requests failed (503: 3)"],
    )


def test_failed_checks_are_listed_with_their_remedy() -> None:
    result = ran(None, INVALID, SUSPECT)
    note = folds(result)["Reasons and advice"]
    assert note.kind == "danger"
    page = texts(result)
    finding = page.index("engine lost")
    assert page[finding : finding + 6] == [
        *("engine lost", ": killed by SIGKILL, limit the same process", "-> read the engine's log"),
        *("loop stalls", ": 4.1 ms, limit 0.8 ms", "-> free a core"),
    ]
    assert any(title.endswith("; 2 of 5 checks passed, 1 note") for title in folds(result))


def test_notes_are_told_apart_from_what_failed() -> None:
    assert "Bear in mind" in folds(ran())
    assert not has("Reasons and advice", ran())
    assert not has("Bear in mind", ran(checks=[]))


def test_every_check_is_there_folded() -> None:
    (title,) = (title for title in folds(ran(None, SUSPECT)) if title.startswith("All checks"))
    checks, *rest = folds(ran(None, SUSPECT))[title].blocks
    assert isinstance(checks, Table)
    assert checks.head == ("group", "check", "", "value", "limit")
    assert [[words(cell[0]) for cell in row] for row in checks.rows] == [
        ["C", "loop stalls", "failed", "4.1 ms", "0.8 ms"],
        ["A", "requests not ended once", "passed", "60 of 60", "one outcome for each"],
        ["B", "lag p99", "passed", "0.100 ms", "1.000 ms"],
        ["D", "too few for percentiles", "noted", "60 values are too few for p99", "662"],
    ]
    assert [words(each.text) for each in rest if isinstance(each, Paragraph)] == [
        "Groups: C did the client distort the times?; A accounting; B was everything sent on "
        "time?; D are there enough values, and was the load steady?",
        "Not applicable: targets fail unevenly",
    ]


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
        ({"insecure": True}, "INSECURE"),
    ],
)
def test_reasons_say_what_happened(changes: dict[str, Any], said: str) -> None:
    (reasons,) = folds(ran(**changes))["Reasons and advice"].blocks
    assert isinstance(reasons, Items)
    (reason,) = listed(reasons)
    assert reason.startswith(said)


# -- numbers


def test_every_latency_is_a_row_with_its_meaning() -> None:
    result = ran()
    table = tables(result)["Latency (ms)"]
    found = rows(table)
    ttft = result["loadgen"]["latency_ms"]["ttft_due"]
    assert table.head == ("Latency (ms)", "mean", "p50", "p90", "p99", "max", "count")
    assert found["TTFT from due"][:4] == [
        f"{ttft['mean']:#.4g}",
        f"{ttft['p50']:#.4g}",
        f"{ttft['p90']:#.4g}*",
        f"{ttft['p99']:#.4g}*",
    ]
    assert {len(re.sub("[^0-9]", "", cell)) for row in found.values() for cell in row[:5]} == {4}
    assert found["TTFT from due"][-1] == "60"
    assert all(row[0][0][0].about for row in table.rows)
    assert has("* too few requests: p90 needs 64, p99 needs 662", result)


def test_row_that_the_client_may_have_moved_is_marked() -> None:
    result = ran()
    result["loadgen"]["client_error_ms"]["e2el_sent"] = {"mean": 0.1, "p90": 9.0}
    assert has("E2EL from sent ~", result)
    assert has("~ E2EL from sent: client error at most 9 at p90", result)
    assert not has("E2EL from due ~", result)


def test_six_numbers_stand_for_the_run() -> None:
    result = ran(failures=3)
    (facts,) = (block for block in blocks(result) if isinstance(block, Facts))
    assert [fact.name.text for fact in facts.facts] == [
        *("Requests", "Answers", "Output tokens"),
        *("TTFT p50", "TPOT p50", "E2EL p50"),
    ]
    assert all(fact.name.about for fact in facts.facts)
    shown = {fact.name.text: (fact.value, fact.beside) for fact in facts.facts}
    assert shown["Requests"] == ("57 ok", "of 60; 3 failed")
    assert shown["Answers"][1] == "requested: 10 req/s"
    assert shown["TTFT p50"] == ("23 ms", "p99 26 ms (few values)")


def test_client_error_stands_beside_a_number_that_it_may_spoil() -> None:
    errors = {"mean": 0.1, "p50": 0.1, "p90": 5.0, "p99": 9.0}
    result = ran()
    result["loadgen"]["client_error_ms"]["ttft_due"] = errors
    (facts,) = (block for block in blocks(result) if isinstance(block, Facts))
    assert [fact.beside for fact in facts.facts if "client" in fact.beside] == [
        "p99 26 ms (few values); client error at most 9 at p99"
    ]


def test_units_are_not_mixed_beside_a_number() -> None:
    result = ran()
    result["loadgen"]["latency_ms"]["ttft_due"] |= {"p50": 9693.0, "p99": 18500.0}
    (facts,) = (block for block in blocks(result) if isinstance(block, Facts))
    (ttft,) = (fact for fact in facts.facts if fact.name.text == "TTFT p50")
    assert (ttft.value, ttft.beside) == ("9.69 s", "p99 18.5 s (few values)")


def test_limits_that_are_not_met_are_seen_below_the_badge_and_all_are_among_the_checks() -> None:
    limits = [f"e2el_p{p}<1ms" for p in (50, 60, 70, 80, 90)]
    result = ran(RunSettings(slo=",".join(["ttft_p99<1s", *limits])))
    seen = document([result]).blocks
    badge = next(words(block.text) for block in seen if isinstance(block, Badge))
    following, *below = [words(block.text) for block in seen[2:] if isinstance(block, Paragraph)]
    assert following.startswith("next: lower the load: ")
    assert [line.partition(":")[0] for line in below] == [
        f"SLO {limit}" for limit in limits if f"{limit} " not in badge
    ]
    assert below
    (checks,) = (note for title, note in folds(result).items() if title.startswith("All checks"))
    items, *_ = checks.blocks
    assert isinstance(items, Items)
    assert [line.split(" (")[0] for line in listed(items)] == [
        "SLO ttft_p99<1s: met",
        *(f"SLO {limit}: MISSED" for limit in limits),
    ]


def test_rates_stand_among_the_tokens() -> None:
    result = ran(RunSettings(request_rate=10.0, goodput=("ttft:22",)))
    _, rates = folds(result)["Tokens: counts, rates and efficiency"].blocks
    assert isinstance(rates, Items)
    assert any(line.startswith("Goodput from due: ") for line in listed(rates))


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
    """Its block is tested below; its last line, which is for pasting, has the figures again."""
    printed = report.render(RunResult.from_dict(result), screen=Screen(columns=120))
    lines = unwrapped(printed.splitlines())
    below = lines[lines.index("=" * 50) + 1 :]
    (load,) = (line for line in below if line.startswith("Load: "))
    without_definitions = re.sub('<span role="tooltip".*?</span>', "", html([result]))
    shown = squeezed(*(text for _, text in Page(without_definitions).texts))
    missing = [line for line in below[: below.index(load)] if squeezed(line) not in shown]
    assert missing == []
    assert squeezed(load.removeprefix("Load: ")) in shown
    state, *_ = saved_json.render(result).splitlines()
    assert [part for part in state.split(" | ") if squeezed(part) not in shown] == []


def squeezed(*texts: str) -> str:
    """Texts without blanks, and without the marks of code, which a page shows as such."""
    return re.sub(r"[\s`]", "", "".join(texts))


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
    said = [line for block in blocks(result) if isinstance(block, Items) for line in listed(block)]
    assert "status(503): request 57, first token: <b>busy</b> & [31mred" in said
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


# -- the whole


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
        "1. org/tiny: 10 requests/s",
        "2. org/tiny: 10 requests/s",
        "3. 1 request/s meets ttft_p99 < 500 ms",
    ]
    table = page.blocks[0]
    assert isinstance(table, Table)
    assert [row[3][0][0].text for row in table.rows] == ["VALID", "INVALID", "1 run"]
    ids = [value for _, name, value in Page(html([ran(), ran()])).attributes if name == "id"]
    assert len(ids) == len(set(ids))


# -- several runs


def test_a_series_has_its_answer_picture_table_and_every_run_folded() -> None:
    data = sweep(
        (1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), knee=2.0, partial="interrupted"
    )
    for point in data["points"]:
        point["result"]["completed"] = 100  # enough for a knee
    page = document([data])
    about, of_load, badge, following, drawing, pareto, table, legend, remarks, runs = page.blocks
    assert page.title == "2 requests/s meets ttft_p99 < 500 ms"
    assert isinstance(about, Paragraph)
    assert words(about.text).startswith("org/tiny, sweep over the request rate, ")
    assert isinstance(of_load, Paragraph)
    assert words(of_load.text).startswith("Load: ")
    assert isinstance(badge, Badge)
    assert badge.kind == "warning"
    assert words(badge.text).split(" \N{MIDDLE DOT} ") == [
        "measured VALID",
        "partial: interrupted",
        "4 misses it",
    ]
    assert isinstance(following, Paragraph)
    assert words(following.text).startswith("next: load the server with at most 2 requests/s")
    assert isinstance(drawing, Drawing)
    assert isinstance(pareto, Drawing)
    assert isinstance(table, Table)
    assert table.head[:4] == ("rate", "SLO", "TTFT p50", "TTFT p99")
    assert table.numbers[:3] == (False, False, True)
    assert [(first, rest[0]) for first, rest in rows(table).items()] == [
        ("1", "met"),
        ("2", "met"),
        ("4", "MISSED"),
    ]
    assert isinstance(legend, Paragraph)
    assert words(legend.text).startswith("Latencies are in ms, from due")
    assert isinstance(remarks, Note)
    assert has("Knee at 2 requests/s, the highest ratio of tokens/s to mean E2EL", data)
    assert isinstance(runs, Note)
    assert (runs.title, runs.folded) == ("Every run", True)
    (each,) = runs.blocks
    assert isinstance(each, Table)
    assert each.head[:5] == ("run", "rate", "verdict", "why", "kept in")
    links = [value for _, name, value in Page(html([data])).attributes if name == "href"]
    assert [link for link in links if link and not link.startswith("#")] == [
        "r-01.html",
        "r-02.html",
        "r-03.html",
    ]


def test_columns_of_a_series_are_in_one_order_whatever_the_slo_limits() -> None:
    data = sweep((1.0, 20.0, True)) | {"slo": "ttft_p90<500ms,tpot_mean<9ms"}
    latencies = [name for name in tables(data)["rate"].head if name[:4] in ("TTFT", "TPOT")]
    assert latencies == [
        *("TTFT p50", "TTFT p90", "TTFT p99"),
        *("TPOT mean", "TPOT p50", "TPOT p99"),
    ]


def test_a_search_shows_bounds_and_what_could_not_be_confirmed() -> None:
    data = search((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 450.0, None))
    assert document([data]).title == "2 requests/s meets ttft_p99 < 500 ms, the highest rate found"
    assert has("4 could not be confirmed", data)
    table = rows(tables(data)["rate"])
    assert table["4"][:3] == ["not confirmed", "450.0", "405.0 to 540.0"]
    whole = "4 requests/s could not be confirmed: 1 run has too few requests to show it;"
    assert has(whole, data)
    assert has("would halve the intervals", data)


def test_a_search_that_finds_nothing_is_red() -> None:
    data = sweep((1.0, 900.0, False)) | {"kind": "search"}
    data |= {"found": {"level": None, "fails": 1.0, "end": "none", "last": 1.0}}
    (badge,) = (block for block in blocks(data) if isinstance(block, Badge))
    assert badge.kind == "danger"


def test_a_series_in_which_no_run_had_an_answer_has_a_page() -> None:
    data = sweep((1.0, 20.0, None))
    data["points"][0]["latency_ms"] = dict.fromkeys(data["points"][0]["latency_ms"])
    data["points"][0]["slo"] = []
    assert charts(data) == {}
