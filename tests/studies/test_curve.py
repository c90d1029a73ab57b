"""The picture of several runs: throughput against latency, as PNG and as SVG."""

from typing import Any

import pytest

from loadgen.studies.reports.curve import curve


def series(*points: tuple[float | str, float | None, bool | None], **changes: Any) -> dict[str, Any]:
    """Points of a level, a latency and whether the SLO is met."""
    rows = [
        {
            "level": level,
            "met": met,
            "latency_ms": {f"{metric}_{name}": latency for metric in ("ttft", "tpot") for name in ("p50", "p99")},
            "result": {"output_throughput": None if latency is None else 100.0 * number},
        }
        for number, (level, latency, met) in enumerate(points, 1)
    ]
    whole = {"points": rows, "over": "rate", "slo": "ttft_p99<500ms,tpot_median<40ms", "found": None, "knee": None}
    return whole | changes


POINTS = ((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), ("inf", 9000.0, None))


def test_it_is_drawn_in_the_form_that_is_asked_for() -> None:
    assert curve(series(*POINTS), "png").startswith(b"\x89PNG")
    assert curve(series(*POINTS), "svg").startswith(b"<?xml")


def test_the_same_runs_make_the_same_picture() -> None:
    assert curve(series(*POINTS), "png") == curve(series(*POINTS), "png")


@pytest.mark.parametrize("mark", [{"knee": 2.0}, {"found": {"level": 2.0}}])
def test_the_knee_or_what_was_found_is_marked(mark: dict[str, Any]) -> None:
    assert curve(series(*POINTS, **mark), "png") != curve(series(*POINTS), "png")


def test_a_run_met_or_missed_is_told_by_its_colour() -> None:
    other = ((1.0, 20.0, True), (2.0, 30.0, False), *POINTS[2:])
    assert curve(series(*POINTS), "png") != curve(series(*other), "png")


def test_a_run_without_an_answer_is_left_out() -> None:
    assert curve(series(*POINTS, (8.0, None, False)), "png") == curve(series(*POINTS), "png")


def test_one_run_and_none_are_drawn_too() -> None:
    assert curve(series(POINTS[0], slo=None), "png").startswith(b"\x89PNG")
    assert curve(series((1.0, None, None)), "png").startswith(b"\x89PNG")
