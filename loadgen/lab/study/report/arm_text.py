"""An arm as text: its command, its parameters, the result of a run, and its value on a workload.

Of published results also: what was assumed to place them, and which of their numbers are not as
published.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence

from loadgen.config import serialize
from loadgen.config.settings import RunSettings, public
from loadgen.document import Cell, Code, Line, Note, NoteKind, Span, Tone, cell, line
from loadgen.lab.study.execute.arm_result import ArmResult, Difference, Verdict, WorkloadResult
from loadgen.lab.study.execute.trial import WorkloadRun
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.lab.study.spec.study import MAX_RATE
from loadgen.report.tool_block import SGLANG_TOTALS, VLLM_LATENCIES, VLLM_TOTALS, vllm_block
from loadgen.util.number_format import first_of, fixed, signed
from loadgen.util.redaction import redact_command, redact_variables

MAX_PLACES = 5  # that are named of one note
LATENCY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(\w+)_ms")
ROWS = VLLM_TOTALS | {"input_throughput": SGLANG_TOTALS["input_throughput"]}
DIGITS = 2  # of numbers and percentages
TONES = {1: Tone.GOOD, -1: Tone.BAD, 0: Tone.QUIET}  # by direction
SCALED_METRICS = ("total_tps_per_box", MAX_RATE)  # values of the whole box
PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)_ttft_ms")


def serving_command(
    planned: PlannedArm,
    model: ReportModel,
    title: str = "Serving script",
    kind: NoteKind = "info",
    *,
    folded: bool = True,
) -> Iterator[Note]:
    """Yield the serving command in its short form, without credentials, and the files that the
    first server reads; pages of published results do not have these.

    Args:
        planned: The arm.
        model: The contents of the report.
        title: Title of the command's note.
        kind: Its kind.
        folded: Whether it is folded.
    """
    lines = [" ".join([*_variables(planned), shlex.join(_words(planned))])]
    if planned.spec.replicas > 1:
        lines.insert(0, f"# {planned.spec.replicas} of these, which share the requests")
    yield Note(kind, title, (Code("\n".join(lines), "bash", copyable=True),), folded=folded)
    for path, text in () if model.published else planned.launches[0].files.items():
        yield Note("info", f"File {path}", (Code(text.rstrip("\n")),), folded=True)


def parameters(planned: PlannedArm) -> Code:
    """Return what an arm adds to the bare command of its engine, one flag a line."""
    return Code("\n".join(_parameter_lines(planned)) or "# none", "bash")


def changed_parameters(planned: PlannedArm, reference: PlannedArm) -> str:
    """Say what has to change to serve an arm in place of another: "set `--max-num-seqs 64`
    (was 32)"."""
    after, before = _parameter_lines(planned), _parameter_lines(reference)
    names = {line.split()[0] for line in after}
    changed = [f"`{line}`{_former(line, before)}" for line in after if line not in before]
    dropped = [f"`{line}`" for line in before if line.split()[0] not in names]
    parts = [f"serve {planned.model}"] if planned.model != reference.model else []
    parts += [f"set {' '.join(changed)}"] if changed else []
    parts += [f"leave out {' '.join(dropped)}"] if dropped else []
    return ", ".join(parts)


def _former(line: str, before: Sequence[str]) -> str:
    """Write the value that a parameter had; empty if it had none, or several."""
    name, _, value = line.partition(" ")
    former = [old.partition(" ")[2] for old in before if old.split()[0] == name]
    return f" (was {former[0]})" if value and len(former) == 1 and former[0] else ""


def _parameter_lines(planned: PlannedArm) -> list[str]:
    words = _words(planned)
    lines = _variables(planned)
    for word in words[words.index(planned.model) + 1 :] if planned.model in words else words:
        if word.startswith("-") or not lines:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return lines


def result_block(run: WorkloadRun) -> Code:
    """Return the result of a run as `vllm bench serve` prints it."""
    summary = run.summary
    metrics = [metric for metric in VLLM_LATENCIES if summary.get(f"mean_{metric}_ms") is not None]
    percentiles = sorted(
        float(match[1]) for name in summary if (match := PERCENTILE.fullmatch(name))
    )
    # Published results have fewer keys.
    values = defaultdict(lambda: None, {"request_rate": "inf"} | dict(summary))
    if run.findings.published and "failed" not in run.findings.published:
        values["failed"] = None
    return Code("\n".join(row.rstrip() for row in vllm_block(values, metrics, percentiles)))


def profile(settings: RunSettings) -> Code:
    """Return a workload as a file for `loadgen run --config`."""
    shown = public(settings)
    return Code(
        "\n".join(f"{name}: {json.dumps(shown[name])}" for name in serialize.explicit(settings)),
        "yaml",
    )


def in_words(name: str) -> str:
    """Return the name of a stage as a heading."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def score(result: WorkloadResult | None, model: ReportModel, unit: str = "") -> str:
    """Return the value of the objective, marked if it was scaled up to the whole box."""
    if result is None:
        return fixed(None)
    scaled = result.estimated and model.study.objective.metric in SCALED_METRICS
    return fixed(result.achieved, DIGITS, unit) + (" (est.)" if scaled else "")


def difference_span(arm: ArmResult, difference: Difference) -> Span:
    """Return a difference in parentheses, coloured if its bounds exclude 0."""
    return Span(
        f"({signed(difference.share, DIGITS)}; {difference.bounds(DIGITS)})", _tone(arm, difference)
    )


def difference_text(arm: ArmResult, workload: str) -> Span | str:
    """Return the difference of an arm from its reference for a table, coloured if its bounds
    exclude 0.
    """
    difference = arm.workloads[workload].difference if workload in arm.workloads else None
    if difference is None:
        return "-"
    return Span(difference.text(DIGITS), _tone(arm, difference))


def _tone(arm: ArmResult, difference: Difference) -> Tone:
    return Tone.QUIET if arm.verdict is Verdict.INFEASIBLE else TONES[difference.direction]


def doubts(result: WorkloadResult | None) -> list[Line]:
    """Return what stands beside a number whose runs are not all VALID."""
    runs = list(result.runs.values()) if result else []
    suspect = sum(run.findings.verdict == "SUSPECT" for run in runs)
    text = "SUSPECT" if suspect == len(runs) else f"{suspect} of {len(runs)} runs SUSPECT"
    return [line(Span(text, Tone.BAD))] if suspect else []


def numbers(arm: ArmResult | None, workload: str, model: ReportModel) -> Cell:
    """Return an arm's numbers on a workload: the objective with its difference, and what a user
    sees.
    """
    result = arm.workloads.get(workload) if arm else None
    if arm is None or result is None:
        return cell("n/a")
    first: list[str | Span] = [f"{model.label}: {score(result, model)}"]
    if result.difference is not None:
        first += [" ", difference_span(arm, result.difference)]
    lines: list[Line] = [line(*first), *doubts(result)]
    if model.study.objective.metric != "total_tps_per_box":
        lines.append(
            line(
                "Total TPS: "
                f"{fixed(result.total_tps, DIGITS)}{' (est.)' if result.estimated else ''}"
            )
        )
    lines.append(line(f"Mean TPOT(ms): {fixed(result.mean('mean_tpot_ms'), DIGITS)}"))
    if model.published and (served_by := other_command(arm, workload)):
        lines.append(served_by)
    if arm.verdict is Verdict.INFEASIBLE:
        lines.append(line(f"not considered: {arm.why}"))
    return cell(*lines)


def _words(planned: PlannedArm) -> list[str]:
    launch = planned.launches[0]
    return redact_command(launch.shorthand or launch.argv)


def _variables(planned: PlannedArm) -> list[str]:
    return [
        f"{name}={shlex.quote(value)}" for name, value in redact_variables(planned.spec.env).items()
    ]


def assumptions(model: ReportModel) -> Iterator[Line]:
    """Yield what was assumed of the results, each with the places that it holds for."""
    places: dict[str, dict[str, None]] = {}
    for run in model.runs:
        origin = run.findings.provenance
        for note in origin.notes if origin else ():
            places.setdefault(note, {})[place(run)] = None
    for note, where in places.items():
        yield line(f"{first_of([*where], MAX_PLACES)}: {note}")


def other_command(arm: ArmResult, workload: str) -> Line | None:
    """Return the command of an arm's result on a workload if it is not the arm's own."""
    for trial in arm.trials:
        run = trial.runs.get(workload)
        if run is None or trial.config == arm.planned.identity or run.findings.provenance is None:
            continue
        text = run.findings.provenance.command
        return line("served by ", Span(text, Tone.CODE) if text else "an unknown command")
    return None


def row_name(key: str) -> str:
    """Return the name that a number has in a result block; its key if no block has it."""
    if match := LATENCY.fullmatch(key):
        metric = VLLM_LATENCIES[match[2]][0] if match[2] in VLLM_LATENCIES else match[2].upper()
        return f"{match[1].capitalize()} {metric} (ms)"
    return ROWS[key][0].rstrip(":") if key in ROWS else key


def place(run: WorkloadRun) -> str:
    """Return the file and line of a published result, without folders."""
    origin = run.findings.provenance
    assert origin is not None
    return origin.place.removeprefix(origin.file.rpartition("/")[0]).lstrip("/")


def changes(run: WorkloadRun) -> str:
    """Return which numbers of a result are not as published, in one line; empty if all are."""
    changed = {
        name: value
        for name, value in run.findings.published.items()
        if run.summary.get(name) != value
    }
    again = [
        f"{row_name(name)} {fixed(run.summary[name], DIGITS)} (published: {fixed(value, DIGITS)})"
        for name, value in changed.items()
        if run.summary.get(name) is not None
    ]
    left_out = [row_name(name) for name in changed if run.summary.get(name) is None]
    parts = [f"Computed again from tokens and duration: {', '.join(again)}."] if again else []
    parts += (
        [f"Left out, since the audit finds them inconsistent: {', '.join(left_out)}."]
        if left_out
        else []
    )
    return " ".join(parts)
