"""SavedRun: one run of a side, read from its result, with its requests if its records are there."""

from collections.abc import Iterable
from typing import Any

from loadgen.analysis.compare.compared_run import LOAD, ComparedRun
from loadgen.analysis.compare.meaning import Meaning
from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.run_requests import RunRequests
from loadgen.analysis.compare.workload import OWN, environment, workload
from loadgen.checks import prefix_cache
from loadgen.metrics.snapshot import LATENCIES
from loadgen.report import load_line
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.runner import run_result


class SavedRun(ComparedRun):
    """One run.

    Args:
        where: Path of the file, and the line in it if it holds several runs; for messages.
        result: The result of the run, as its file has it.
        records: Path of the file of its records, if that is what was read.

    Raises:
        BadInput: The result is incomplete.
    """

    tool = OWN

    def __init__(self, where: str, result: dict[str, Any], records: str | None = None) -> None:
        self.where, self.records = where, records
        with run_result.whole(where):
            self.result = own = RunResult.from_dict(result)
            self.date, self.verdict, self.partial = own.numbers.date, str(own.verdict), own.partial
            self.simulated, self.reasons = own.simulated, own.reasons()
            self.failed_checks = [check.name for check in own.failed_checks]
            self.meaning, self.warnings = Meaning(own.latency_from), []
            self.has_own_server = "commands" in own.provenance.saved_engine
            self.load = {name: getattr(own.numbers, name) for name in LOAD}
            self.error_rate = own.error_rate
            self.records_setting = own.provenance.settings.records
            self.workload, self.environment = workload(own), environment(own)
            self._histograms = {name: own.histograms.histogram(name) for name in LATENCIES}
            self.key = (self.date, own.numbers.duration, own.numbers.completed, own.numbers.total_output_tokens)
            prompts = own.provenance.saved_prompts
            if not own.repeated_prompts and not prompts.get("sent_before"):
                self.cached_share = prefix_cache.unexplained(to_json_values(own.tokens), prompts)

    @property
    def load_text(self) -> str:
        """As `ComparedRun.load_text`."""
        return load_line.full_text(self.result)

    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """Read the requests for resampling these metrics; return None without records.

        Raises:
            BadInput: A line of the records is malformed.
        """
        return None if self.records is None else RunRequests.read(self.records, self._histograms, metrics, meaning)

    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """As `ComparedRun.value`."""
        return metric.value(self.result, self._histograms, meaning)

    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """As `ComparedRun.resolution`."""
        return metric.resolution(self.result, meaning)
