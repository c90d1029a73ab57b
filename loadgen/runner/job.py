"""The job of one participant: a partition of a run, and all data that the participant needs for
it.
"""

import math
from pathlib import Path

from msgspec import Struct

from loadgen.config.settings import RunSettings
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.shards import shard_path
from loadgen.metrics.server.series import ScrapeOrder
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.target import Target

JOURNAL_BYTES = 1 << 28  # of all workers
PROGRESS_S, UNWATCHED_S = 0.25, 1.0  # between reports of progress; where nobody reads them


class Job(Struct, frozen=True):
    """What one participant has to do.

    Attributes:
        header: What the run is; all but where its prompts come from.
        targets: The servers: one, or several that share the requests.
        folder: Where the requests and their due times are written.
        engine_pids: The processes of engines that were started for the run.
        server_pids: The processes on this machine that serve, where none was started.
        records: The journal of the run, of which each worker writes a shard; None: none.
        scraping: Which servers to scrape for metrics, or None.
        partition: Which part of the run to carry out.
        sibling_pids: The other workers on the same machine.
        helper_pids: The processes on it that work for the run beside the workers: the command, and
            what prepares further requests.
        progress_period_s: How often participants report their progress, s.
    """

    header: RunHeader
    targets: tuple[Target, ...]
    folder: Path
    engine_pids: tuple[int, ...] = ()
    server_pids: tuple[int, ...] = ()
    records: Path | None = None
    scraping: ScrapeOrder | None = None
    partition: Partition = WHOLE
    sibling_pids: tuple[int, ...] = ()
    helper_pids: tuple[int, ...] = ()
    progress_period_s: float = PROGRESS_S

    @property
    def settings(self) -> RunSettings:
        """The run's settings, as resolved."""
        return self.header.settings

    @property
    def max_concurrency(self) -> int | None:
        """Its share of --max-concurrency."""
        whole = self.settings.max_concurrency
        return None if whole is None else self.partition.share(whole)

    @property
    def shard(self) -> Path | None:
        """The journal of its own partition."""
        return self.records and shard_path(self.records, self.partition.index)

    @property
    def max_record_bytes(self) -> float:
        """How large its records may grow: a journal that the user did not ask for is bounded."""
        return math.inf if self.settings.records else JOURNAL_BYTES // self.partition.count
