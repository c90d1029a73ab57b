"""The explanation of a run as text, as a page, and as the difference of two runs."""

import pytest

from loadgen.document import Drawing, terminal_writer
from loadgen.report.result.explanation import PHASES, Band, EngineSteps, Explanation, NamedCause
from loadgen.report.run_page.explanation import drawings
from loadgen.report.sections import explanation as section

NOTHING = dict.fromkeys(section.PARTS, 0.0)
CAUSE = NamedCause(
    name="queue-slots",
    side="server",
    ms=300.0,
    where="mean",
    sentence="requests waited 300 ms for a slot",
    evidence="4.0 of at most 4 requests ran while up to 36 waited",
    advice="raise --max-num-seqs if the KV cache has room, or add a replica",
)
STEPS = EngineSteps(
    steps=1416,
    base_ms=10.03,
    base_error_ms=0.012,
    prompt_us=19.8,
    prompt_error_us=0.31,
    stream_us=None,
    stream_error_us=None,
    kept=0.63,
    within_ms=1.1,
    sample=[(0.0, 10.0), (512.0, 20.2)],
)


def explained(
    queue_ms: float, *causes: NamedCause, steps: EngineSteps | None = STEPS
) -> Explanation:
    parts = NOTHING | {"queue": queue_ms, "prompt": 12.0, "outside": 3.0}
    return Explanation(
        answer="Requests waited 300 ms for a slot." if causes else "Nothing stands out.",
        causes=list(causes),
        requests=150,
        others=2,
        e2el_ms=800.0,
        part_kinds=dict.fromkeys(section.PARTS, "estimate") | {"cap": "exact"},
        mean_ms=parts,
        bands={name: Band(requests=30, parts_ms=parts) for name in ("p10", "p50", "p90", "p99")},
        after_first_ms={"model": 440.0, "streams": 20.0, "other": 0.0},
        stalls={},
        steps=steps,
        no_steps=None if steps else "tokens come 6.1 at a time",
        unexplained=0.01,
        contradicted=0,
    )


def text(explain: Explanation) -> str:
    return terminal_writer.text(tuple(section.blocks(explain)), 100)


def test_a_cause_has_its_evidence_and_its_advice_below_it() -> None:
    first, second, third, *_ = text(explained(300.0, CAUSE)).splitlines()
    assert first.strip() == "- Requests waited 300 ms for a slot."
    assert second.strip() == CAUSE.evidence
    assert third.strip() == f"-> {CAUSE.advice}"


def test_without_a_cause_the_answer_stands_alone() -> None:
    assert text(explained(0.0)).splitlines()[0].strip() == "- Nothing stands out."


def test_parts_that_nobody_has_are_left_out_of_the_table() -> None:
    head = next(line for line in text(explained(300.0)).splitlines() if line.startswith("TTFT"))
    assert head.split() == ["TTFT", "(ms)", "requests", "sum", "outside", "queue", "prompt"]


def test_what_a_step_costs_has_its_errors_or_says_why_it_is_not_known() -> None:
    said = " ".join(text(explained(300.0)).split())
    assert (
        "10.03 ms (standard error 0.012) + 19.8 us for each prompt token (0.31); 63% of them "
        "within 1.1 ms."
    ) in said
    refused = " ".join(text(explained(300.0, steps=None)).split())
    assert "The cost of an engine's step is not known: tokens come 6.1 at a time." in refused


def test_phases_are_shares_of_the_whole_time() -> None:
    phases = explained(300.0).phases
    assert phases["queue"] == 300.0 / 800.0
    assert phases["decode"] == pytest.approx((800.0 - 300.0 - 12.0 - 3.0) / 800.0)
    assert {part for parts in PHASES.values() for part in parts} == {*section.PARTS}
    assert sum(phases.values()) == pytest.approx(1.0)


def test_requests_that_are_left_out_are_counted() -> None:
    assert "Of 150 requests, 2 others are not in it;" in " ".join(text(explained(0.0)).split())


def test_two_runs_differ_by_their_parts() -> None:
    assert section.changed(explained(10.0), explained(310.0)) == "mean TTFT +300 ms: +300 queue"
    assert section.changed(explained(10.0), explained(10.0)) == ""


def test_the_page_has_a_waterfall_and_the_cloud_of_steps() -> None:
    assert [drawing.name for drawing in drawings(explained(300.0))] == ["waterfall", "steps"]
    (only,) = drawings(explained(300.0, steps=None))
    assert isinstance(only, Drawing)
    (panel,) = only.chart.panels
    assert [(mark.name, list(mark.highs)) for mark in panel.marks] == [
        ("outside the engine", [3.0] * 4),
        ("queue", [303.0] * 4),
        ("prompt", [315.0] * 4),
    ]
