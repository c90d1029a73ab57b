"""When the clocks of tools start, and the rows that print the mean and percentiles of a latency."""

from collections.abc import Iterable

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.analysis.emulate.recorded_run import Bools, RecordedRun
from loadgen.analysis.emulate.row import Row
from loadgen.analysis.emulate.rule import CONNECTING, ERRED, FROM_SENT, UNKNOWN, ZERO, Rule, Rules
from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile

MS = 1_000_000


def began(run: RecordedRun, active: Rules) -> Int64s:
    """Return when a tool begins to send each request, ns, shape (requests,)."""
    return run.sent - run.connect_ns if CONNECTING in active else run.sent


def starts(run: RecordedRun, active: Rules) -> Int64s:
    """Return when a tool's clock starts for each request, ns, shape (requests,)."""
    return run.due if FROM_SENT not in active and run.settings.latency_from == "due" else began(run, active)


def first_start(run: RecordedRun, active: Rules) -> int:
    """Return when a tool begins to send the first request, ns."""
    sent = began(run, active)[run.sent > 0]
    return int(sent.min()) if len(sent) else run.start_ns


def count_notes(run: RecordedRun, included: Bools) -> tuple[Rule, ...]:
    """Return the notes on every count of requests, if `included` are the successful ones."""
    found = {UNKNOWN: run.abandoned.any(), ERRED: (run.has_error & included).any()}
    return tuple(rule for rule, holds in found.items() if holds)


def latency_row(
    label: str, name: str, value: float | None, active: Rules, *, unit_ms: float = 1.0, notes: tuple[Rule, ...] = ()
) -> Row:
    """Return the row of one statistic of a latency.

    Args:
        label: In the tool's own words.
        name: The corresponding latency and statistic of loadgen, as "ttft mean".
        value: ns; None if there are no values.
        active: The active rules: with `ZERO`, a statistic without values is 0.
        unit_ms: The unit of the label, in ms.
        notes: If there are any, the value cannot be known.
    """
    if notes:
        value = None
    elif value is None and ZERO in active:
        value = 0.0
    return Row(label, None if value is None else value / MS / unit_ms, name, unit_ms=unit_ms, notes=notes)


def percentile_rows(
    title: str,
    metric: str,
    values: Distribution,
    ps: Iterable[float],
    active: Rules,
    *,
    unit_ms: float = 1.0,
    notes: tuple[Rule, ...] = (),
) -> list[Row]:
    """Return the rows of mean, median and percentiles in the format of vLLM's console.

    Args:
        title: Name of the latency, with its unit.
        values: ns.
        ps: The percentiles after the median, 0 to 100.
        active, unit_ms, notes: See `latency_row`.
    """
    found = [("Mean", "mean", values.mean), ("Median", "p50", values.percentile(50))]
    found += [(percentile(p).upper(), percentile(p), values.percentile(p)) for p in ps]
    return [
        latency_row(f"{label} {title}:", f"{metric} {statistic}", value, active, unit_ms=unit_ms, notes=notes)
        for label, statistic, value in found
    ]
