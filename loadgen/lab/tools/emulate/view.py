"""View: a recorded run as a tool with some active rules sees it: when its clocks start, and its rows of latencies."""

from collections.abc import Iterable
from dataclasses import dataclass

from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.lab.tools.emulate.recorded_run import Bools, RecordedRun
from loadgen.lab.tools.emulate.row import Row
from loadgen.lab.tools.emulate.rule import CONNECTING, ERRED, FROM_SENT, UNKNOWN, ZERO, Rule, Rules
from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile

MS = 1_000_000


@dataclass(frozen=True)
class View:
    """A recorded run, and the active rules; times are ns, arrays have the shape (requests,)."""

    run: RecordedRun
    active: Rules

    @property
    def began(self) -> Int64s:
        """When the tool begins to send each request."""
        return self.run.sent - self.run.connect_ns if CONNECTING in self.active else self.run.sent

    @property
    def starts(self) -> Int64s:
        """When the tool's clock starts for each request."""
        from_due = FROM_SENT not in self.active and self.run.settings.latency_from == "due"
        return self.run.due if from_due else self.began

    @property
    def first_start(self) -> int:
        """When the tool begins to send the first request."""
        sent = self.began[self.run.sent > 0]
        return int(sent.min()) if len(sent) else self.run.start_ns

    def notes_on_counts(self, included: Bools) -> tuple[Rule, ...]:
        """Return the notes on every count of requests, if `included` are the successful ones."""
        found = {UNKNOWN: self.run.abandoned.any(), ERRED: (self.run.has_error & included).any()}
        return tuple(rule for rule, holds in found.items() if holds)

    def latency_row(
        self, label: str, name: str, value: float | None, unit_ms: float = 1.0, notes: tuple[Rule, ...] = ()
    ) -> Row:
        """Return the row of one statistic of a latency.

        Args:
            name: The corresponding latency and statistic of loadgen, as "ttft mean".
            value: ns; None if there are no values: with `ZERO`, it is 0.
            notes: If there are any, the value cannot be known.
        """
        if notes:
            value = None
        elif value is None and ZERO in self.active:
            value = 0.0
        return Row(label, None if value is None else value / MS / unit_ms, name, unit_ms=unit_ms, notes=notes)

    def percentile_rows(
        self,
        title: str,
        metric: str,
        values: Distribution,
        ps: Iterable[float],
        unit_ms: float = 1.0,
        notes: tuple[Rule, ...] = (),
    ) -> list[Row]:
        """Return the rows of mean, median and percentiles in the format of vLLM's console.

        Args:
            values: ns.
            ps: The percentiles after the median, 0 to 100.
        """
        found = [("Mean", "mean", values.mean), ("Median", "p50", values.percentile(50))]
        found += [(percentile(p).upper(), percentile(p), values.percentile(p)) for p in ps]
        return [
            self.latency_row(f"{label} {title}:", f"{metric} {statistic}", value, unit_ms, notes)
            for label, statistic, value in found
        ]
