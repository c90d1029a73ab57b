"""The page of a study: its sections in the order of stages, or in the order of groups of
options.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from loadgen.document import (
    Block,
    Document,
    Drawing,
    Heading,
    Items,
    Note,
    Paragraph,
    Span,
    Tone,
    line,
    prose,
)
from loadgen.lab.study.execute.arm_result import ArmResult, Verdict
from loadgen.lab.study.plan.plan import NOISE
from loadgen.lab.study.report import arm_text, findings_text, tables
from loadgen.lab.study.report.answer import answer
from loadgen.lab.study.report.arm_text import (
    DIGITS,
    changes,
    in_words,
    parameters,
    profile,
    result_block,
    serving_command,
)
from loadgen.lab.study.report.conclusion import caveats, conclusion, suspect_runs, warnings
from loadgen.lab.study.report.findings_text import disturbance_text
from loadgen.lab.study.report.report_model import ReportModel, StageSummary
from loadgen.lab.study.report.reproduce import benchmark_script, data_section
from loadgen.lab.study.spec.study import METRICS
from loadgen.lab.study.spec.workloads import loads
from loadgen.util.number_format import fixed, percent, signed

MAX_RANKED = 20  # arms of a stage in the line of its result
# Below the results.
CHARTS = {"waterfall": "Gains, One by One", "pareto": "Speed for a User", "latencies": "Latencies"}


def document(model: ReportModel, charts: Mapping[str, Drawing]) -> Document:
    """Lay out the page of a study.

    Args:
        model: Contents of the report.
        charts: Its charts, by name.
    """
    study = model.study
    results = {"stages": _stages, "groups": _groups}[study.report.layout]
    blocks = [
        *warnings(model),
        *_head(model, charts),
        *_setup(model),
        *results(model),
        *_tail(model, charts),
    ]
    found = answer(model.findings)
    return Document(
        findings_text.title(study),
        tuple(blocks),
        (found,),
        findings_text.about(study),
        _origin(model),
    )


def _origin(model: ReportModel) -> str:
    """Say when, on what and with what the results were measured."""
    dates = f"imported {model.dates}" if model.published and model.dates else model.dates
    engines = [f"{engine} {versions}".rstrip() for engine, versions in model.builds.items()]
    version = model.facts.get("loadgen")
    parts = (dates, model.hardware, *engines, version and f"loadgen {version}")
    return ", ".join(filter(None, parts))


def _head(model: ReportModel, charts: Mapping[str, Drawing]) -> Iterator[Block]:
    yield Heading(2, "Conclusion")
    if "cases" in charts:
        yield charts["cases"]
    yield from conclusion(model)
    if model.baseline is not None and model.baseline.workloads:
        yield Paragraph.of("Comparison of benchmark results before and after optimization:")
        yield tables.cases(model, model.baseline)
    how = Items(tuple(caveats(model)), numbered=True)
    yield Note("note", "How to read this", (how,), folded=True)
    objective = model.study.objective
    aim = "More is better" if objective.more_is_better else "Less is better"
    text = f" on the workload {objective.workload}: {METRICS[objective.metric].text}. {aim}."
    accuracy = objective.accuracy
    limits = [
        f"{percent(objective.success_rate, 1)} of the requests succeed",
        *([f"limits: {objective.slo}"] if objective.slo else []),
        *([f"at most {percent(accuracy.max_loss, 1)} of the accuracy is lost"] if accuracy else []),
    ]
    yield Heading(2, "Optimization Objective")
    yield Paragraph.of(Span(model.label, Tone.STRONG), text)
    yield Paragraph.of("An arm counts only if:")
    yield Items.of(limits)


def _setup(model: ReportModel) -> Iterator[Block]:
    devices = model.study.hardware.devices
    count = f", {devices} devices" if devices > 1 and not model.published else ""
    yield Heading(2, "Experimental Setup")
    yield Heading(3, "Model")
    yield Items.of(dict.fromkeys(model.study.models.values()))
    yield Heading(3, "Hardware")
    # The words of others are quoted.
    name = f'"{model.hardware}"' if model.published else model.hardware
    yield Paragraph.of(f"{name if model.hardware else 'not named by the published results'}{count}")
    yield Heading(3, "Engine Version")
    yield Items.of(
        f"{engine}: {versions or 'version unknown'}" for engine, versions in model.builds.items()
    )
    yield from data_section(model)


def _stages(model: ReportModel) -> Iterator[Block]:
    if model.baseline is not None:
        yield from benchmark_script(model, model.baseline.planned)
    yield Heading(2, "Experiment Results")
    for number, stage in enumerate(model.stages, 1):
        yield Heading(3, f"{number}. {in_words(stage.name)}")
        yield from _remarks(stage)
        yield tables.arms(stage, model)
        yield from tables.phases(stage, model)
        yield from tables.other_workloads(stage, model)
        for arm in _detailed(stage, model):
            yield Paragraph.of(Span(arm.name, Tone.STRONG))
            yield from serving_command(arm.planned, model)
            yield from _results(arm, model)
        yield from _shortened(stage, model)
        ranked = stage.ranked[:MAX_RANKED]
        parts: list[str | Span] = []
        for before, arm in zip([None, *ranked], ranked, strict=False):
            if before is not None:
                parts.append(_sign(before, arm, stage, model))
            parts += [Span(arm.name, Tone.CODE), f" ({_score(arm, model)})"]
        yield Paragraph.of("Result: ", *(parts or ["no arm can be compared"]))
    if model.stages:
        yield Heading(3, "Summary of Optimization Options")
        yield tables.options(model)
    yield from _other_cases(model, lambda arm: serving_command(arm.planned, model))


def _groups(model: ReportModel) -> Iterator[Block]:
    how = (
        "These results are imported: the study started no server. Its workloads are shown as"
        if model.published
        else "Each arm is started afresh and measured with"
    )
    yield Heading(3, "Benchmark Method")
    yield Paragraph(prose(f"{how} profiles of `loadgen run --config`."))
    yield Heading(4, "Benchmark Profiles")
    for name, load in loads(model.study).items():
        yield Paragraph.of(Span(name, Tone.STRONG))
        yield profile(load)
    yield Heading(2, "Experiment Results")
    for stage in model.stages:
        yield Heading(3, in_words(stage.name))
        yield from _remarks(stage)
        for arm in _detailed(stage, model):
            yield Heading(4, arm.name)
            yield from _parameters(arm, model.workload)
            yield from _results(arm, model)
        yield from _shortened(stage, model)
        yield tables.arms(stage, model)
        yield from tables.phases(stage, model)
        yield from tables.other_workloads(stage, model)
        yield from _summary(stage, model)
    if model.stages:
        yield Heading(3, "Summary of Optimization Options")
        yield tables.groups(model)
    yield from _other_cases(model, lambda arm: _parameters(arm, None))


def _tail(model: ReportModel, charts: Mapping[str, Drawing]) -> Iterator[Block]:
    for name, title in CHARTS.items():
        if name in charts:
            yield Heading(2, title)
            yield charts[name]
    noise = tables.noise(model)
    if noise.rows or "noise" in charts:
        yield Heading(2, "Noise")
        if "noise" in charts:
            yield charts["noise"]
        for step in model.steps:
            if step.found.step.kind == NOISE:
                yield from _disturbed(step)
        yield from ((noise,) if noise.rows else ())
    failures = tables.failures(model)
    if failures.rows:
        yield Heading(2, "Failures")
        yield failures
    yield Heading(2, "Provenance")
    yield from suspect_runs(model)
    yield tables.provenance(model)
    if model.facts.get("text"):
        yield Paragraph(prose("The study is `study.yaml`, beside this page."))
    if model.baseline is not None:
        yield Heading(2, "Reproduce")
        again = "" if model.published else " again"
        text = (
            f"The script `reproduce.sh` starts baseline and winner{again} and runs the "
            "deciding workload on each."
        )
        names: dict[str, None] = {}
        for arm in (model.baseline, model.winner):
            if arm is not None:
                names |= dict.fromkeys(f"`{path.name}`" for path in arm.planned.launches[0].files)
        if model.published and names:
            text += (
                f" The contents of {' and '.join(names)} are loadgen's own: the published "
                "results do not have them."
            )
        yield Paragraph(prose(text))


def _remarks(stage: StageSummary) -> Iterator[Block]:
    if stage.found.open:
        yield Note("warning", f"Not finished: {stage.found.open}", ())
    for note in stage.found.step.notes:
        yield Paragraph.of(Span(note, Tone.QUIET))
    yield from _disturbed(stage)


def _disturbed(step: StageSummary) -> Iterator[Block]:
    if text := disturbance_text(step.found, step.workload):
        yield Paragraph.of(Span(f"{text[0].upper()}{text[1:]}.", Tone.QUIET))


def _detailed(stage: StageSummary, model: ReportModel) -> list[ArmResult]:
    """Return the arms whose results are printed: all that are published; of a measured stage the
    adopted one, or before a confirmation the reference and the best. None is printed twice.
    """
    if model.published:
        return [arm for arm in stage.arms if arm.workloads]

    def chosen(step: StageSummary) -> list[ArmResult]:
        arms = (step.adopted,) if model.confirmation else (step.reference, step.best)
        return [arm for arm in arms if arm is not None and arm.workloads]

    printed = list(model.confirmation.arms) if model.confirmation else []
    for earlier in itertools.takewhile(lambda before: before is not stage, model.stages):
        printed += chosen(earlier)
    shown = {arm.planned.identity for arm in printed}
    return [arm for arm in chosen(stage) if arm.planned.identity not in shown]


def _shortened(stage: StageSummary, model: ReportModel) -> Iterator[Block]:
    others = len([arm for arm in stage.arms if arm.workloads]) - len(_detailed(stage, model))
    if others:
        yield Paragraph.of(f"The results of {others} of its arms are only in the table.")


def _sign(before: ArmResult, arm: ArmResult, stage: StageSummary, model: ReportModel) -> str:
    """Return what stands between two arms: a comma where nothing shows how they compare."""
    if model.published:
        return ", "
    low, high = stage.bounds(before)
    next_low, next_high = stage.bounds(arm)
    if low > next_high if model.more_is_better else high < next_low:
        return f" {model.sign} "
    return " ≈ " if all(map(math.isfinite, (low, high, next_low, next_high))) else ", "


def _score(arm: ArmResult, model: ReportModel) -> str:
    return arm_text.score(arm.workloads[model.workload], model, model.unit)


def _results(arm: ArmResult, model: ReportModel) -> Iterator[Note]:
    yield _result(arm, model.workload, model)
    for workload in model.workloads[1:]:
        if workload in arm.workloads:
            yield _result(arm, workload, model, f"Benchmark result on {workload}")


def _result(
    arm: ArmResult, workload: str, model: ReportModel, title: str = "Benchmark result"
) -> Note:
    result = arm.workloads.get(workload)
    if result is None:
        return Note("info", f"No {title.lower()} on {workload}", (), folded=True)
    if model.published:
        title = f"{title} (single run)"
    elif len(result.runs) > 1:
        title = (
            f"{title} ({'lower ' if len(result.runs) % 2 == 0 else ''}median of "
            f"{len(result.runs)} starts)"
        )
    changed = changes(result.middle)
    more = (Paragraph.of(changed),) if changed else ()
    return Note("info", title, (result_block(result.middle), *more), folded=True)


def _parameters(arm: ArmResult, workload: str | None) -> Iterator[Block]:
    planned = arm.planned
    profile_line = [line("Profile: ", Span(workload, Tone.CODE))] if workload else []
    served = line(
        "Served: ",
        Span(planned.model, Tone.CODE),
        " by ",
        Span(planned.spec.engine, Tone.CODE),
    )
    yield Items((*profile_line, served, line("Backend Parameters:")))
    yield parameters(planned)


def _summary(stage: StageSummary, model: ReportModel) -> Iterator[Block]:
    best = stage.best
    reference = stage.reference
    workload = model.workload
    if best is None or reference is None or best is reference:
        return
    name = Span(best.name, Tone.CODE)
    if best.verdict is Verdict.INFEASIBLE:
        yield Items((line("Summary: ", name, f" is not considered: {best.why}."),))
        return
    ours = best.workloads.get(workload)
    theirs = reference.workloads.get(workload)
    if (
        ours is None
        or theirs is None
        or ours.difference is None
        or not ours.achieved
        or not theirs.achieved
    ):
        return
    if ours.difference.share < 0:
        direction = "slower" if model.unit == "tok/s" else "lower"
    else:
        direction = "faster" if model.unit == "tok/s" else "higher"
    apart = fixed(abs(ours.achieved - theirs.achieved), DIGITS, model.unit)
    tpot = ours.mean("mean_tpot_ms")
    tpot_before = theirs.mean("mean_tpot_ms")
    change = ""
    if tpot is not None and tpot_before is not None:
        change = f"; Mean TPOT = {fixed(tpot, DIGITS)} ms vs {fixed(tpot_before, DIGITS)} ms"
        if tpot != tpot_before:
            by = (
                f"{fixed(abs(tpot - tpot_before), DIGITS, 'ms')} "
                f"({signed(tpot / tpot_before - 1, DIGITS)})"
            )
            change += f", {'reduced' if tpot < tpot_before else 'raised'} by {by}"
    yield Items(
        (
            line(
                "Summary: ",
                name,
                f" {model.label} = {_score(best, model)}, ",
                Span(reference.name, Tone.CODE),
                f" {model.label} = {_score(reference, model)}. ",
                name,
                f" is {direction} by {apart} ",
                arm_text.difference_span(best, ours.difference),
                f"{change}.",
            ),
        )
    )


def _other_cases(
    model: ReportModel, served: Callable[[ArmResult], Iterable[Block]]
) -> Iterator[Block]:
    step = model.confirmation
    if step is None:
        return
    arms, fresh = (
        ("Baseline and winner", ", each started afresh")
        if step.rivals
        else ("Baseline", ", started afresh")
    )
    yield Heading(3, "Other Benchmark Cases")
    yield Paragraph.of(f"{arms}{'' if model.published else fresh}, on every workload.")
    yield from _remarks(step)
    yield tables.arms(step, model)
    yield from tables.phases(step, model)
    for arm in step.arms:
        title = "Baseline" if arm is step.reference else "Optimized"
        yield Heading(4, title)
        yield from served(arm)
        for workload in arm.workloads:
            yield _result(arm, workload, model, f"{title} benchmark result on {workload}")
