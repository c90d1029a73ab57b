"""Latencies: the rows in which a console shows the mean and percentiles of a latency, and what they share."""

from collections.abc import Iterable

from loadgen.schedule import Int64s
from loadgen.tools.distribution import Distribution
from loadgen.tools.row import Row
from loadgen.tools.rule import CONNECTING, ERRED, FROM_SENT, UNKNOWN, ZERO, Rule, Rules
from loadgen.tools.run import Bools, Run
from loadgen.words import percentile

MS = 1_000_000


def starts(run: Run, on: Rules) -> Int64s:
    """When a tool's clock starts for each request, ns."""
    began = run.sent - run.connect_ns if CONNECTING in on else run.sent
    return run.due if FROM_SENT not in on and run.settings.latency_from == "due" else began


def first_start(run: Run, on: Rules) -> int:
    """When the first request began on such a clock, ns."""
    began = (run.sent - run.connect_ns if CONNECTING in on else run.sent)[run.sent > 0]
    return int(began.min()) if len(began) else run.start_ns


def reservations(run: Run, of: Bools) -> tuple[Rule, ...]:
    """What to know of every count of requests, of which these count as successful."""
    found = {UNKNOWN: run.unknown.any(), ERRED: (run.erred & of).any()}
    return tuple(rule for rule, holds in found.items() if holds)


def percentile_rows(
    title: str, metric: str, values: Distribution, ps: Iterable[float], on: Rules, notes: tuple[Rule, ...] = ()
) -> list[Row]:
    """Mean, median and percentiles as the forks of vLLM's script print them.

    Args:
        title: What the rows call the latency.
        metric: Which of loadgen's latencies answers them.
        values: ns.
        ps: The percentiles after the median.
        on: The rules that hold: with `ZERO`, the statistics of no values are 0.
        notes: Where there are any, no value can be known.
    """

    def row(label: str, statistic: str, value: float | None) -> Row:
        if notes:
            value = None
        elif value is None and ZERO in on:
            value = 0.0
        shown = None if value is None else value / MS
        return Row(f"{label} {title} (ms):", shown, f"{metric} {statistic}", notes=notes)

    named = [(percentile(p).upper(), percentile(p), p) for p in ps]
    return [row("Mean", "mean", values.mean), row("Median", "p50", values.percentile(50))] + [
        row(label, name, values.percentile(p)) for label, name, p in named
    ]
