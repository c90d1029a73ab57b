"""The page of a series: its answer, its charts, a row for each level, and every run."""

from loadgen.document import Drawing, Note, Paragraph, Table
from tests.helpers.html_page import Page
from tests.helpers.run_page_parts import (
    charts,
    has,
    rows,
    tables,
    words,
)
from tests.helpers.saved_json import document, html
from tests.helpers.saved_results import search, sweep


def test_a_series_has_its_answer_picture_table_and_every_run_folded() -> None:
    data = sweep(
        (1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), knee=2.0, partial="interrupted"
    )
    for point in data["points"]:
        point["result"]["completed"] = 100  # enough for a knee
    page = document([data])
    (found,) = page.answers
    drawing, pareto, table, legend, remarks, runs = page.blocks
    assert page.title == "Sweep over the request rate: model org/tiny"
    assert page.about.startswith("3 runs at 1 to 4 req/s; ")
    assert page.about.endswith("; latencies in ms from scheduled send")
    assert found.kind == "warning"
    assert found.text.split(" | ") == [
        "FOUND: 2 req/s is the highest rate that met ttft_p99 < 500 ms",
        "4 missed it",
        "measurement VALID",
        "ended early: interrupted",
    ]
    assert found.next_step.startswith("keep the load at or below 2 req/s")
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
    assert words(legend.text).startswith("* too few values")
    assert isinstance(remarks, Note)
    assert has("KNEE AT 2 req/s: the highest ratio of tokens/s to mean E2EL", data)
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
    page = document([data])
    assert page.title == "Search over the request rate: model org/tiny"
    assert page.answers[0].text.startswith(
        "FOUND: 2 req/s is the highest rate that met ttft_p99 < 500 ms (1 run) | "
    )
    assert has("4 is undecided", data)
    table = rows(tables(data)["rate"])
    assert table["4"][:3] == ["undecided", "450.0", "405.0 to 540.0"]
    whole = "4 req/s is undecided: 1 run has too few requests;"
    assert has(whole, data)
    assert has("would halve the intervals", data)


def test_a_search_that_finds_nothing_is_red() -> None:
    data = sweep((1.0, 900.0, False)) | {"kind": "search"}
    data |= {"found": {"level": None, "fails": 1.0, "end": "none", "last": 1.0}}
    (found,) = document([data]).answers
    assert found.kind == "danger"


def test_a_series_in_which_no_run_had_an_answer_has_a_page() -> None:
    data = sweep((1.0, 20.0, None))
    data["points"][0]["latency_ms"] = dict.fromkeys(data["points"][0]["latency_ms"])
    data["points"][0]["slo"] = []
    assert charts(data) == {}
