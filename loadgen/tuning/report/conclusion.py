"""Conclusion: what a study comes down to, in words, and what its reader should bear in mind."""

from collections.abc import Iterator

from loadgen.report.html import Block, Code, Items, Line, Note, Paragraph, Span, Tone, line
from loadgen.tuning.report import parts
from loadgen.tuning.report.delta import beside
from loadgen.tuning.report.standing import Standing
from loadgen.tuning.report.story import Story
from loadgen.util.number_format import percent


def warnings(story: Story) -> Iterator[Block]:
    """What stands above everything else: results that mean less than they seem to."""
    if story.simulated:
        text = "These numbers describe loadgen's simulator, no real server."
        yield Note("danger", "SIMULATED ENGINE", (Paragraph(line(text)),))
    if story.published:
        text = "Others measured this, each arm once: nothing tells how sure a difference is, and none is claimed to be."
        yield Note("warning", "Published results", (Paragraph(line(text)),))
    if story.findings.open:
        missing = Items(tuple(line(each) for each in story.missing))
        blocks = (Paragraph(line("What is told here may change. What is missing:")), missing) if story.missing else ()
        yield Note("warning", f"Unfinished study: {story.findings.open}", blocks)


def conclusion(story: Story) -> Iterator[Block]:
    """The configuration that is recommended, and how sure that is."""
    if story.baseline is None or not story.runs:
        yield Paragraph(line("Nothing has been measured yet."))
        return
    if story.findings.nothing_feasible:
        yield from _nothing_held(story)
        return
    hardware, winner = story.study.hardware.name, story.winner
    if winner is None:
        yield Paragraph(_kept(story))
        yield _command(story.baseline)
        return
    model = winner.found.planned.model
    unsure = not story.published and story.findings.confirmed is None
    what = "Best so far" if unsure else "Recommended configuration"
    yield Paragraph(line(f"{what} of {model} on {hardware}, for the {_aim(story)}:"))
    yield _command(winner)
    yield Paragraph(_confirmed(story, winner))


def caveats(story: Story) -> Iterator[Line]:
    """What bounds, marks and choices mean."""
    decision = story.study.decision
    if not story.published:
        yield line(
            "A difference stands with its bounds. They are of starts in the same blocks, so a percentage may differ "
            "from the ratio of the two means beside it; those of the deciding workload allow for every look that was "
            f"taken and every arm of the stage: a stage adopts an arm that is not {percent(decision.min_effect, 1)} "
            f"better with a chance of at most {percent(1 - decision.confidence, 1)}. Those of other workloads are of "
            "one look."
        )
    yield line(
        "Stages were tried in turn, so a combination that no stage tried may be better. What is told holds for this "
        "hardware, these versions and these workloads."
    )
    if any(case.estimated for chapter in story.chapters for arm in chapter.arms for case in arm.cases.values()):
        yield line("(est.): measured on a part of the box, and multiplied by how often that part fits into it.")
    yield from _models(story)
    yield from _doubts(story)


def _aim(story: Story) -> str:
    return f"{'most' if story.more_is_better else 'least'} {story.label} on {story.workload}"


def _command(standing: Standing) -> Note:
    return Note("tip", "Serving Command", (Code(parts.command(standing.found.planned), "bash"),), folded=False)


def _kept(story: Story) -> Line:
    finalist, least = story.finalist, percent(story.study.decision.min_effect, 1)
    if finalist is None:
        begun = "so far" if story.findings.open else "that was tried"
        return line(f"Nothing {begun} is shown to be {least} better than the baseline, so that stays:")
    delta = finalist.deltas.get(story.workload)
    return line(
        f"{'Published results do' if story.published else 'Fresh starts did'} not confirm ",
        Span(finalist.name, Tone.CODE),
        f" ({finalist.found.verdict}",
        *beside(delta),
        "), so the baseline stays:",
    )


def _confirmed(story: Story, winner: Standing) -> Line:
    delta = beside(winner.deltas.get(story.workload))
    if story.published:
        return line(f"{story.label} beside the baseline:", *delta)
    if story.findings.confirmed is None:
        return line(f"{story.label} beside the baseline:", *delta, ", which fresh starts have not confirmed yet.")
    noted = f" ({winner.found.why})" if winner.found.why else ""
    return line(f"Confirmed by fresh starts of baseline and winner: {story.label}", *delta, f"{noted}.")


def _nothing_held(story: Story) -> Iterator[Block]:
    closest = story.closest
    yield Paragraph(line(Span("Nothing that ran held what the study demands.", Tone.STRONG)))
    if closest is not None:
        why = f": {closest.found.why}" if closest.found.why else ""
        yield Paragraph(line("The closest was ", Span(closest.name, Tone.CODE), why))
        yield Note("info", "Serving Command", (Code(parts.command(closest.found.planned), "bash"),), folded=False)


def _models(story: Story) -> Iterator[Line]:
    if story.winner is None or story.baseline is None or story.study.objective.accuracy is not None:
        return
    ours, theirs = story.winner.found.planned.model, story.baseline.found.planned.model
    if ours != theirs:
        yield line(f"The winner serves {ours} in place of {theirs}, and whether it answers as well was not looked at.")


def _doubts(story: Story) -> Iterator[Line]:
    doubtful = [ran.summary["loadgen"] for ran in story.runs if ran.summary["loadgen"].get("verdict") == "SUSPECT"]
    if doubtful:
        reasons = dict.fromkeys(reason for own in doubtful for reason in own.get("reasons", ()))
        shown = "; ".join(list(reasons)[:3]) or "without a reason"
        yield line(f"{len(doubtful)} of {len(story.runs)} runs are SUSPECT: {shown}")
