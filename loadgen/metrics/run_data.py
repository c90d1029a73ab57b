"""All data of a run: what was asked, what was measured, under which circumstances.

Checks and report read it.
"""

from functools import cached_property
from typing import Self

from msgspec import Struct, structs

from loadgen.config import slo
from loadgen.config.output import parse_percentiles
from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import Snapshot
from loadgen.workload.due_times import DueTimes

USUAL_PERCENTILES = (50.0, 90.0, 99.0)


class RunData(Struct, frozen=True, kw_only=True, dict=True):
    """The data of a run.

    Attributes:
        header: What was run.
        schedule: The due times that were asked for.
        snapshot: The numbers.
        trailer: What only the measuring processes know.
    """

    header: RunHeader
    schedule: DueTimes
    snapshot: Snapshot
    trailer: RunTrailer

    @property
    def settings(self) -> RunSettings:
        """The settings, as resolved."""
        return self.header.settings

    @property
    def workers(self) -> tuple[WorkerReport, ...]:
        """The report of each worker."""
        return self.trailer.workers

    @property
    def telemetry(self) -> Telemetry:
        """Server and GPU metrics during the run."""
        return self.trailer.telemetry

    @cached_property
    def client(self) -> ClientUsage:
        """Resources that measuring took and what disturbed it, all workers together."""
        return ClientUsage.together([worker.client for worker in self.workers])

    @property
    def closed_loop(self) -> bool:
        """Whether requests were due when a slot was free for them."""
        return is_closed_loop(self.settings) and self.schedule.duration_ns == 0

    @property
    def held_back(self) -> bool:
        """Whether a cap, and not the schedule alone, decided when requests were sent."""
        has_waited = bool(self.snapshot.histograms["pool_wait"].max)
        return self.closed_loop or (has_waited and self.settings.max_concurrency is not None)

    @property
    def percentiles(self) -> list[float]:
        """The percentiles that are printed of every latency, ascending: the usual ones and those
        asked for.
        """
        return sorted({*USUAL_PERCENTILES, *parse_percentiles(self.settings.metric_percentiles)})

    @property
    def goodput_metrics(self) -> frozenset[str]:
        """The latencies with a --goodput limit, of the run or of its classes; empty if any
        request has no limit.
        """
        settings = self.settings
        classes = [
            settings.of_class(request_class) for request_class in settings.request_classes
        ] or [settings]
        limits = [slo.parse_goodput(of_class.goodput) for of_class in classes]
        return frozenset().union(*limits) if all(limits) else frozenset()

    @property
    def relied_on(self) -> bool:
        """Whether the user lets the run decide something, so that remarks on its worth count as
        failures.
        """
        settings = self.settings
        slos = [settings.slo, *(request_class.slo for request_class in settings.request_classes)]
        return settings.strict or any(limit is not None for limit in slos)


class Measurement(Struct, frozen=True):
    """The numbers of a run or of a part of it, with what only the measuring processes know; parts
    add up.

    Attributes:
        snapshot: The numbers.
        trailer: The other facts.
    """

    snapshot: Snapshot
    trailer: RunTrailer

    def merge(self, other: Self) -> Self:
        """Combine two parts of a run."""
        return structs.replace(
            self,
            snapshot=self.snapshot.merge(other.snapshot),
            trailer=self.trailer.merge(other.trailer),
        )

    def with_records_error(self, error: str | None) -> Self:
        """Return a copy that reports this error of the records, unless it reports one already."""
        return structs.replace(self, trailer=self.trailer.with_records_error(error))
