"""The charts of a report: their data, and which are left out."""

import math
from pathlib import Path

import pytest

from loadgen.document.charts.chart import Bars, Curve, Dots
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.report.charts import drawings
from loadgen.lab.study.report.report_model import ReportModel
from tests.helpers import study_reports
from tests.helpers.study_reports import found
from tests.helpers.study_walks import Came


def marks(findings: Findings, folder: Path, name: str) -> list[Bars | Curve | Dots]:
    """The marks of a chart's only panel."""
    (panel,) = drawings(ReportModel(findings, {}), folder)[name].chart.panels
    return list(panel.marks)  # type: ignore[arg-type]


def test_cases_are_shares_of_the_baseline(tmp_path: Path) -> None:
    came = {"baseline": 10.0, "fp8": 12.5, "quantization/fp8": 12.5}
    findings = found(lambda request: came[request.arm], stages=study_reports.STAGES[:1])
    baseline, optimized = marks(findings, tmp_path, "cases")
    assert isinstance(baseline, Bars)
    assert isinstance(optimized, Bars)
    assert (baseline.highs, list(baseline.labels)) == ([100.0, 100.0], ["40", "40"])
    assert optimized.highs == [pytest.approx(125.0)] * 2
    assert list(optimized.labels) == ["50 (+25.0%)"] * 2


def test_waterfall_goes_from_the_baseline_over_adoptions_to_the_confirmation(
    tmp_path: Path,
) -> None:
    came = {"baseline": 10.0, "fp8": 12.5, "quantization/fp8": 12.5}
    bars = marks(
        found(lambda request: came[request.arm], stages=study_reports.STAGES[:1]),
        tmp_path,
        "waterfall",
    )
    assert [(bar.lows[0], bar.highs[0], bar.look) for bar in bars if isinstance(bar, Bars)] == [
        (0.0, pytest.approx(40.0), "base"),
        (pytest.approx(40.0), pytest.approx(50.0), "gain"),
        (0.0, pytest.approx(50.0), "first"),
    ]


def test_waterfall_has_each_arm_that_the_winner_builds_on(tmp_path: Path) -> None:
    # fp8 is no gain, but the winner starts from it
    came = {
        "baseline": 10.0,
        "fp8": 9.0,
        "quantization/fp8": 9.0,
        "max_seqs=64": 18.0,
        "seqs/max_seqs=64": 18.0,
    }
    stages = [
        study_reports.STAGES[0],
        {"name": "seqs", "grid": {"max_seqs": [64]}, "from": "quantization/fp8"},
    ]
    bars = marks(found(lambda request: came[request.arm], stages=stages), tmp_path, "waterfall")
    assert [(bar.labels[0], bar.look) for bar in bars if isinstance(bar, Bars)][1:3] == [
        ("-10.0%", "loss"),
        ("+100.0%", "gain"),
    ]
    assert bars[2].highs == [pytest.approx(72.0)]  # type: ignore[union-attr]  # 4 * 18


def test_pareto_frontier_ascends_in_user_speed_and_falls_in_throughput(tmp_path: Path) -> None:
    tpot = {"baseline": 20.0, "fp8": 30.0, "max_seqs=64": 25.0, "max_seqs=128": 40.0}
    total = {"baseline": 1000.0, "fp8": 3000.0, "max_seqs=64": 2000.0, "max_seqs=128": 2500.0}
    names = {"quantization/fp8": "fp8", "seqs/max_seqs=128": "max_seqs=128"}

    def came(request: TrialRequest) -> Came:
        name = names.get(request.arm, request.arm)
        return {"total": total[name], "median_tpot_ms": tpot[name]}

    frontier = marks(found(came), tmp_path, "pareto")[0]
    assert isinstance(frontier, Curve)
    assert [round(x, 6) for x in frontier.xs] == [round(1000 / ms, 6) for ms in (30.0, 25.0, 20.0)]
    assert frontier.ys == pytest.approx([1500.0, 1000.0, 500.0])


def test_noise_is_the_deviation_from_the_mean_of_each_arm(tmp_path: Path) -> None:
    levels = {0: 0.99, 1: 1.01, 2: 1.0}
    findings = found(lambda request: 1000.0 * levels[request.block], starts=3)
    dots = next(mark for mark in marks(findings, tmp_path, "noise") if isinstance(mark, Dots))
    assert [round(x, 9) for x in dots.xs] == [-1.0, 1.0, 0.0]


def test_latencies_are_percentiles_of_whole_results(tmp_path: Path) -> None:
    findings = found()
    study_reports.keep(findings, tmp_path)
    panels = drawings(ReportModel(findings, {}), tmp_path)["latencies"].chart.panels
    assert [panel.title for panel in panels] == ["TTFT, ms", "TPOT, ms", "E2EL, ms"]
    baseline, optimized = panels[0].marks
    assert isinstance(baseline, Curve)
    assert isinstance(optimized, Curve)
    median = min(range(len(baseline.xs)), key=lambda place: abs(baseline.xs[place] - math.log10(2)))
    assert (baseline.ys[median] or 0) / (optimized.ys[median] or 1) == pytest.approx(1.25, rel=0.02)


def test_charts_without_data_are_left_out(tmp_path: Path) -> None:
    assert drawings(ReportModel(found(starts=0), {}), tmp_path) == {}
    assert set(drawings(ReportModel(found(starts=3), {}), tmp_path)) == {"cases", "noise"}
