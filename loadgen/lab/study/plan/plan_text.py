"""A plan as text for the terminal, and as JSON."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from loadgen.config.settings import RunSettings, public
from loadgen.config.target import SIMULATOR
from loadgen.document import Note, Table, terminal_writer
from loadgen.document.terminal_writer import USUAL_WIDTH
from loadgen.lab.study.plan.estimate import Span
from loadgen.lab.study.plan.plan import Plan, PlannedArm, Step
from loadgen.lab.study.spec.study import METRICS
from loadgen.util.number_format import duration, duration_range, fixed, percent, plural, value_range
from loadgen.util.packages import find
from loadgen.util.redaction import redact_command, redact_variables
from loadgen.util.terminal_text import printable

MAX_FILE_LINES = 12  # of a file that is written for an engine; a longer one is only in the JSON


def as_text(plan: Plan, columns: int = USUAL_WIDTH) -> str:
    """Return the plan as printable lines; control characters of the study file are escaped.

    Args:
        plan: The plan.
        columns: How long a line of its aim may be; commands and remarks are not wrapped.
    """
    return "\n".join(printable(line).rstrip() for line in _lines(plan, columns)) + "\n"


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object, without credentials in variables and flags."""
    study = plan.study
    default = public(RunSettings())
    return {
        "study": study.name,
        "objective": study.objective.as_json() | {"more_is_better": study.objective.more_is_better},
        "workloads": {
            name: {key: value for key, value in public(settings).items() if value != default[key]}
            for name, settings in plan.loads.items()
        },
        "steps": [_step(step, plan) for step in plan.steps],
        "estimate": {
            "seconds": list(plan.seconds),
            "gpu_hours": list(plan.gpu_hours),
            "max_quiet_wait_seconds": plan.max_quiet_wait_s,
            "without": plan.without_estimate,
        },
        "budget": study.budget.as_json(),
    }


def _aim(plan: Plan) -> Note:
    """Say what the study is about, and what decides it."""
    study = plan.study
    objective = study.objective
    decision = study.decision
    devices = f", {plural(study.hardware.devices, 'device')}" if study.hardware.devices else ""
    compared = "; a run compares it with NVML or npu-smi" if {*study.engines} - {SIMULATOR} else ""
    never_started = find("launchers", "local").never_started
    untested = [name for name in study.engines if name in never_started]
    engines = ", ".join(f"{name} {never_started[name]}".strip() for name in untested)
    limits = [f"{percent(objective.success_rate, 1)} of requests succeed"]
    if objective.slo:
        limits.append(objective.slo)
    if objective.accuracy:
        limits.append(f"at most {percent(objective.accuracy.max_loss, 1)} of accuracy is lost")
    rows = {
        "on": f"{study.hardware.name}{devices}, according to the file{compared}",
        "note": f"never started by loadgen's own tests: {engines}; commands follow the engines' "
        "sources",
        "objective": f"{objective.metric} on {objective.workload}, "
        f"{'more' if objective.more_is_better else 'less'} is better: "
        f"{METRICS[objective.metric].text}",
        "as long as": ", ".join(limits),
        "better is": f"{percent(decision.min_effect, 1)} or more with "
        f"{percent(decision.confidence, 1)} confidence, in "
        f"{value_range(decision.repeats.least, decision.repeats.most)} starts of each arm, in "
        f"blocks whose order seed {decision.seed} draws",
    }
    if not engines:
        del rows["note"]
    title = f"Study {study.name}: {', '.join(dict.fromkeys(study.models.values()))}"
    return Note("note", title, (Table.of(("", ""), rows.items()),))


def _lines(plan: Plan, columns: int) -> Iterator[str]:
    yield from terminal_writer.lines((_aim(plan),), columns)
    for number, step in enumerate(plan.steps):
        yield ""
        yield from _step_lines(number, step, plan.study.hardware.devices)
    yield ""
    yield from _total(plan)


def _step_lines(number: int, step: Step, box: int) -> Iterator[str]:
    starts = value_range(*step.starts)
    about = {
        "noise": "the baseline alone",
        "confirmation": "baseline and winner, on every workload",
    }
    what = about.get(step.kind, f"{step.kind}, from {', '.join(step.starts_from)}")
    yield f"{number}. {step.name}: {what}; {starts} starts, {duration_range(*step.seconds)}"
    if step.trials:
        yield f"   up to {step.trials} more arms, drawn while it runs"
    for note in step.notes:
        yield f"   note: {note}"
    widest = max((len(arm.name) for arm in step.arms), default=0)
    for arm in step.arms:
        yield from _arm_lines(arm, widest, box, wins=arm.name in step.wins)


def _arm_lines(arm: PlannedArm, widest: int, box: int, *, wins: bool) -> Iterator[str]:
    marks = [plural(arm.spec.devices_used(box), "device")] if box else []
    if arm.start:
        marks.append("the arm it starts from")
    if wins:
        marks.append("expected to win")
    if arm.same_as:
        marks.append(f"same as {arm.same_as}")
    if arm.spec.replicas > 1:
        marks.append(f"{arm.spec.replicas} replicas")
    loads = ", ".join(f"{name} {_span(span)}" for name, span in arm.loads.items())
    remarks = f" ({'; '.join(marks)})" if marks else ""
    yield f"   {arm.name:<{widest}}  start {_span(arm.until_ready)}, {loads}{remarks}"
    for number, launch in enumerate(arm.launches):
        if number == 0 and launch.shorthand and launch.shorthand[0] != launch.argv[0]:
            yield f"       # {_command(launch.shorthand)}"
        variables = [
            f"{name}={shlex.quote(value)}" for name, value in redact_variables(launch.env).items()
        ]
        yield f"       {' '.join([*variables, _command(launch.argv)])}"
        for path, text in launch.files.items() if number == 0 else ():
            lines = text.splitlines()
            yield f"       # writes {path}" + (
                f": {len(lines)} lines" if len(lines) > MAX_FILE_LINES else ":"
            )
            yield from (f"       #   {line}" for line in lines if len(lines) <= MAX_FILE_LINES)
    for note in arm.notes:
        yield f"       note: {note}"


def _total(plan: Plan) -> Iterator[str]:
    low_s, high_s = plan.seconds
    gpu_low, gpu_high = plan.gpu_hours
    hours = (
        f", {fixed(gpu_low, 2)} to {fixed(gpu_high, 2)} GPU-hours"
        if plan.study.hardware.devices
        else ""
    )
    unknown = ", ".join(plan.without_estimate)
    without = f", and the time of {unknown}, which is unknown" if unknown else ""
    starts = [sum(counts) for counts in zip(*(step.starts for step in plan.steps), strict=True)]
    yield f"In all: {value_range(*starts)} starts, {duration_range(low_s, high_s)}{hours}{without}"
    if wait_s := plan.study.budget.quiet_wait:
        before = "block and round" if plan.study.decision.rounds > 1 else "start"
        yield (
            f"Not in these times: up to {duration(wait_s)} before each {before} for a quiet "
            f"machine, in all up to {duration(plan.max_quiet_wait_s)}; and what is repeated "
            "because it failed or others disturbed it"
        )
    for name, spent, allowed in (
        ("hours", (low_s / 3600, high_s / 3600), plan.study.budget.hours),
        ("gpu_hours", (gpu_low, gpu_high), plan.study.budget.gpu_hours),
    ):
        if allowed is not None and spent[1] > allowed:
            over = "Even the minimum" if spent[0] > allowed else "The maximum"
            yield (
                f"{over} exceeds the budget of {allowed:g} {name}: the study stops when it is spent"
            )
    wins = [step for step in plan.steps if step.wins]
    if wins:
        won = [f"{', '.join(step.wins)} wins {step.name}" for step in wins]
        yield f"Assumed: {'; '.join(won)}"
    yield "Basis of these times:"
    starts_of: dict[str, None] = {}
    loads_of: dict[str, None] = {}
    for step in plan.steps:
        for arm in step.arms:
            starts_of[f"start of {arm.spec.engine} with {arm.model}: {arm.until_ready.basis}"] = (
                None
            )
            for name, span in arm.loads.items():
                loads_of[f"{name}: {span.basis if span else 'unknown'}"] = None
    yield from (f"  {basis}" for basis in (*starts_of, *loads_of))
    yield "Nothing was started and nothing was measured."


def _span(span: Span | None) -> str:
    return "n/a" if span is None else duration_range(span.min_s, span.max_s)


def _command(words: Sequence[str]) -> str:
    return shlex.join(redact_command(words))


def _step(step: Step, plan: Plan) -> dict[str, Any]:
    seed = plan.study.decision.seed
    return {
        "name": step.name,
        "kind": step.kind,
        "from": list(step.starts_from),
        "repeats": [step.min_starts, step.max_starts],
        "starts": list(step.starts),
        "trials": step.trials,
        "seconds": list(step.seconds),
        "blocks": [step.order(seed, block) for block in range(step.min_starts)],
        "expected": list(step.wins),
        "notes": list(step.notes),
        "arms": [_arm(arm, plan.study.hardware.devices) for arm in step.arms],
    }


def _arm(arm: PlannedArm, box: int) -> dict[str, Any]:
    return {
        "name": arm.name,
        "start": arm.start,
        "engine": arm.spec.engine,
        "model": arm.model,
        "variant": arm.spec.model,
        "knobs": dict(arm.spec.knobs),
        "replicas": arm.spec.replicas,
        "devices": list(arm.spec.devices),
        "devices_used": arm.spec.devices_used(box),
        "identity": arm.identity,
        "same_as": arm.same_as,
        "workloads": list(arm.workloads),
        "servers": [
            {
                "argv": redact_command(launch.argv),
                "shorthand": redact_command(launch.shorthand or launch.argv),
                "env": redact_variables(launch.env),
                "files": {str(path): text for path, text in launch.files.items()},
            }
            for launch in arm.launches
        ],
        "estimate": {
            "start": _as_list(arm.until_ready),
            "workloads": {name: _as_list(span) for name, span in arm.loads.items()},
        },
        "notes": list(arm.notes),
    }


def _as_list(span: Span | None) -> dict[str, Any] | None:
    return None if span is None else {"seconds": [span.min_s, span.max_s], "basis": span.basis}
