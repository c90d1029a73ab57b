"""ComparedRun: one run of a side, in the form in which a comparison reads it; `SavedRun` is one
of loadgen.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from loadgen.analysis.compare.metrics import Meaning, Metric
from loadgen.analysis.compare.run_requests import RunRequests
from loadgen.analysis.compare.workload import (
    OWN,
    Difference,
    differences,
    environment,
    workload,
    workload_differences,
)
from loadgen.checks import prefix_cache
from loadgen.metrics.snapshot import LATENCIES
from loadgen.report import load_line
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.report.run_state import State, state_of
from loadgen.report.sections import latencies
from loadgen.runner import run_result

# What tools say of the load, by vLLM's names.
LOAD = ("model_id", "num_prompts", "request_rate", "max_concurrency")


class ComparedRun(ABC):
    """One run of a side.

    Attributes:
        where: Its file, and the line in it if the file holds several; for messages.
        tool: The tool that measured it.
        date: When it started, as the tool writes it; empty if it does not say.
        verdict: VALID, SUSPECT or INVALID; empty if the tool has none.
        partial: Why it ended early; None if it did not.
        simulated: Whether loadgen's simulator was measured.
        reasons: Why it is not VALID.
        failed_checks: The names of the checks for which it is not.
        succeeded: The number of requests that succeeded; None if unknown.
        error_rate: The share of all requests that failed, 0 to 1; None if unknown.
        cached_share: The share of the input that the server had cached before, 0 to 1; 0 if
            unknown.
        meaning: How it would be read by itself.
        workload: What must be the same in compared runs, by name; empty if it is unknown.
        load: What both tools say of the load, by name, for a comparison across tools.
        environment: What may differ, by name.
        records: The path of its records, if these were read.
        records_setting: The path of its records, if it wrote some.
        has_own_server: Whether the server was started for it, or for a series of runs.
        address: Where its server was; empty if unknown.
        key: Identifies the run.
        warnings: What must be read before its numbers.
        requests_missing: Why the values of its single requests cannot be read; empty if they can,
            or are in records.
    """

    where: str
    tool: str
    date: str
    verdict = ""
    partial: str | None = None
    simulated = False
    overloaded = False
    reasons: list[str]
    failed_checks: list[str]
    succeeded: int | None
    error_rate: float | None
    cached_share = 0.0
    meaning: Meaning
    workload: Mapping[str, Any]
    load: Mapping[str, Any]
    environment: Mapping[str, Any]
    records: str | None = None
    records_setting: str | None = None
    has_own_server = False
    address = ""
    key: tuple[object, ...]
    warnings: list[str]
    requests_missing = ""

    @property
    def unusable(self) -> str | None:
        """Why no conclusion follows from the run: it is INVALID or partial; None otherwise."""
        if self.partial:
            return f"PARTIAL: {self.partial}"
        return f"INVALID: {'; '.join(self.reasons)}" if self.verdict == "INVALID" else None

    def workload_differences(self, other: "ComparedRun") -> list[Difference]:
        """Return the differences between the workloads of two runs; across tools, of what both
        say of the load.
        """
        if self.tool == other.tool == OWN:
            return workload_differences(self.workload, other.workload)
        return differences(
            self.load, other.load, [name for name in self.load if name in other.load]
        )

    def environment_differences(self, other: "ComparedRun") -> list[Difference]:
        """Return the differences between the environments of two runs; across tools, only that
        of the tools.
        """
        if self.tool == other.tool == OWN:
            return differences(self.environment, other.environment)
        return differences({"tool": self.tool}, {"tool": other.tool})

    @property
    @abstractmethod
    def load_text(self) -> str:
        """Its load in a sentence."""

    @abstractmethod
    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """Read the requests for resampling these metrics; return None if they were not kept."""

    @abstractmethod
    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """Return the value of a metric; None if the run does not have it."""

    def marks(self, metric: Metric, meaning: Meaning) -> str:
        """Return the marks of a value, as in the report of a run: FEW, INEXACT, both or none."""
        return latencies.few_mark(_column(metric), self.succeeded or 0)

    @abstractmethod
    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """Return the width of the range in which the true value of a metric lies, as a share of
        the value.
        """


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
            self.result = run = RunResult.from_dict(result)
            self.date, self.verdict, self.partial = run.numbers.date, str(run.verdict), run.partial
            self.simulated, self.reasons = run.simulated, run.reasons()
            self.overloaded = state_of(run) is State.OVERLOADED
            self.failed_checks = [check.name for check in run.failed_checks]
            self.meaning, self.warnings = Meaning(run.latency_from), []
            self.has_own_server = "commands" in run.provenance.saved_engine
            self.address = str(run.provenance.saved_engine.get("base_url", ""))
            self.load = {name: getattr(run.numbers, name) for name in LOAD}
            self.succeeded, self.error_rate = run.numbers.completed, run.error_rate
            self.records_setting = run.provenance.settings.records
            self.workload, self.environment = workload(run), environment(run)
            self._histograms = {name: run.histograms.named(name).recorded() for name in LATENCIES}
            self.key = (
                self.date,
                run.numbers.duration,
                run.numbers.completed,
                run.numbers.total_output_tokens,
            )
            prompts = run.provenance.saved_prompts
            if not run.repeated_prompts and not prompts.get("sent_before"):
                self.cached_share = prefix_cache.unexplained(to_json_values(run.tokens), prompts)

    @property
    def load_text(self) -> str:
        """As `ComparedRun.load_text`."""
        return load_line.full_text(self.result)

    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """Read the requests for resampling these metrics from the records, or else from the result,
        if it has all of them; return None otherwise.

        Raises:
            BadInput: A line of the records is malformed.
        """
        if self.records is not None:
            return RunRequests.read(self.records, self._histograms, metrics, meaning)
        sample = self.result.request_sample
        if sample is None or not sample.is_complete or self.meaning.clock != meaning.clock:
            return None
        return RunRequests.of_sample(sample, self._histograms, metrics, meaning)

    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """As `ComparedRun.value`."""
        return metric.value(self.result, self._histograms, meaning)

    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """As `ComparedRun.resolution`."""
        return metric.resolution(self.result, meaning)

    def marks(self, metric: Metric, meaning: Meaning) -> str:
        """As `ComparedRun.marks`."""
        if not metric.latency:
            return ""
        name, column = meaning.distribution(metric.latency), _column(metric)
        few = latencies.few_mark(column, latencies.request_count(name, self.result))
        error = latencies.large_client_errors(name, self.result, [column])
        return few + (latencies.INEXACT if error else "")


def _column(metric: Metric) -> str:
    return "p50" if metric.statistic == "median" else metric.statistic
