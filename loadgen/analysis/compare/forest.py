"""Forest plot: the changes of a candidate with their intervals, a row for each metric."""

import math
from collections.abc import Sequence

from loadgen.analysis.compare.row import Conclusion, Row
from loadgen.analysis.compare.texts import CONFIDENCE_TEXT, SIGNIFICANT, change
from loadgen.report.html import Chart, Curve, Dots, Linear, Mark, Names, Panel, Whiskers
from loadgen.report.html.charts.chart import WhiskerLook
from loadgen.util.number_format import plural

ROW, EDGE = 19, 8  # pixels of a row, and of the space above and below all rows
LEAST, MAX_BY_CHANGE = 10.0, 4.0  # the axis ends at least here, %, and at most at so many times the largest change
ROOM = 0.2  # of the axis, for the labels behind the whiskers
LOOKS: dict[Conclusion, tuple[WhiskerLook, str]] = {
    Conclusion.BETTER: ("gain", "better"),
    Conclusion.WORSE: ("loss", "worse"),
    Conclusion.MAYBE: ("other", "maybe"),
    Conclusion.NO_SIGNIFICANT_DIFFERENCE: ("plain", "no significant difference"),
}


def forest(rows: Sequence[Row], names: tuple[str, str]) -> Chart | None:
    """Draw the relative changes of some rows; None if there are none.

    Args:
        rows: Shares, which have no place on the axis, and metrics of the server are left out.
        names: Of the baseline and of the candidate.
    """
    own = [row for row in rows if not row.metric.is_share and not row.metric.from_server]
    shown = [row for row in own if row.change is not None]
    if not shown:
        return None
    places = {row.metric.name: float(place) for place, row in enumerate(shown)}
    zero = Curve("", [0.0, 0.0], [-0.5, len(shown) - 0.5], colour=6)
    marks: list[Mark] = [zero, *_whiskers(shown, places)]
    if unknown := [row for row in shown if row.bounds is None]:
        xs = [100 * (row.change or 0.0) for row in unknown]
        ys = [places[row.metric.name] for row in unknown]
        marks.append(Dots("no interval", xs, ys, "open", [change(row) for row in unknown]))
    scale = Names(tuple(row.metric.title for row in shown))
    panel = Panel("", scale, tuple(marks), height=ROW * len(shown) + EDGE)
    base, candidate = names
    about = f"Changes of {plural(len(shown), 'metric')} from {base} to {candidate}, with {CONFIDENCE_TEXT} intervals"
    return Chart("What changed", about, f"change from {base} to {candidate}, %", _scale(shown), (panel,))


def _whiskers(shown: Sequence[Row], places: dict[str, float]) -> list[Whiskers]:
    found = []
    for conclusion, (look, name) in LOOKS.items():
        own = [(row, row.bounds) for row in shown if row.conclusion is conclusion and row.bounds is not None]
        if own:
            found.append(
                Whiskers(
                    name,
                    at=[places[row.metric.name] for row, _ in own],
                    lows=[100 * low for _, (low, _) in own],
                    highs=[100 * high for _, (_, high) in own],
                    look=look,
                    across=True,
                    values=[100 * (row.change or 0.0) for row, _ in own],
                    labels=[change(row) if row.conclusion in SIGNIFICANT else "" for row, _ in own],
                )
            )
    return found


def _scale(shown: Sequence[Row]) -> Linear:
    """Choose an axis for all changes, and for their intervals unless these are much wider."""
    changes = [100 * (row.change or 0.0) for row in shown]
    most = MAX_BY_CHANGE * max(map(abs, changes), default=0.0) + LEAST
    ends = [100 * end for row in shown if row.bounds is not None for end in row.bounds if math.isfinite(end)]
    low, high = (limit(max(-most, min(end, most)) for end in (*changes, *ends, 0.0)) for limit in (min, max))
    return Linear.around("%", [low, high + ROOM * (high - low)])
