"""Notes on published results: what was assumed to place them, and which of their numbers are not as published."""

import re
from collections.abc import Iterator

from loadgen.lab.study.execute.arm_result import ArmResult
from loadgen.lab.study.execute.trial import WorkloadRun
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.report.html import Line, Span, Tone, line
from loadgen.report.vllm_block import HEADERS
from loadgen.util.number_format import first_of, fixed

MAX_PLACES = 5  # that are named of one note
DIGITS = 2
LATENCY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(\w+)_ms")
ROWS = {
    "request_throughput": "Request throughput (req/s)",
    "input_throughput": "Input token throughput (tok/s)",
    "output_throughput": "Output token throughput (tok/s)",
    "total_token_throughput": "Total token throughput (tok/s)",
    "max_output_tokens_per_s": "Peak output token throughput (tok/s)",
    "max_concurrent_requests": "Peak concurrent requests",
}


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
        command = run.findings.provenance.command
        return line("served by ", Span(command, Tone.CODE) if command else "an unknown command")
    return None


def row_name(key: str) -> str:
    """Return the name that a number has in a result block; its key if no block has it."""
    if found := LATENCY.fullmatch(key):
        metric = HEADERS[found[2]][0] if found[2] in HEADERS else found[2].upper()
        return f"{found[1].capitalize()} {metric} (ms)"
    return ROWS.get(key, key)


def place(run: WorkloadRun) -> str:
    """Return the file and line of a published result, without folders."""
    origin = run.findings.provenance
    assert origin is not None
    return origin.place.removeprefix(origin.file.rpartition("/")[0]).lstrip("/")


def changes(run: WorkloadRun) -> str:
    """Return which numbers of a result are not as published, in one line; empty if all are."""
    changed = {name: value for name, value in run.findings.published.items() if run.summary.get(name) != value}
    again = [
        f"{row_name(name)} {fixed(run.summary[name], DIGITS)} (published: {fixed(value, DIGITS)})"
        for name, value in changed.items()
        if run.summary.get(name) is not None
    ]
    left_out = [row_name(name) for name in changed if run.summary.get(name) is None]
    parts = [f"Computed again from tokens and duration: {', '.join(again)}."] if again else []
    parts += [f"Left out, since the audit finds them inconsistent: {', '.join(left_out)}."] if left_out else []
    return " ".join(parts)
