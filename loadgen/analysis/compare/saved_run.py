"""Start: one run of a side, as it was saved, with its requests where their records are there."""

from collections.abc import Iterable
from typing import Any

from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.sample import Sample
from loadgen.analysis.compare.workload import facts, workload
from loadgen.checks import prefix_cache
from loadgen.core.histogram import Histogram
from loadgen.metrics.snapshot import LATENCIES
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.runner import run_result


class Start:
    """One run.

    Args:
        where: It was read, for messages.
        result: Of the run.
        records: The file of its records, if that is what was read.

    Raises:
        BadInput: The result is not whole.
    """

    def __init__(self, where: str, result: dict[str, Any], records: str | None = None) -> None:
        self.where, self.records = where, records
        with run_result.whole(where):
            self.result = own = RunResult.from_dict(result)
            self.date, self.verdict, self.partial = own.numbers.date, str(own.verdict), own.partial
            self.simulated, self.reasons = own.simulated, own.reasons()
            self.error_rate = own.error_rate
            self.kept = own.provenance.settings.records
            self.workload, self.facts = workload(own), facts(own)
            self.cached = self._cached(own)
            self._histograms: dict[str, Histogram] = {name: own.histograms.named(name) for name in LATENCIES}
            self.key = (self.date, own.numbers.duration, own.numbers.completed, own.numbers.total_output_tokens)

    @property
    def doubt(self) -> str | None:
        """Why nothing follows from the run, in words; None where something may."""
        if self.partial:
            return f"PARTIAL: {self.partial}"
        return f"INVALID: {'; '.join(self.reasons)}" if self.verdict == "INVALID" else None

    @staticmethod
    def _cached(own: RunResult) -> float:
        """The share of its input that the server had cached from before the run; 0 where nobody can tell."""
        prompts = own.provenance.saved_prompts
        if own.repeated_prompts or prompts.get("sent_before"):
            return 0.0
        return prefix_cache.unexplained(to_json_values(own.tokens), prompts)

    def sample(self, metrics: Iterable[Metric]) -> Sample | None:
        """Its requests, to be drawn anew for these metrics; None where there are no records.

        Raises:
            BadInput: A line of them is no record.
        """
        return None if self.records is None else Sample.read(self.records, self._histograms, metrics)

    def value(self, metric: Metric) -> float | None:
        """Of a metric; None where the run has none."""
        return metric.of(self.result, self._histograms)
