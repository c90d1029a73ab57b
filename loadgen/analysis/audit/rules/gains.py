"""Gains: what a summary says each stage brought, against the best so far; rows and engines that come from nowhere."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, change
from loadgen.analysis.audit.study import Arm, Study


def gains(study: Study) -> Iterator[Finding]:
    """A stage's gain is its best by the best before it; where a row has a baseline of its own, it is judged by that."""
    if study.summary is None:
        return
    before = _bests(study)
    for row in study.summary.rows:
        stage = study.stage_of(row)
        printed = next((cell.change for cell in row.cells if cell.change), None)
        if stage is None or printed is None:
            continue
        best = _best(study, [arm for arm in study.arms if arm.stage == stage])
        first, so_far = before.get(stage.begin, (None, None))
        if best is None or first is None or so_far is None:
            continue
        found, start, incumbent = (study.whole(arm) for arm in (best, first, so_far))
        if found is None or start is None or incumbent is None or incumbent.low <= 0 or start.low <= 0:
            continue
        ratio = found / incumbent
        if printed.ratio.agrees(ratio):
            continue
        why = f"{row.name}: {_said(study, best)} / {_said(study, so_far)} - 1 = {change(ratio.value)}"
        if printed.ratio.agrees(found / start):
            why += f", over the best so far ({so_far.label}); {printed.text} is over the first arm's {start}"
        yield Finding(study.page.place(printed.at), "gain", printed.text, change(ratio.value), why)


def rows(study: Study) -> Iterator[Finding]:
    """Every row of a summary is about a stage that is on the page."""
    if study.summary is None or not study.stages:
        return
    for row in study.summary.rows:
        if study.stage_of(row) is None:
            why = f"no stage covers it: {', '.join(stage.title for stage in study.stages)}"
            yield Finding(study.page.place(row.at), "row-without-stage", row.name, "", why)


def incumbents(study: Study) -> Iterator[Finding]:
    """The engine that won a stage is among those that the next one tunes."""
    best: Arm | None = None
    lost = ""
    for stage, arms in study.staged():
        within = (command for command in study.page.commands if stage.begin <= command.at < stage.end)
        engines = {command.engine for command in within if command.engine}
        winner = best.command.engine if best and best.command else ""
        if winner and engines and winner not in engines and lost != winner:
            lost = winner
            says = f"continues with {' and '.join(sorted(engines))}"
            total = best.total if best else ""
            why = f"{winner} had won before this stage, with {total} tok/s: gains can be added only to the winner"
            yield Finding(study.page.place(stage.begin), "incumbent", says, winner, why, note=True)
        best = _best(study, [*arms, *([best] if best else [])])


def _bests(study: Study) -> dict[int, tuple[Arm | None, Arm | None]]:
    """For each stage the first arm of all, and the best arm before it; in the first stage the first arm is both."""
    found: dict[int, tuple[Arm | None, Arm | None]] = {}
    first: Arm | None = None
    best: Arm | None = None
    for stage, arms in study.staged():
        first = first or next(iter(arms), None)
        found[stage.begin] = first, best or first
        best = _best(study, [*arms, *([best] if best else [])])
    return found


def _best(study: Study, arms: list[Arm]) -> Arm | None:
    """The arm with the highest throughput of those that lost no request."""
    most = max((ok.value for arm in study.arms if arm.stage and (ok := arm.result.get("ok"))), default=0)
    whole = [arm for arm in arms if arm.total and (ok := arm.result.get("ok")) and ok.value == most]
    return max(whole, key=lambda arm: _value(study.whole(arm)), default=None)


def _value(number: Number | None) -> float:
    return number.value if number else 0.0


def _said(study: Study, arm: Arm) -> str:
    times = study.replicas(arm)
    return f"{arm.total}" if times == 1 else f"{arm.total} x {times}"
