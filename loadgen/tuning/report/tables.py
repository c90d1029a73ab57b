"""The tables of a report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.report.html import Cell, Line, Span, Table, Tone, cell, line
from loadgen.tuning.execute.arm_result import ArmResult, Verdict
from loadgen.tuning.report.arm_text import DIGITS, difference_text, numbers, score
from loadgen.tuning.report.findings_text import time_spent
from loadgen.tuning.report.report_model import ReportModel, StageSummary
from loadgen.util.number_format import fixed, percent, signed

VERDICT_TONES = {Verdict.ADOPTED: Tone.GOOD, Verdict.FAILED: Tone.BAD, Verdict.INFEASIBLE: Tone.BAD}


def cases(model: ReportModel, baseline: ArmResult) -> Table:
    """Return baseline and winner on every workload that ran."""
    spec, winner = baseline.planned.spec, model.winner
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
    head = ("Arm", f"{model.label} ({model.unit})", against, "Mean TPOT (ms)", "Starts", "Verdict")
    rows = []
    for arm in step.arms:
        result = arm.workloads.get(model.workload)
        row: list[str | Span] = [
            Span(arm.name, Tone.CODE),
            score(result, model),
            difference_text(arm, model.workload),
            fixed(result.mean("mean_tpot_ms") if result else None, DIGITS),
            str(len(arm.trials)),
        ]
        rows.append((*map(cell, row), cell(*_verdict(arm))))
    return Table(head, tuple(rows))


def _verdict(arm: ArmResult) -> Iterator[Line]:
    if arm.verdict is Verdict.SAME_AS:
        yield line("same as ", Span(arm.why, Tone.CODE))
        return
    yield line(Span(str(arm.verdict), VERDICT_TONES.get(arm.verdict, Tone.PLAIN)))
    if arm.why:
        quoted = arm.verdict in (Verdict.FAILED, Verdict.PRUNED)
        yield line(Span(arm.why, Tone.CODE if quoted else Tone.PLAIN))


def options(model: ReportModel) -> Table:
    """Return the gain of each stage."""
    rows = []
    for stage in model.stages:
        adopted = stage.adopted
        row = (
            [stage.name, "-", "-"]
            if adopted is None
            else [stage.name, Span(adopted.name, Tone.CODE), difference_text(adopted, model.workload)]
        )
        rows.append(tuple(map(cell, row)))
    return Table(("Optimization Option", "Adopted", f"{model.label} Improvement"), tuple(rows))


def groups(model: ReportModel) -> Table:
    """Return the best arm of each group beside the group's reference."""
    rows = [
        (
            cell(Span(stage.name, Tone.STRONG), line(Span(best.name, Tone.CODE))),
            numbers(best, model.workload, model),
            numbers(stage.reference, model.workload, model),
        )
        for stage in model.stages
        if (best := stage.best or stage.reference) is not None
    ]
    references = {stage.reference.planned.identity for stage in model.stages if stage.reference}
    same = model.baseline is not None and references == {model.baseline.planned.identity}
    return Table(("Benchmark Cases", "Optimized", "Baseline" if same else "Held against"), tuple(rows))


def noise(model: ReportModel) -> Table:
    """Return the noise of each step, and the smallest effect that it lets one detect."""
    rows = []
    for step in model.steps:
        found, least = step.found.noise, step.found.least_effect
        if found is not None or least is not None:
            row = (
                step.name,
                percent(found.sd if found else None, DIGITS),
                str(found.df) if found else "n/a",
                "n/a" if least is None else signed(least, DIGITS),
            )
            rows.append(tuple(map(cell, row)))
    return Table(("Step", "SD of one start", "Degrees of freedom", "Least effect likely to be seen"), tuple(rows))


def failures(model: ReportModel) -> Table:
    """Return the failures with the lines that explain them."""
    rows = [
        (cell(arm.step), cell(Span(arm.arm, Tone.CODE)), cell(str(arm.starts)), cell(arm.kind), _code(arm.cause))
        for arm in model.failed
    ]
    return Table(("Step", "Arm", "Starts", "Class", "Root cause"), tuple(rows))


def _code(text: str) -> Cell:
    return cell(Span(text, Tone.CODE)) if text else cell("")


def provenance(model: ReportModel) -> Table:
    """Return when, where and how the numbers were measured."""
    decision, began = model.study.decision, sorted(trial.began for trial in model.findings.trials)
    repeats = decision.repeats
    found = {
        "imported" if model.published else "measured": f"{began[0]} to {began[-1]}" if began else "not yet",
        "spent": time_spent(model.findings),
        "decision": f"a gain of {percent(decision.min_effect, 1)} or more with {percent(decision.confidence, 1)} "
        f"confidence, {repeats.least} to {repeats.most} starts of each arm, seed {decision.seed}",
    }
    facts = {name: value for name, value in model.facts.items() if name not in ("study", "text")}
    rows = [(cell(name), cell(text)) for name, text in (*found.items(), *_leaves(facts))]
    return Table(("What", "Value"), tuple(rows))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the single values of nested facts by their names, lists on one line."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield name, ", ".join(map(str, value)) or "none"
    else:
        yield name, "unknown" if value is None else str(value)
