"""All data of a run: what was asked, what was measured, under which circumstances. Checks and report read it."""

from dataclasses import dataclass
from functools import cached_property

from loadgen.config import slo
from loadgen.config.output import parse_percentiles
from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.worker_report import WorkerReport
from loadgen.workload.due_times import DueTimes

USUAL_PERCENTILES = (50.0, 90.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class RunData:
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

    @property
    def probes(self) -> int:
        """Requests beside the load."""
        return len(self.trailer.probe_e2el_ns) + self.trailer.probes_failed

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
        waited = bool(self.snapshot.histograms["pool_wait"].max)
        return self.closed_loop or (waited and self.settings.max_concurrency is not None)

    @property
    def percentiles(self) -> list[float]:
        """The percentiles that are printed of every latency, ascending: the usual ones and those asked for."""
        return sorted({*USUAL_PERCENTILES, *parse_percentiles(self.settings.metric_percentiles)})

    @property
    def goodput_metrics(self) -> frozenset[str]:
        """The latencies with a --goodput limit, of the run or of its classes; empty if any request has no limit."""
        each = [self.settings.of_class(one) for one in self.settings.request_classes] or [self.settings]
        limits = [slo.parse_goodput(own.goodput) for own in each]
        return frozenset(metric for own in limits for metric in own) if all(limits) else frozenset()

    @property
    def relied_on(self) -> bool:
        """Whether the user lets the run decide something, so that remarks on its worth count as failures."""
        has_slo = self.settings.slo is not None or any(one.slo is not None for one in self.settings.request_classes)
        return self.settings.strict or has_slo
