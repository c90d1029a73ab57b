"""ComparedRun: what a comparison asks of a run, whichever tool has measured it."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from loadgen.analysis.compare.meaning import Meaning
from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.run_requests import RunRequests


class ComparedRun(Protocol):
    """One run of a side.

    Attributes:
        where: Its file, and the line in it if the file holds several; for messages.
        date: When it started, as the tool writes it; empty if it does not say.
        verdict: VALID, SUSPECT or INVALID; empty if the tool has none.
        partial: Why it ended early; None if it did not.
        reasons: Why it is not VALID.
        failed_checks: The names of the checks for which it is not.
        error_rate: The share of requests that failed; None if unknown.
        cached_share: The share of the input that the server had cached before; 0 if unknown.
        meaning: How it would be read by itself.
        workload: What must be the same in compared runs, by name.
        load: What both tools say of the load, by name, for a comparison across tools.
        environment: What may differ, by name.
        records: The path of its records, if these were read.
        records_setting: The path of its records, if it wrote some.
        has_own_server: Whether the server was started for it.
        key: Identifies the run.
        warnings: What must be read before its numbers.
    """

    where: str
    tool: str
    date: str
    verdict: str
    partial: str | None
    simulated: bool
    reasons: list[str]
    failed_checks: list[str]
    error_rate: float | None
    cached_share: float
    meaning: Meaning
    workload: Mapping[str, Any]
    load: Mapping[str, Any]
    environment: Mapping[str, Any]
    records: str | None
    records_setting: str | None
    has_own_server: bool
    key: tuple[object, ...]
    warnings: list[str]

    @property
    def unusable(self) -> str | None:
        """Why no conclusion follows from the run; None if one may."""

    @property
    def load_text(self) -> str:
        """Its load in a sentence."""

    @property
    def has_requests(self) -> bool:
        """Whether the values of its single requests can be read."""

    @property
    def requests_missing(self) -> str:
        """Why another tool's run has none; empty for loadgen's."""

    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """Read the requests for resampling these metrics; return None if they were not kept."""

    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """Return the value of a metric; None if the run does not have it."""

    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """Return the width of the range in which the true value of a metric lies, as a share of the value."""
