"""The numbers of the page of a run: six figures, and the table of latencies."""

import re

from loadgen.config.settings import RunSettings
from loadgen.document import Facts, Items, Paragraph
from tests.helpers.run_page_parts import (
    blocks,
    folds,
    has,
    listed,
    rows,
    tables,
    words,
)
from tests.helpers.saved_json import document
from tests.helpers.saved_results import ran


def test_every_latency_is_a_row_with_its_meaning() -> None:
    result = ran()
    table = tables(result)["Latency (ms)"]
    found = rows(table)
    ttft = result["loadgen"]["latency_ms"]["ttft_due"]
    assert table.head == ("Latency (ms)", "mean", "p50", "p90", "p99", "max", "count")
    assert found["TTFT from scheduled send"][:4] == [
        f"{ttft['mean']:#.4g}",
        f"{ttft['p50']:#.4g}",
        f"{ttft['p90']:#.4g}*",
        f"{ttft['p99']:#.4g}*",
    ]
    assert {len(re.sub("[^0-9]", "", cell)) for row in found.values() for cell in row[:5]} == {4}
    assert found["TTFT from scheduled send"][-1] == "60"
    assert all(row[0][0][0].about for row in table.rows)
    assert has("* too few requests: p90 needs 64, p99 needs 662", result)


def test_row_that_the_client_may_have_moved_is_marked() -> None:
    result = ran()
    result["loadgen"]["client_error_ms"]["e2el_sent"] = {"mean": 0.1, "p90": 9.0}
    assert has("E2EL from actual send ~", result)
    assert has("~ E2EL from actual send: timing error of loadgen at most 9 at p90", result)
    assert not has("E2EL from scheduled send ~", result)


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
    assert [fact.beside for fact in facts.facts if "timing" in fact.beside] == [
        "p99 26 ms (few values); timing error of loadgen at most 9 at p99"
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
    page = document([result])
    badge, following = page.answers[0].text, page.answers[0].next_step
    below = [words(block.text) for block in page.blocks if isinstance(block, Paragraph)]
    assert following.startswith("lower the load; find ")
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
