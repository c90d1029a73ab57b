"""Start: one run of a side, as it was saved, with its requests where their records are there."""

from functools import cached_property
from typing import Any

from loadgen.comparing.metrics import Metric
from loadgen.comparing.sample import Sample
from loadgen.comparing.workload import facts, workload
from loadgen.errors import BadInput
from loadgen.histogram import Histogram
from loadgen.report.brief import reasons
from loadgen.snapshot import LATENCIES


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
        self.where, self.result, self.records = where, result, records
        try:
            own = result["loadgen"]
            self.date, self.verdict, self.partial = str(result["date"]), str(own["verdict"]), own["partial"]
            self.simulated, self.reasons = bool(own["simulated"]), reasons(result)
            self.kept: str | None = own["provenance"]["settings"]["records"]
            self.workload, self.facts = workload(result), facts(result)
            self._histograms = {name: Histogram.from_dict(own["histograms"][name]) for name in LATENCIES}
            self.key = (self.date, result["duration"], result["completed"], result["total_output_tokens"])
        except (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError) as error:
            problem = f"{where} is no whole result of loadgen ({type(error).__name__}: {error})"
            raise BadInput("FILE", problem, "name a result as it was saved, or a file of records") from error

    @property
    def doubt(self) -> str | None:
        """Why nothing follows from the run, in words; None where something may."""
        if self.partial:
            return f"PARTIAL: {self.partial}"
        return f"INVALID: {'; '.join(self.reasons)}" if self.verdict == "INVALID" else None

    @cached_property
    def sample(self) -> Sample | None:
        """Its requests; None where there are no records."""
        return None if self.records is None else Sample.read(self.records)

    def value(self, metric: Metric) -> float | None:
        """Of a metric; None where the run has none."""
        return metric.of(self.result, self._histograms)
