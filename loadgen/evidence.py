"""Evidence: everything that a run leaves to be judged and reported."""

from dataclasses import dataclass
from typing import Any

from loadgen.schedule import Schedule
from loadgen.settings import RunSettings, is_closed_loop, parse_percentiles
from loadgen.snapshot import Snapshot

USUAL_PERCENTILES = (50.0, 90.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was asked, what was measured, and under which circumstances.

    Attributes:
        settings: As resolved.
        schedule: The due times that were asked for.
        snapshot: As measured.
        client: What the measuring cost and met; see `loadgen.measurement.Measured.client`.
        provenance: What one needs to know to make the same run again.
        model: The model's name in requests.
        date: Local start time, YYYYmmdd-HHMMSS.
        simulated: Whether the engine was loadgen's own simulator.
        same_schedule: Whether the measuring process carried out `schedule`.
        same_engine: Whether the engine's process at the end is the one of the start; None: not ours to know.
    """

    settings: RunSettings
    schedule: Schedule
    snapshot: Snapshot
    client: dict[str, Any]
    provenance: dict[str, Any]
    model: str
    date: str
    simulated: bool = False
    same_schedule: bool = True
    same_engine: bool | None = None

    @property
    def held_back(self) -> bool:
        """Whether a cap, and not the schedule alone, decided when requests were sent."""
        waited = bool(self.snapshot.histograms["pool_wait"].max)
        return is_closed_loop(self.settings) or (waited and self.settings.max_concurrency is not None)

    @property
    def percentiles(self) -> list[float]:
        """The percentiles that are printed of every latency, ascending: the usual ones and those asked for."""
        return sorted({*USUAL_PERCENTILES, *parse_percentiles(self.settings.metric_percentiles)})

    @property
    def relied_on(self) -> bool:
        """Whether somebody lets the run decide something, so that remarks on its worth count as failures."""
        return self.settings.strict or self.settings.slo is not None
