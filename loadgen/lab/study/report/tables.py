"""The tables of a report."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from loadgen.document import Block, Line, Paragraph, Span, Table, Tone, cell, line, prose
from loadgen.errors import Place
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict, WorkloadResult
from loadgen.lab.study.execute.facts import fact_name
from loadgen.lab.study.report.arm_text import (
    DIGITS,
    changed_parameters,
    difference_text,
    doubts,
    in_words,
    numbers,
    score,
)
from loadgen.lab.study.report.findings_text import time_spent
from loadgen.lab.study.report.report_model import ReportModel, StageSummary
from loadgen.report.result.explanation import PHASES
from loadgen.util.number_format import fixed, percent, signed

VERDICT_TONES = {Verdict.ADOPTED: Tone.GOOD, Verdict.FAILED: Tone.BAD, Verdict.INFEASIBLE: Tone.BAD}


def cases(model: ReportModel, baseline: ArmResult) -> Table:
    """Return baseline and winner on every workload that ran."""
    spec = baseline.planned.spec
    winner = model.winner
    title = f"Baseline ({spec.engine}{'' if spec.overrides else ' without any options'})"
    arms = [baseline] + ([winner] if winner else [])
    rows = [
        (cell(Span(name, Tone.STRONG)), *(numbers(arm, name, model) for arm in arms))
        for name in model.workloads
        if name in baseline.workloads
    ]
    return Table(("Benchmark Case", title, *(["Optimized"] if winner else [])), tuple(rows))


def arms(step: StageSummary, model: ReportModel) -> Table:
    """Return every arm of a step with its verdict."""
    against = f"against {step.found.reference}" if step.found.reference else "-"
    count = "Runs" if model.published else "Starts"
    head = ("Arm", f"{model.label} ({model.unit})", against, "Mean TPOT (ms)", count, "Verdict")
    rows = []
    for arm in step.arms:
        result = arm.workloads.get(model.workload)
        starts = str(len(arm.trials))
        if model.published:  # only a single run of each workload is known
            starts = "single" if result else "none"
        elif arm.repeated:
            starts = f"{starts} ({arm.repeated} repeated)"
        row: list[str | Span] = [
            Span(arm.name, Tone.CODE),
            score(result, model),
            "-" if arm.verdict is Verdict.SAME_AS else difference_text(arm, model.workload),
            fixed(result.mean("mean_tpot_ms") if result else None, DIGITS),
            starts,
        ]
        if arm.verdict is Verdict.SAME_AS:
            verdict = [line("same as ", Span(arm.why, Tone.CODE))]
        else:
            verdict = [line(Span(str(arm.verdict), VERDICT_TONES.get(arm.verdict, Tone.PLAIN)))]
            if arm.why:
                quoted = arm.verdict in (Verdict.FAILED, Verdict.PRUNED)
                verdict.append(line(Span(arm.why, Tone.CODE if quoted else Tone.PLAIN)))
        name, value, *others = row
        scored = cell(line(value), *doubts(result))
        named = cell(line(name), *_changed(arm, step, model), *_limit(result))
        rows.append((named, scored, *map(cell, others), cell(*verdict)))
    return Table(head, tuple(rows))


def _changed(arm: ArmResult, step: StageSummary, model: ReportModel) -> Iterator[Line]:
    """Yield what an arm changes in the reference, in flags; published pages have the commands."""
    reference = step.reference
    if reference is None or arm is reference or model.published:
        return
    if arm.planned.spec.engine == reference.planned.spec.engine and (
        text := changed_parameters(arm.planned, reference.planned)
    ):
        yield prose(text)


def _limit(result: WorkloadResult | None) -> Iterator[Line]:
    """Yield what limits an arm, by the run that its result shows."""
    if result is not None and (limit := result.middle.findings.limited_by):
        yield line(Span(f"limited by: {limit}", Tone.QUIET))


def phases(step: StageSummary, model: ReportModel) -> Iterator[Block]:
    """Yield where the time of the requests went in each arm of a step, in the mean of its runs;
    nothing where no run says it.
    """
    shares = {
        arm.name: [run.findings.phases for run in result.runs.values() if run.findings.phases]
        for arm in step.arms
        if (result := arm.workloads.get(model.workload)) is not None
    }
    rows: list[Sequence[Span | str]] = []
    for name, runs in shares.items():
        if runs:
            means = (percent(fmean(one[phase] for one in runs)) for phase in runs[0])
            rows.append((Span(name, Tone.CODE), *means))
    if rows:
        yield Paragraph.of("Where the time of a request went, as shares of the mean E2EL:")
        yield Table.of(("Arm", *(*PHASES, "decode")), rows, text_columns=1)


def other_workloads(step: StageSummary, model: ReportModel) -> Iterator[Table]:
    """Yield the arms of a step on the workloads that it ran and that do not decide, if any."""
    workloads = [
        name for name in model.workloads[1:] if any(name in arm.workloads for arm in step.arms)
    ]
    if not workloads:
        return
    rows = [
        (cell(Span(arm.name, Tone.CODE)), *(numbers(arm, name, model) for name in workloads))
        for arm in step.arms
        if any(name in arm.workloads for name in workloads)
    ]
    yield Table(("Arm", *workloads), tuple(rows))


def options(model: ReportModel) -> Table:
    """Return the gain of each stage over the arm that it started from, and over the baseline."""
    built_on = {arm.planned.identity for arm in model.chain.values()}
    base = model.baseline.planned.identity if model.baseline else ""
    rows = []
    for stage in model.stages:
        adopted = stage.adopted
        reference = stage.reference
        if adopted is None or reference is None:
            rows.append(tuple(map(cell, (in_words(stage.name), "-", "-", "-", "-"))))
            continue
        left = [] if adopted.planned.identity in built_on else [line("not part of the winner")]
        rows.append(
            (
                cell(in_words(stage.name)),
                cell(Span(adopted.name, Tone.CODE), *left),
                cell(difference_text(adopted, model.workload)),
                cell(Span(reference.name, Tone.CODE)),
                cell(
                    "the same"
                    if reference.planned.identity == base
                    else _over_baseline(adopted, model)
                ),
            )
        )
    over = "Over the baseline, from other starts" if not model.published else "Over the baseline"
    adopted_by = "Chosen by the author" if model.published else "Adopted"
    head = (
        "Optimization Option",
        adopted_by,
        f"{model.label} Improvement in the stage",
        "Over",
        over,
    )
    return Table(head, tuple(rows))


def _over_baseline(arm: ArmResult, model: ReportModel) -> str:
    """Return the difference of an arm from the baseline, which may have run in other blocks."""
    apart = model.apart(arm, model.baseline)
    return "-" if apart is None else signed(apart.share, DIGITS)


def groups(model: ReportModel) -> Table:
    """Return the best arm of each group beside the arm that the group starts from."""
    base = model.baseline.planned.identity if model.baseline else ""
    of_baseline = all(
        stage.reference.planned.identity == base for stage in model.stages if stage.reference
    )
    rows = []
    for stage in model.stages:
        reference = stage.reference
        best = stage.best or reference
        if best is None:
            continue
        ours = numbers(best, model.workload, model)
        theirs = numbers(reference, model.workload, model)
        if reference is not None and not of_baseline:
            theirs = (line(Span(reference.name, Tone.CODE)), *theirs)
            if reference.planned.identity != base and model.baseline is not None:
                value = score(model.baseline.workloads.get(model.workload), model)
                ours += (
                    line(
                        f"Baseline: {value} ({_over_baseline(best, model)} over it, without bounds)"
                    ),
                )
        rows.append(
            (
                cell(Span(in_words(stage.name), Tone.STRONG), line(Span(best.name, Tone.CODE))),
                ours,
                theirs,
            )
        )
    return Table(
        ("Benchmark Cases", "Optimized", "Baseline" if of_baseline else "Compared with"),
        tuple(rows),
    )


def noise(model: ReportModel) -> Table:
    """Return the noise of each step, and the smallest effect that it lets one detect."""
    rows = []
    for step in model.steps:
        estimate = step.found.noise
        least = step.found.least_effect
        if estimate is not None or least is not None:
            sd = percent(estimate.sd if estimate and estimate.df else None, DIGITS)
            effect = "n/a" if least is None else signed(least, DIGITS)
            rows.append((step.name, sd, str(estimate.df) if estimate else "n/a", effect))
    return Table.of(
        ("Step", "SD of one start", "Degrees of freedom", "Effect it was planned to detect"), rows
    )


def failures(model: ReportModel) -> Table:
    """Return the failures with the lines that explain them; of arms that were pruned, because of
    which failure.
    """
    # Failed ones, by step, arm, class and cause.
    starts: Counter[tuple[str, str, str, str]] = Counter()
    for step in model.steps:
        for arm in step.arms:
            failed = [trial.failure for trial in arm.trials if trial.failure is not None]
            starts.update((step.name, arm.name, failure.kind, failure.cause) for failure in failed)
            if arm.verdict is Verdict.PRUNED:
                starts[step.name, arm.name, str(Verdict.PRUNED), arm.why] = 0
    rows = [
        (
            step,
            Span(arm, Tone.CODE),
            str(count),
            kind,
            Span(cause, Tone.CODE if cause else Tone.PLAIN),
        )
        for (step, arm, kind, cause), count in starts.items()
    ]
    return Table.of(("Step", "Arm", "Starts", "Class", "Root cause"), rows)


def provenance(model: ReportModel) -> Table:
    """Return when, where and how the numbers were measured."""
    decision = model.study.decision
    repeats = decision.repeats
    decided = (
        f"a gain of {percent(decision.min_effect, 1)} or more with "
        f"{percent(decision.confidence, 1)} confidence, {repeats.least} to {repeats.most} starts "
        f"of each arm, seed {decision.seed}"
    )
    rows = {
        "imported" if model.published else "first and last start": model.dates or "not yet",
        "results" if model.published else "spent": time_spent(model.findings),
        "decision": "none: single runs say nothing about noise" if model.published else decided,
    }
    facts = {
        name: value
        for name, value in model.facts.items()
        if name not in ("study", "text", "source")
    }
    if model.published:
        facts.pop("host", None)
    if facts.get("accelerators_from", "") is None:
        facts["accelerators_from"] = "nothing: neither NVML nor npu-smi is here"
    if model.study.objective.accuracy is None:
        facts.pop("questions", None)
    return Table.of(("What", "Value"), (*rows.items(), *_leaves(facts)))


def _leaves(value: Any, at: Place = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, (*at, key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield fact_name(at), ", ".join(map(str, value)) or "none"
    else:
        yield fact_name(at), "unknown" if value is None else str(value)
