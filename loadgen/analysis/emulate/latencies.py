"""Latencies: the rows in which a console shows the mean and percentiles of a latency, and what they share."""

from collections.abc import Iterable

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.recorded_run import Bools, Run
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import CONNECTING, ERRED, FROM_SENT, UNKNOWN, ZERO, Rule, Rules
from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile

MS = 1_000_000


def began(run: Run, on: Rules) -> Int64s:
    """When a tool begins to send each request, ns."""
    return run.sent - run.connect_ns if CONNECTING in on else run.sent


def starts(run: Run, on: Rules) -> Int64s:
    """When a tool's clock starts for each request, ns."""
    return run.due if FROM_SENT not in on and run.settings.latency_from == "due" else began(run, on)


def first_start(run: Run, on: Rules) -> int:
    """When a tool begins to send the first request, ns."""
    sent = began(run, on)[run.sent > 0]
    return int(sent.min()) if len(sent) else run.start_ns


def reservations(run: Run, of: Bools) -> tuple[Rule, ...]:
    """What to know of every count of requests, of which these count as successful."""
    found = {UNKNOWN: run.unknown.any(), ERRED: (run.erred & of).any()}
    return tuple(rule for rule, holds in found.items() if holds)


def latency_row(
    label: str, name: str, value: float | None, on: Rules, *, unit_ms: float = 1.0, notes: tuple[Rule, ...] = ()
) -> Row:
    """One statistic of a latency.

    Args:
        label: The tool's own words.
        name: The latency and statistic of loadgen's that answers it, as "ttft mean".
        value: ns; None: of no values.
        on: The rules that hold: with `ZERO`, a statistic of no values is 0.
        unit_ms: The unit that the label names, in ms.
        notes: Where there are any, the value cannot be known.
    """
    if notes:
        value = None
    elif value is None and ZERO in on:
        value = 0.0
    return Row(label, None if value is None else value / MS / unit_ms, name, unit_ms=unit_ms, notes=notes)


def percentile_rows(
    title: str,
    metric: str,
    values: Distribution,
    ps: Iterable[float],
    on: Rules,
    *,
    unit_ms: float = 1.0,
    notes: tuple[Rule, ...] = (),
) -> list[Row]:
    """Mean, median and percentiles, as consoles after vLLM's print them.

    Args:
        title: What the rows call the latency, with its unit.
        metric: Which of loadgen's latencies answers them.
        values: ns.
        ps: The percentiles after the median.
        on, unit_ms, notes: See `latency_row`.
    """
    found = [("Mean", "mean", values.mean), ("Median", "p50", values.percentile(50))]
    found += [(percentile(p).upper(), percentile(p), values.percentile(p)) for p in ps]
    return [
        latency_row(f"{label} {title}:", f"{metric} {statistic}", value, on, unit_ms=unit_ms, notes=notes)
        for label, statistic, value in found
    ]
