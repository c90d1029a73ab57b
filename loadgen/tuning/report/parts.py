"""Parts: what both layouts of a report are put together from."""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.config import serialize
from loadgen.config.settings import RunSettings, public
from loadgen.report.console import HEADERS, block
from loadgen.report.html import Block, Cell, Code, Items, Line, Note, Paragraph, Span, Table, Tone, cell, line
from loadgen.tuning.execute.findings import Verdict
from loadgen.tuning.execute.trial import Ran
from loadgen.tuning.plan.plan import Planned
from loadgen.tuning.report.delta import DIGITS, ESTIMATED, beside, fixed
from loadgen.tuning.report.findings_text import duration_of
from loadgen.tuning.report.standing import Case, Standing
from loadgen.tuning.report.story import Chapter, Story
from loadgen.tuning.spec.objective import METRICS
from loadgen.util.number_format import percent, signed
from loadgen.util.redaction import redact_command, redact_variables

MOST_DETAILED = 20  # arms of a stage of which command and result are shown; the others stand in its table
PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)_ttft_ms")


def command(planned: Planned) -> str:
    """How an arm is served, as one would write it by hand; credentials are left out."""
    launch = planned.launches[0]
    own = [f"{name}={shlex.quote(value)}" for name, value in redact_variables(planned.arm.env).items()]
    lines = [" ".join([*own, shlex.join(redact_command(launch.shorthand or launch.argv))])]
    lines += [f"# writes {path}:\n" + _indented(text) for path, text in launch.files.items()]
    if planned.arm.replicas > 1:
        lines.insert(0, f"# {planned.arm.replicas} of these, which share the requests")
    return "\n".join(lines)


def parameters(planned: Planned) -> str:
    """What an arm adds to the bare command of its engine, a flag a line."""
    words = redact_command(planned.launches[0].shorthand or planned.launches[0].argv)
    rest = words[words.index(planned.model) + 1 :] if planned.model in words else words
    lines = [f"{name}={shlex.quote(value)}" for name, value in redact_variables(planned.arm.env).items()]
    for word in rest:
        if word.startswith("-") or not lines:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return "\n".join(lines) or "# none"


def result(ran: Ran) -> Code:
    """The block of a run, as `vllm bench serve` prints it."""
    summary = ran.summary
    metrics = [metric for metric in HEADERS if summary.get(f"mean_{metric}_ms") is not None]
    percentiles = sorted(float(found[1]) for name in summary if (found := PERCENTILE.fullmatch(name)))
    known = defaultdict(lambda: None, {"request_rate": "inf"} | dict(summary))  # others published less than we save
    return Code("\n".join(row.rstrip() for row in block(known, metrics, percentiles)))


def profile(settings: RunSettings) -> Code:
    """A workload as a file for `loadgen run --config`."""
    shown = public(settings)
    return Code("\n".join(f"{name}: {json.dumps(shown[name])}" for name in serialize.explicit(settings)), "yaml")


def score(value: float | None, case: Case | None, story: Story) -> str:
    """A number of the objective, marked where it is scaled to the whole box."""
    return fixed(value, story.unit) + (ESTIMATED if _scaled(case, story) else "")


def numbers(standing: Standing | None, workload: str, story: Story) -> Cell:
    """An arm on a workload: the objective, its difference, and what it costs a user."""
    case = standing.cases.get(workload) if standing else None
    if standing is None or case is None:
        return cell("n/a")
    delta = standing.deltas.get(workload)
    mark = ESTIMATED if _scaled(case, story) else ""
    lines = [line(f"{story.label}: {fixed(case.achieved)}{mark}", *beside(delta, counts=_counts(standing)))]
    if story.study.objective.metric != "total_tps_per_box":
        lines.append(line(f"Total TPS: {fixed(case.total_tps)}{ESTIMATED if case.estimated else ''}"))
    lines.append(line(f"Mean TPOT(ms): {fixed(case.mean('mean_tpot_ms'))}"))
    if standing.found.verdict is Verdict.INFEASIBLE:
        lines.append(line(f"not considered: {standing.found.why}"))
    return cell(*lines)


def _scaled(case: Case | None, story: Story) -> bool:
    return case is not None and case.estimated and story.study.objective.metric in ("total_tps_per_box", "goodput")


def cases(story: Story, baseline: Standing, winner: Standing | None) -> Table:
    """Baseline and winner on every workload that was run."""
    workloads = [name for name in story.workloads if name in baseline.cases]
    head = ("Benchmark Case", _baseline_title(baseline)) + (("Optimized",) if winner else ())
    rows = []
    for name in workloads:
        row = [cell(Span(name, Tone.STRONG)), numbers(baseline, name, story)]
        rows.append((*row, *([numbers(winner, name, story)] if winner else [])))
    return Table(head, tuple(rows))


def _baseline_title(baseline: Standing) -> str:
    arm = baseline.found.planned.arm
    return f"Baseline ({arm.engine}" + ("" if arm.overrides else " without any options") + ")"


def arms(chapter: Chapter, story: Story) -> Table:
    """Every arm of a step with its verdict."""
    against = f"against {chapter.found.reference}" if chapter.found.reference else "-"
    head = ("Arm", f"{story.label} ({story.unit})", against, "Mean TPOT (ms)", "Starts", "Verdict")
    rows = []
    for standing in chapter.arms:
        found, case = standing.found, standing.cases.get(story.workload)
        delta = standing.deltas.get(story.workload)
        rows.append(
            (
                cell(Span(found.name, Tone.CODE)),
                cell(fixed(case.achieved if case else None) + (ESTIMATED if _scaled(case, story) else "")),
                cell(Span(str(delta), delta.tone if _counts(standing) else Tone.QUIET) if delta else "-"),
                cell(fixed(case.mean("mean_tpot_ms") if case else None)),
                cell(str(len(found.trials))),
                cell(*_verdict(standing)),
            )
        )
    return Table(head, tuple(rows))


def _counts(standing: Standing) -> bool:
    """Whether its gain is one: not if it does not hold what the study demands."""
    return standing.found.verdict is not Verdict.INFEASIBLE


def _verdict(standing: Standing) -> Iterator[Line]:
    found = standing.found
    tones = {Verdict.ADOPTED: Tone.GOOD, Verdict.FAILED: Tone.BAD, Verdict.INFEASIBLE: Tone.BAD}
    if found.verdict is Verdict.SAME_AS:
        yield line("same as ", Span(found.why, Tone.CODE))
        return
    yield line(Span(str(found.verdict), tones.get(found.verdict, Tone.PLAIN)))
    if found.why:
        quoted = found.verdict in (Verdict.FAILED, Verdict.PRUNED)
        yield line(Span(found.why, Tone.CODE if quoted else Tone.PLAIN))


def ranking(chapter: Chapter, story: Story) -> Line:
    """The arms that may win, the best first."""
    parts: list[str | Span] = ["Result: "]
    for place, standing in enumerate(chapter.ranked[:MOST_DETAILED]):
        case = standing.cases[story.workload]
        parts += [" > " if story.more_is_better else " < "] if place else []
        parts += [Span(standing.name, Tone.CODE), f" ({score(case.achieved, case, story)})"]
    return line(*parts) if chapter.ranked else line("Result: none of its arms can be compared")


def detailed(chapter: Chapter) -> list[Standing]:
    """The arms of which command and result are shown: those that matter most, in the order of the step."""
    ran = [arm for arm in chapter.arms if arm.cases]
    order = (chapter.reference, chapter.adopted, *chapter.ranked, *ran)
    names = list(dict.fromkeys(arm.name for arm in order if arm is not None and arm.cases))[:MOST_DETAILED]
    return [arm for arm in ran if arm.name in names]


def options(story: Story) -> Table:
    """What each stage has brought."""
    rows = []
    for chapter in story.stages:
        adopted = chapter.adopted
        delta = adopted.deltas.get(story.workload) if adopted else None
        names = line(Span(adopted.name, Tone.CODE)) if adopted else line("-")
        rows.append((cell(chapter.name), cell(names), cell(Span(str(delta), delta.tone) if delta else "-")))
    return Table(("Optimization Option", "Adopted", f"{story.label} Improvement"), tuple(rows))


def groups(story: Story) -> Table:
    """The best of each group beside the arm that the group is held against."""
    rows = [
        (
            cell(Span(chapter.name, Tone.STRONG), line(Span(best.name, Tone.CODE))),
            numbers(best, story.workload, story),
            numbers(chapter.reference, story.workload, story),
        )
        for chapter in story.stages
        if (best := chapter.best or chapter.reference) is not None
    ]
    same = {chapter.reference.found.planned.identity for chapter in story.stages if chapter.reference}
    held = "Baseline" if story.baseline and same == {story.baseline.found.planned.identity} else "Held against"
    return Table(("Benchmark Cases", "Optimized", held), tuple(rows))


def noise(story: Story) -> Table:
    """How much starts of the same arm differ, step by step, and what can be seen in spite of that."""
    rows = []
    for chapter in story.chapters:
        found = chapter.found
        if found.noise is None and found.least_effect is None:
            continue
        sd = "n/a" if found.noise is None else percent(found.noise.sd, 2)
        freedom = "n/a" if found.noise is None else str(found.noise.df)
        seen = "n/a" if found.least_effect is None else signed(found.least_effect, DIGITS)
        rows.append((cell(chapter.name), cell(sd), cell(freedom), cell(seen)))
    return Table(("Step", "SD of one start", "Degrees of freedom", "Least effect likely to be seen"), tuple(rows))


def failures(story: Story) -> Table:
    """What failed, with the line that says why."""
    rows = [
        (cell(lost.step), cell(Span(lost.arm, Tone.CODE)), cell(str(lost.times)), cell(lost.kind), _cause(lost.cause))
        for lost in story.lost
    ]
    return Table(("Step", "Arm", "Starts", "Class", "Root cause"), tuple(rows))


def _cause(cause: str) -> Cell:
    return cell(Span(cause, Tone.CODE)) if cause else cell("")


def provenance(story: Story) -> list[Block]:
    """What the numbers rest on."""
    trials, decision = story.findings.trials, story.study.decision
    began = sorted(trial.began for trial in trials)
    repeats = decision.repeats
    when = "imported" if story.published else "measured"
    found = {
        when: f"{began[0]} to {began[-1]}" if began else "not yet",
        "spent": duration_of(story.findings),
        "decision": f"a gain of {percent(decision.min_effect, 1)} or more with {percent(decision.confidence, 1)} "
        f"confidence, {repeats.least} to {repeats.most} starts of each arm, seed {decision.seed}",
    }
    shown = {name: value for name, value in story.facts.items() if name not in ("study", "text")}
    rows = [(cell(name), cell(text)) for name, text in (*found.items(), *_leaves(shown))]
    blocks: list[Block] = [Table(("What", "Value"), tuple(rows))]
    if story.facts.get("text"):
        blocks.append(Note("info", "The study", (Code(str(story.facts["text"]), "yaml"),), folded=True))
    return blocks


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Single values by their names; lists on one line."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield name, ", ".join(map(str, value)) or "none"
    else:
        yield name, "unknown" if value is None else str(value)


def objective(story: Story) -> list[Block]:
    """What is wanted, and what an arm must hold."""
    wanted = story.study.objective
    aim = "The more the better" if wanted.more_is_better else "The less the better"
    needs = [f"{percent(wanted.success_rate, 1)} of the requests succeed"]
    needs += [f"limits: {wanted.slo}"] if wanted.slo else []
    needs += [f"at most {percent(wanted.accuracy.max_loss, 1)} of the accuracy is lost"] if wanted.accuracy else []
    text = f" on the workload {wanted.workload}: {METRICS[wanted.metric].text}. {aim}."
    return [
        Paragraph(line(Span(story.label, Tone.STRONG), text)),
        Paragraph(line("An arm is considered as long as:")),
        Items(tuple(line(need) for need in needs)),
    ]


def versions(story: Story) -> Items:
    """Of the engines that were measured, as they said themselves."""
    found: dict[str, dict[str, None]] = {}
    for chapter in story.chapters:
        for standing in chapter.arms:
            builds = found.setdefault(standing.found.planned.arm.engine, {})
            builds |= dict.fromkeys(trial.build for trial in standing.found.trials if trial.build)
    lines = [line(f"{engine}: {', '.join(builds) or 'version unknown'}") for engine, builds in found.items()]
    return Items(tuple(lines))


def _indented(text: str) -> str:
    return "\n".join(f"#   {row}" for row in text.splitlines())
