"""Evidence: everything that a run leaves to be judged and reported."""

from dataclasses import dataclass
from functools import cached_property

from loadgen.config.output import parse_percentiles
from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.metrics.client_usage import Client
from loadgen.metrics.records.header import Heading
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.worker_report import Shard
from loadgen.workload.arrivals import Schedule

USUAL_PERCENTILES = (50.0, 90.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was asked, what was measured, and under which circumstances.

    Attributes:
        heading: What the run is.
        schedule: The due times that were asked for.
        snapshot: As measured.
        shards: What became of each worker.
        telemetry: What servers and GPUs said meanwhile.
        no_answer_since_s: Seconds on the clock from which on the server refused every connection, for which the run was
            ended; None where it was not.
    """

    heading: Heading
    schedule: Schedule
    snapshot: Snapshot
    shards: tuple[Shard, ...]
    telemetry: Telemetry = Telemetry()
    no_answer_since_s: float | None = None

    @property
    def settings(self) -> RunSettings:
        """The settings, as resolved."""
        return self.heading.settings

    @cached_property
    def client(self) -> Client:
        """What the measuring cost and met, all workers together."""
        return Client.together([shard.client for shard in self.shards])

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
    def relied_on(self) -> bool:
        """Whether somebody lets the run decide something, so that remarks on its worth count as failures."""
        return self.settings.strict or self.settings.slo is not None
