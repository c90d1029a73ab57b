"""The conclusion of a report, its warnings and its caveats."""

import itertools
from collections.abc import Iterator

from loadgen.document import Badge, Block, Items, Line, Note, Paragraph, Span, Tone, line, prose
from loadgen.lab.study.execute.arm_result import ArmResult
from loadgen.lab.study.report.answer import after_study, answer
from loadgen.lab.study.report.arm_text import (
    DIGITS,
    TONES,
    assumptions,
    difference_span,
    place,
    score,
    serving_command,
)
from loadgen.lab.study.report.findings_text import shortfall
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.report.sections import next_step
from loadgen.util.number_format import first_of, percent, plural, signed

COMMAND = "Serving Command"
MAX_REASONS = 3  # of SUSPECT runs that are shown
MAX_RUNS = 3  # that are named of each reason


def warnings(model: ReportModel) -> Iterator[Block]:
    """Yield the answer, and the notes about results of limited value."""
    if any(run.findings.simulated for run in model.runs):
        text = "These numbers describe loadgen's simulator, not a real server."
        yield Note("danger", "SIMULATED ENGINE", (Paragraph.of(text),))
    found = answer(model.findings)
    yield Badge(found.kind, line(found.text))
    yield from next_step.blocks(after_study(model.findings))
    if model.published:
        text = (
            "These results are imported, one run of each arm on each workload. Differences have no "
            "bounds, and nothing was confirmed. The study file says which arms the author chose "
            "(`expect`)."
        )
        remarks: list[Block] = [Paragraph(prose(text))]
        if assumed := tuple(assumptions(model)):
            remarks += [Paragraph.of("What was assumed, and what does not fit:"), Items(assumed)]
        yield Note("warning", "Published results", tuple(remarks))
    if model.findings.open:
        blocks: list[Block] = []
        if model.missing:
            blocks += [
                Paragraph.of("These results may change. Missing:"),
                Items.of(model.missing),
            ]
        if why := list(shortfall(model.findings)):
            blocks += [Paragraph.of("What it would take:"), Items.of(why)]
        yield Note("warning", f"Unfinished study: {model.findings.open}", tuple(blocks))


def conclusion(model: ReportModel) -> Iterator[Block]:
    """Yield the recommended configuration and how certain it is."""
    if model.baseline is None or not model.runs:
        yield Paragraph.of("Nothing has been measured yet.")
        return
    if model.findings.nothing_feasible:
        yield Paragraph.of(Span("No arm that ran met the limits of the study.", Tone.STRONG))
        if model.findings.closest is not None:
            _, closest = model.findings.closest
            why = f": {closest.why}" if closest.why else ""
            yield Paragraph.of("The closest was ", Span(closest.name, Tone.CODE), why)
            yield from serving_command(closest.planned, model, COMMAND, folded=False)
        return
    winner = model.winner
    if winner is None:
        yield Paragraph(_baseline_stays(model))
        yield from serving_command(model.baseline.planned, model, COMMAND, "tip", folded=False)
        return
    aim = f"{'most' if model.more_is_better else 'least'} {model.label} on {model.workload}"
    name = f'"{model.hardware}"' if model.published else model.hardware
    where = f" on {name}" if model.hardware else ""
    standing = "Best so far" if model.findings.confirmed is None else "Recommended configuration"
    if model.published:
        standing = "The author chose this configuration"
    yield Paragraph.of(f"{standing} of {winner.planned.model}{where}, for the {aim}:")
    yield from serving_command(winner.planned, model, COMMAND, "tip", folded=False)
    yield from _gains(model, winner)


def caveats(model: ReportModel) -> Iterator[Line]:
    """Yield what bounds, marks and choices mean."""
    decision = model.study.decision
    if not model.published:
        yield line(
            "A difference with bounds compares starts in the same blocks, so it may differ from "
            "the ratio of the two means beside it. Bounds of the deciding workload allow for "
            "every look and every arm of the stage: a stage adopts an arm that is not "
            f"{percent(decision.min_effect, 1)} better with a probability of at most "
            f"{percent(1 - decision.confidence, 1)}, if its noise is that of the steps before. "
            "Bounds of other workloads are of one look."
        )
        yield line(
            f"In a result, the better arm is first: {model.sign} stands between arms that differ, "
            "≈ between arms without a difference that is shown, and a comma where nothing is known."
        )
    if model.confirmation is not None and model.winner is not None and not model.published:
        yield line(
            "The gain of the winner is that of the confirmation, in fresh starts of both arms. "
            "Its gain in a stage, by which it was chosen, is of other starts."
        )
    yield line(
        "Stages were tried in turn, so a combination that no stage tried may be better. The "
        "results hold for this hardware, these versions and these workloads."
    )
    results = itertools.chain.from_iterable(arm.workloads.values() for arm in model.arms)
    if any(result.estimated for result in results):
        yield line(
            "(est.): measured on a part of the box, and multiplied by how often that part fits "
            "into it."
        )
    if model.winner and model.baseline and model.study.objective.accuracy is None:
        served = model.winner.planned.model
        replaced = model.baseline.planned.model
        if served != replaced:
            yield line(
                f"The winner serves {served} instead of {replaced}. The quality of its answers "
                "was not checked."
            )
    if repeated := sum(arm.repeated for arm in model.arms):
        starts = len(model.findings.trials)
        yield line(f"Other programs disturbed {repeated} of {starts} starts; these were repeated.")


def suspect_runs(model: ReportModel) -> Iterator[Block]:
    """Yield why runs are SUSPECT, which stands beside their numbers."""
    count = 0
    reasons: dict[str, list[str]] = {}
    for trial in model.findings.trials:
        request = trial.request
        again = " again" if request.attempt else ""
        start = f"{request.step}/{request.arm} block {request.block + 1}{again}"
        for workload, run in trial.runs.items():
            if run.findings.verdict == "SUSPECT":
                count += 1
                name = (
                    place(run) if run.findings.provenance is not None else f"{start} on {workload}"
                )
                for reason in run.findings.reasons or ["without a reason"]:
                    reasons.setdefault(reason, []).append(name)
    if not count:
        return
    shown = [f"{reason} ({first_of(names, MAX_RUNS)})" for reason, names in reasons.items()][
        :MAX_REASONS
    ]
    more = len(reasons) - MAX_REASONS
    left = (
        f"; and {plural(more, 'more reason')}, which `loadgen tune export` lists"
        if more > 0
        else ""
    )
    yield Paragraph(
        prose(f"{count} of {len(model.runs)} runs are SUSPECT: {'; '.join(shown)}{left}")
    )


def _baseline_stays(model: ReportModel) -> Line:
    finalist = model.finalist
    least = percent(model.study.decision.min_effect, 1)
    if finalist is None and model.published:
        return line(
            "No results are published of an arm that the study expects to win, so the baseline "
            "stays:"
        )
    if finalist is None and not any(arm.comparison is not None for arm in model.arms):
        return line("No arm has been compared with the baseline. It is served by:")
    if finalist is None:
        when = " so far" if model.findings.open else ""
        return line(
            f"No arm{when} is shown to be {least} better than the baseline, so the baseline stays:"
        )
    name = Span(finalist.name, Tone.CODE)
    why = [f" ({finalist.verdict}", *_difference(model, finalist)]
    if model.published:
        return line(
            "The author chose ",
            name,
            ", but its results do not allow that",
            *why,
            "). The baseline stays:",
        )
    return line("Fresh starts did not confirm ", name, *why, "), so the baseline stays:")


def _gains(model: ReportModel, winner: ArmResult) -> Iterator[Block]:
    workload = model.workload
    if workload not in winner.workloads:
        missing = (
            f"No result of this configuration on {workload} is known, so its gain there is "
            "not known either."
        )
        yield Paragraph.of(missing)
        return
    others: list[tuple[list[str | Span], ArmResult]] = []
    if model.published:
        value = score(winner.workloads[workload], model, model.unit)
        yield Paragraph.of(f"{model.label} on {workload}, from single runs: {value}.")
        others += [(["the baseline"], model.baseline)] if model.baseline else []
    else:
        gain = _difference(model, winner)
        if model.findings.confirmed is None:
            text = line(
                f"{model.label} compared with the baseline:",
                *gain,
                ", not yet confirmed by fresh starts.",
            )
        else:
            remark = f" ({winner.why})" if winner.why else ""
            text = line(
                f"Confirmed by fresh starts of baseline and winner: {model.label}",
                *gain,
                f"{remark}.",
            )
        yield Paragraph(text)
    for overtaken, arm in model.overtaken.items():
        others.append(([Span(overtaken, Tone.CODE), " (not part of the winner)"], arm))
    lines = []
    for name, arm in others:
        apart = model.apart(winner, arm)
        if apart is not None:
            value = score(arm.workloads[workload], model, model.unit)
            change = Span(
                f"({signed(apart.share, DIGITS)}; {apart.bounds(DIGITS)})", TONES[apart.direction]
            )
            lines.append(line("compared with ", *name, f", {value}: ", change))
    if lines:
        yield Items(tuple(lines))


def _difference(model: ReportModel, arm: ArmResult) -> list[str | Span]:
    difference = model.difference(arm)
    return [] if difference is None else [" ", difference_span(arm, difference)]
