"""Reports of results as they are saved: types the JSON, then renders it.

Tests state results as JSON.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen import report
from loadgen.config.settings import RunSettings
from loadgen.document import Document
from loadgen.document.charts.chart import Chart
from loadgen.metrics.snapshot import Snapshot
from loadgen.report import from_dict, render_series, run_page, series
from loadgen.report.console import Form
from loadgen.report.files import SavedFiles
from loadgen.report.result import RunResult
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.report.result.series import Point, Series
from loadgen.report.run_page import load_curve
from loadgen.runner.run_result import Result


def result(data: Mapping[str, Any]) -> RunResult:
    return RunResult.from_dict(data)


def render(data: dict[str, Any], form: Form = "full") -> str:
    """The console's view of a run, or of a series."""
    found = from_dict(data)
    if isinstance(found, Series):
        return render_series(found)
    return report.render(found, form=form)


def with_snapshot(data: Mapping[str, Any], snapshot: Snapshot) -> Result:
    """The result of a run in this process, which has its snapshot."""
    saved = RunResult.from_dict(data)
    return Result(
        **{name: getattr(saved, name) for name in RunResult.__struct_fields__}, snapshot=snapshot
    )


def document(results: Sequence[dict[str, Any]]) -> Document:
    return run_page.document([from_dict(each) for each in results])


def html(results: Sequence[dict[str, Any]]) -> str:
    return run_page.html([from_dict(each) for each in results])


def save(settings: RunSettings, data: dict[str, Any], snapshot: Snapshot) -> SavedFiles:
    return report.save(settings, result(data), snapshot)


def begun(kind: str, over: str, limits: str | None, latency_from: str) -> dict[str, Any]:
    """A series without points."""
    asked = {"kind": kind, "over": over, "slo": limits, "latency_from": latency_from}
    return Series.from_dict(asked).to_dict()


def point(
    level: float,
    data: dict[str, Any],
    snapshot: Snapshot,
    *,
    limits: str | None,
    saved: Sequence[str],
) -> dict[str, Any]:
    made: dict[str, Any] = to_json_values(
        series.make_point(level, result(data), snapshot, limits=limits, saved=saved)
    )
    return made


def conclude(data: dict[str, Any]) -> None:
    """Add to a series what follows from its points."""
    found = Series.from_dict(data)
    series.add_conclusions(found)
    data.update(found.to_dict())


def strongest(points: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    found = series.knee_candidate([from_json_values(each, Point) for each in points])
    made: dict[str, Any] | None = found and to_json_values(found)
    return made


def curve(data: dict[str, Any]) -> Chart | None:
    return load_curve.load_chart(Series.from_dict(data))
