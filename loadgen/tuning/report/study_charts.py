"""Drawn: the charts of a report; one for which there is no data is left out."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from loadgen.report.html import Figure
from loadgen.tuning.report import charts, latencies
from loadgen.tuning.report.standing import Standing
from loadgen.tuning.report.story import Story
from loadgen.util.number_format import signed


def drawn(story: Story, folder: Path) -> dict[str, Figure]:
    """The charts by name: cases, waterfall, latencies, pareto, noise.

    Args:
        story: What is told.
        folder: Of the store, where whole results lie.
    """
    return {figure.name: figure for figure in _all(story, folder)}


def _all(story: Story, folder: Path) -> Iterator[Figure]:
    baseline = story.baseline
    if baseline is not None and baseline.cases:
        yield from _cases(story, baseline)
        yield from _waterfall(story, baseline)
        yield from _latencies(story, folder, baseline)
    yield from _pareto(story)
    yield from _noise(story)


def _cases(story: Story, baseline: Standing) -> Iterator[Figure]:
    winner = story.winner
    found: dict[str, tuple[float, float | None, str]] = {}
    for name in (each for each in story.workloads if each in baseline.cases):
        case = baseline.cases[name]
        ours = winner.cases.get(name) if winner else None
        delta = winner.deltas.get(name) if winner else None
        if case.achieved is not None:
            found[name] = (case.achieved, ours.achieved if ours else None, signed(delta.share) if delta else "")
    if found:
        about = f"{story.label} of {'baseline and winner' if winner else 'the baseline'} on {', '.join(found)}"
        yield Figure("cases", about, charts.cases(found, _label(story)))


def _waterfall(story: Story, baseline: Standing) -> Iterator[Figure]:
    rungs = [(rung.name, rung.delta.share) for rung in story.rungs if rung.delta is not None]
    start = baseline.cases.get(story.workload)
    if not rungs or start is None or start.achieved is None:
        return
    end = story.finalist.cases.get(story.workload) if story.finalist and story.confirmation else None
    png = charts.waterfall(
        start.achieved, rungs, end.achieved if end else None, _label(story), more_is_better=story.more_is_better
    )
    yield Figure("waterfall", f"What each stage added to the {story.label} of the baseline", png)


def _latencies(story: Story, folder: Path, baseline: Standing) -> Iterator[Figure]:
    arms = {"baseline": baseline} | ({"optimized": story.winner} if story.winner else {})
    found: dict[str, dict[str, latencies.Curve]] = {}
    for name, standing in arms.items():
        if story.workload in standing.cases:
            for title, curve in latencies.curves(folder, standing.cases[story.workload].middle).items():
                found.setdefault(title, {})[name] = curve
    if found:
        about = f"Distributions of {', '.join(found)} on {story.workload}, of the run in the middle of each arm's"
        yield Figure("latencies", about, charts.latencies(found))


def _pareto(story: Story) -> Iterator[Figure]:
    known = {
        identity: (name, case.user_tps, case.gpu_tps)
        for identity, (name, case) in story.speeds.items()
        if case.user_tps is not None and case.gpu_tps is not None
    }
    if len(known) < 2:
        return
    colours = {
        standing.found.planned.identity: (name, colour)
        for name, standing, colour in (
            ("winner", story.winner, charts.BLUE),
            ("baseline", story.baseline, charts.RED),
        )
        if standing is not None
    }
    points = []
    for identity, (name, user, gpu) in known.items():
        role, colour = colours.get(identity, ("", charts.GREY))
        points.append(charts.Point(role or name, user, gpu, colour, bool(role)))
    about = "Output tokens/s that a user sees against output tokens/s of a device, for every configuration"
    yield Figure("pareto", about, charts.pareto(points))


def _noise(story: Story) -> Iterator[Figure]:
    rows = {}
    for chapter in story.chapters:
        deviations = [
            value / statistics.fmean(arm.found.values) - 1
            for arm in chapter.arms
            if len(arm.found.values) > 1
            for value in arm.found.values
        ]
        if deviations:
            rows[chapter.name] = deviations
    if rows:
        png = charts.noise(rows, story.study.decision.min_effect)
        yield Figure("noise", "How far starts of the same arm are from their mean, step by step", png)


def _label(story: Story) -> str:
    return f"{story.label} ({story.unit})"
