"""Layouts: what stands where in a report, in one order for stages and in another for groups."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping

from loadgen.report.html import Block, Code, Document, Figure, Heading, Items, Line, Note, Paragraph, Span, Tone, line
from loadgen.tuning.execute.findings import Verdict
from loadgen.tuning.plan.plan import Planned
from loadgen.tuning.report import parts, reproduce
from loadgen.tuning.report.conclusion import caveats, conclusion, warnings
from loadgen.tuning.report.delta import DIGITS, fixed
from loadgen.tuning.report.standing import Standing
from loadgen.tuning.report.story import Chapter, Story
from loadgen.tuning.spec.study import Study
from loadgen.tuning.spec.workloads import loads
from loadgen.util.number_format import signed

Figures = Mapping[str, Figure]


def document(story: Story, figures: Figures) -> Document:
    """The page of a study.

    Args:
        story: What is told.
        figures: Its charts, by name.
    """
    study = story.study
    layout = {"stages": _stages, "groups": _groups}[study.report.layout]
    blocks = [*warnings(story), *_head(story, figures), *layout(story), *_tail(story, figures)]
    return Document(study.report.title or study.name, tuple(blocks))


def _head(story: Story, figures: Figures) -> Iterator[Block]:
    yield Heading(2, "Conclusion")
    if "cases" in figures:
        yield figures["cases"]
    yield from conclusion(story)
    if story.baseline is not None and story.baseline.cases:
        yield Paragraph(line("Comparison of benchmark results before and after optimization:"))
        yield parts.cases(story, story.baseline, story.winner)
    yield Note("note", "How to read this", (Items(tuple(caveats(story)), numbered=True),))
    yield Heading(2, "Optimization Objective")
    yield from parts.objective(story)


def _setup(story: Story) -> Iterator[Block]:
    study = story.study
    yield Heading(2, "Experimental Setup")
    yield Heading(3, "Model")
    yield Items(tuple(line(model) for model in dict.fromkeys(study.models.values())))
    yield Heading(3, "Hardware")
    devices = f", {study.hardware.devices} devices" if study.hardware.devices > 1 else ""
    yield Paragraph(line(f"{study.hardware.name}{devices}"))
    yield Heading(3, "Engine Version")
    yield parts.versions(story)


def _stages(story: Story) -> Iterator[Block]:
    """As a study that goes from stage to stage, each from the winner of the one before."""
    yield from _setup(story)
    if story.baseline is not None:
        yield from _benchmark(story.baseline.found.planned, story.study)
    yield Heading(2, "Experiment Results")
    for number, chapter in enumerate(story.stages, 1):
        yield Heading(3, f"{number}. {chapter.name}")
        yield from _opened(chapter)
        yield parts.arms(chapter, story)
        for standing in parts.detailed(chapter):
            yield Paragraph(line(Span(standing.name, Tone.STRONG)))
            yield _script(standing)
            yield _result(standing, story.workload)
        yield from _shortened(chapter)
        yield Paragraph(parts.ranking(chapter, story))
    if story.stages:
        yield Heading(3, "Summary of Optimization Options")
        yield parts.options(story)
    yield from _others(story, lambda standing: (_script(standing),))


def _benchmark(served: Planned, study: Study) -> Iterator[Block]:
    yield Heading(3, "Benchmark Script")
    where = " and ".join(launch.base_url for launch in served.launches)
    yield Paragraph(
        line(
            "Each workload is run by ",
            Span("loadgen", Tone.CODE),
            f" on a server that was started afresh. These lines ask the baseline's at {where}; an engine that is "
            "started by hand may listen elsewhere:",
        )
    )
    rows = [
        f"# {name}\nloadgen run {shlex.join(reproduce.run(served, study, load))}" for name, load in loads(study).items()
    ]
    yield Code("\n\n".join(rows), "bash")


def _groups(story: Story) -> Iterator[Block]:
    """As a study of groups of options, each held against the baseline."""
    yield from _setup(story)
    yield Heading(3, "Benchmark Method")
    who = "What others ran, as" if story.published else "Each arm is started afresh, and measured with"
    yield Paragraph(line(f"{who} profiles of ", Span("loadgen run --config", Tone.CODE), "."))
    yield Heading(4, "Benchmark Profiles")
    for name, load in loads(story.study).items():
        yield Paragraph(line(Span(name, Tone.STRONG)))
        yield parts.profile(load)
    yield Heading(2, "Experiment Results")
    for chapter in story.stages:
        yield Heading(3, chapter.name)
        yield from _opened(chapter)
        for standing in parts.detailed(chapter):
            yield Heading(4, standing.name)
            yield from _parameters(standing, story.workload)
            yield _result(standing, story.workload)
        yield from _shortened(chapter)
        yield parts.arms(chapter, story)
        yield from _summary(chapter, story)
    if story.stages:
        yield Heading(3, "Summary of Optimization Options")
        yield parts.groups(story)
    yield from _others(story, lambda standing: _parameters(standing, None))


def _tail(story: Story, figures: Figures) -> Iterator[Block]:
    for name, title in (("waterfall", "Gains, One by One"), ("pareto", "Speed for a User"), ("latencies", "Latencies")):
        if name in figures:
            yield Heading(2, title)
            yield figures[name]
    table = parts.noise(story)
    if table.rows or "noise" in figures:
        yield Heading(2, "Noise")
        yield from (figures[name] for name in ("noise",) if name in figures)
        yield from ((table,) if table.rows else ())
    if story.lost:
        yield Heading(2, "Failures")
        yield parts.failures(story)
    yield Heading(2, "Provenance")
    yield from parts.provenance(story)
    if story.baseline is not None:
        yield Heading(2, "Reproduce")
        yield Paragraph(
            line(
                "The script beside this page, ",
                Span("reproduce.sh", Tone.CODE),
                ", starts baseline and winner once more and measures each on the deciding workload.",
            )
        )


def _opened(chapter: Chapter) -> Iterator[Block]:
    if chapter.found.open:
        yield Note("warning", f"Not finished: {chapter.found.open}", ())
    for note in chapter.found.step.notes:
        yield Paragraph(line(Span(note, Tone.QUIET)))


def _shortened(chapter: Chapter) -> Iterator[Block]:
    left = sum(bool(arm.cases) for arm in chapter.arms) - len(parts.detailed(chapter))
    if left:
        yield Paragraph(line(f"{left} more arms stand in the table alone."))


def _script(standing: Standing) -> Note:
    return Note("info", "Serving script", (Code(parts.command(standing.found.planned), "bash"),), folded=True)


def _result(standing: Standing, workload: str, title: str = "Benchmark result") -> Note:
    case = standing.cases.get(workload)
    if case is None:
        return Note("info", f"No {title.lower()} on {workload}", (), folded=True)
    if len(case.runs) > 1:
        title = f"{title} (the start in the middle of {len(case.runs)})"
    return Note("info", title, (parts.result(case.middle),), folded=True)


def _parameters(standing: Standing, workload: str | None) -> Iterator[Block]:
    planned = standing.found.planned
    profile = [line("Profile: ", Span(workload, Tone.CODE))] if workload else []
    served = line("Served: ", Span(planned.model, Tone.CODE), " by ", Span(planned.arm.engine, Tone.CODE))
    yield Items((*profile, served, line("Backend Parameters:")))
    yield Code(parts.parameters(planned), "bash")


def _summary(chapter: Chapter, story: Story) -> Iterator[Block]:
    """The best arm of a group in words, beside the reference."""
    best, reference = chapter.best, chapter.reference
    if best is None or reference is None or best is reference:
        return
    if best.found.verdict is Verdict.INFEASIBLE:
        yield Items((line("Summary: ", Span(best.name, Tone.CODE), f" is not considered: {best.found.why}."),))
        return
    delta = best.deltas.get(story.workload)
    ours, theirs = best.cases.get(story.workload), reference.cases.get(story.workload)
    if delta is None or ours is None or theirs is None or ours.achieved is None or theirs.achieved is None:
        return
    yield Items((_compared(best, reference, story),))


def _compared(best: Standing, reference: Standing, story: Story) -> Line:
    ours, theirs = best.cases[story.workload], reference.cases[story.workload]
    delta = best.deltas[story.workload]
    assert ours.achieved is not None
    assert theirs.achieved is not None
    direction = ("faster", "slower") if story.unit == "tok/s" else ("higher", "lower")
    apart = fixed(abs(ours.achieved - theirs.achieved), story.unit)
    return line(
        "Summary: ",
        Span(best.name, Tone.CODE),
        f" {story.label} = {parts.score(ours.achieved, ours, story)}, ",
        Span(reference.name, Tone.CODE),
        f" {story.label} = {parts.score(theirs.achieved, theirs, story)}. ",
        Span(best.name, Tone.CODE),
        f" is {direction[delta.share < 0]} by {apart} ",
        delta.span,
        *_tpot(best, reference, story.workload),
        ".",
    )


def _tpot(best: Standing, reference: Standing, workload: str) -> list[str]:
    ours, theirs = (arm.cases[workload].mean("mean_tpot_ms") for arm in (best, reference))
    if ours is None or theirs is None:
        return []
    both = f"; Mean TPOT = {fixed(ours)} ms vs {fixed(theirs)} ms"
    if ours == theirs:
        return [both]
    verb = "reduced" if ours < theirs else "raised"
    return [f"{both}, {verb} by {fixed(abs(ours - theirs))} ms ({signed(ours / theirs - 1, DIGITS)})"]


def _others(story: Story, served: Callable[[Standing], Iterable[Block]]) -> Iterator[Block]:
    """Baseline and winner on the workloads that did not decide."""
    chapter = story.confirmation
    if chapter is None:
        return
    yield Heading(3, "Other Benchmark Cases")
    fresh = "" if story.published else ", each started afresh"
    yield Paragraph(line(f"Baseline and winner{fresh}, on every workload."))
    yield from _opened(chapter)
    yield parts.arms(chapter, story)
    for standing in chapter.arms:
        title = "Baseline" if standing is chapter.reference else "Optimized"
        yield Heading(4, title)
        yield from served(standing)
        for workload in standing.cases:
            yield _result(standing, workload, f"{title} benchmark result on {workload}")
