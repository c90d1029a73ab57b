"""Pareto chart: tokens per second and GPU against tokens per second for a user, over the levels of a sweep."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loadgen.checks import Verdict
from loadgen.report.html import Chart, Curve, Dots, Linear, Mark, Panel
from loadgen.report.html.charts.chart import Look
from loadgen.report.result.series import Series
from loadgen.report.series import UNITS, level_text
from loadgen.report.series_rows import Row, rows
from loadgen.util.number_format import plural

HEIGHT = 190
MAX_LABELS = 12  # more would cover each other
USER = "tok/s for a user"


class _Place(NamedTuple):
    """A level of the sweep.

    Attributes:
        user: Tokens per second for a user.
        gpu: Output tokens per second and GPU, or of the server where the number of GPUs is unknown.
        row: The level.
    """

    user: float
    gpu: float
    row: Row


def pareto_chart(series: Series) -> Chart | None:
    """Draw output tokens/s per GPU over tokens/s for a user, with the levels that no other level exceeds in both.

    None for a search, and where fewer than two levels have both numbers. An INVALID run is never on the front.
    """
    shown = rows(series) if series.kind == "sweep" else []
    per_gpu = all(row.efficiency is not None and row.efficiency.gpus is not None for row in shown)
    places = list(_places(shown, per_gpu=per_gpu))
    if len(places) < 2:
        return None
    front = front_of(places)
    unit = "tok/s per GPU" if per_gpu else "tok/s"
    xs = sorted({place.user for place in places})
    scale = Linear.over(unit, [place.gpu for place in places])
    panel = Panel(f"Output {unit}", scale, tuple(_marks(places, front, scale)), HEIGHT)
    about = f"output {unit} against {USER} at {plural(len(places), 'level')} of {UNITS[series.over]}"
    return Chart("Throughput and interactivity", about, USER, Linear.over(USER, xs), (panel,), xs)


def front_of(places: Sequence[_Place]) -> list[_Place]:
    """Return the places that none exceeds in both numbers, by ascending speed for a user."""
    front: list[_Place] = []
    for place in sorted(places, key=lambda place: (-place.user, -place.gpu)):
        if place.row.verdict != Verdict.INVALID and (not front or place.gpu > front[-1].gpu):
            front.append(place)
    return front[::-1]


def _places(shown: Sequence[Row], *, per_gpu: bool) -> Iterator[_Place]:
    for row in shown:
        found = row.efficiency
        gpu = found.output_tokens_per_s_per_gpu if found and per_gpu else row.throughput("output_throughput")
        if found and found.output_tokens_per_s_per_user and gpu:
            yield _Place(found.output_tokens_per_s_per_user, gpu, row)


def _marks(places: Sequence[_Place], front: Sequence[_Place], scale: Linear) -> Iterator[Mark]:
    yield Curve("", [place.user for place in front], [place.gpu for place in front])
    invalid = [place for place in places if place.row.verdict == Verdict.INVALID]
    exceeded = [place for place in places if place not in front and place not in invalid]
    kinds: tuple[tuple[str, Look, Sequence[_Place]], ...] = (
        ("Pareto front", "first", front),
        ("below the front", "open", exceeded),
        (Verdict.INVALID, "missed", invalid),
    )
    for name, look, own in kinds:
        if own:
            labels = [level_text(place.row.level) for place in own] if len(places) <= MAX_LABELS else ()
            texts = [f"{level_text(place.row.level)}: {scale.written(place.gpu)}" for place in own]
            yield Dots(name, [place.user for place in own], [place.gpu for place in own], look, labels, texts)
