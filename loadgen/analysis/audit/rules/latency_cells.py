"""Latency cells: times of a request in tables, against what the requests in flight leave room for."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, off, plain
from loadgen.analysis.audit.study import PublishedArm, PublishedStudy
from loadgen.analysis.audit.table import Quantity, Row

MAX_CLIENT_SHARE = 0.03  # relative: what a client needs between two requests


def latency_cells(study: PublishedStudy) -> Iterator[Finding]:
    """N requests of a mean time, at most `cap` at once, fit into their run; one at a time, they fill it."""
    if study.comparison is None:
        return
    for row, base, cell, _ in study.comparison.pairs():
        before, after = base.get("latency_s"), cell.get("latency_s")
        arms = study.compared(row, base, cell)
        for quantity, arm in zip((before, after), arms, strict=False):
            if quantity is not None:
                yield from _checked(study, row, quantity, before, arm)


def _checked(
    study: PublishedStudy, row: Row, quantity: Quantity, before: Quantity | None, arm: PublishedArm
) -> Iterator[Finding]:
    known = arm.result.all("ok", "cap", "duration_s")
    if known is None or known[0].low <= 0:
        return
    ok, cap, duration = known
    most = duration * cap / ok
    said, where = f"{ok} requests in {duration} s", arm.result.place.line
    if quantity.number.above(most):
        why = f"{row.name}: {said}, {cap} at once, leave {plain(most.value)} s for each (line {where})"
        yield _finding(study, quantity, f"at most {plain(most.value)} s", why, most)
    elif cap.value == 1 and not arm.result.over_guidellm and (most * (1 - MAX_CLIENT_SHARE)).above(quantity.number):
        why = f"{row.name}: {said}, one after the other, are {plain(most.value)} s for each (line {where})"
        if before is not None and quantity.change is not None and quantity.change.is_speedup:
            why += f"; {quantity.change.text} is {plain(before.number.value / most.value)}x"
        yield _finding(study, quantity, f"{plain(most.value)} s", why, most)


def _finding(study: PublishedStudy, quantity: Quantity, should_be: str, why: str, most: Number) -> Finding:
    says = f"mean latency {quantity.text} s"
    return Finding(
        study.page.place(quantity.at), "latency-cell", says, should_be, why, weight=off(quantity.number, most)
    )
