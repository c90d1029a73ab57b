"""EarlyStop: ends a run that can no longer meet a criterion."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from loadgen.analysis.search.criteria import LOOK_CONFIDENCE, Criterion, RequestShare
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.errors import ENDED_BY_SEARCH, BadInput
from loadgen.metrics.progress import ON_THE_CLOCK, Progress
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.shards import shard_path
from loadgen.stats import block_bootstrap
from loadgen.stats.ratio_confidence_interval import share_bounds
from loadgen.util.number_format import percent

# Returns why a run need not go on; None as long as it must.
StopRule = Callable[[Progress], str | None]


class EarlyStop:
    """A stop rule that follows the journals of a run while they are written.

    It stops the run when the upper confidence bound of a share, computed as the run would be
    judged, is below the criterion even if every request that has not ended turned out good. Answers
    that only a tokenizer counts are taken to have one token per event. A mean, and a share of gaps,
    may always recover. Until all workers are on the clock, the files may hold records of an earlier
    run. The header of the first journal tells how many there are. A run on a cluster is never
    stopped early, because the journals of its machines arrive after it has ended.

    Args:
        path: The path of the first journal.
        criteria: That the run must meet.
        settings: The settings of the run.
        also: A further rule: returns why the run fails already; None if it does not.

    Attributes:
        reason: Why the run need not go on; None as long as it must.
    """

    def __init__(
        self,
        path: Path,
        criteria: Sequence[Criterion],
        settings: RunSettings,
        also: StopRule = lambda progress: None,
    ) -> None:
        assert settings.num_prompts is not None
        self._settings, self._count, self._path = settings, settings.num_prompts, path
        self._also = also
        self._journals: dict[int, RecordFile] = {}
        shares = [criterion for criterion in criteria if isinstance(criterion, RequestShare)]
        self._bad: dict[RequestShare, set[int]] = {share: set() for share in shares}
        self.reason: str | None = None

    def __call__(self, progress: Progress) -> str | None:
        """Read the records written since the last call, and return why the run ends; None if it
        goes on.
        """
        readable = progress.phase in ON_THE_CLOCK and not self._settings.ray
        if self.reason is None and readable and self._read():
            self.reason = next(filter(None, map(self._why_missed, self._bad)), None)
        if self.reason is None:
            self.reason = self._also(progress)
        return None if self.reason is None else f"{ENDED_BY_SEARCH}: {self.reason}"

    def _why_missed(self, share: RequestShare) -> str | None:
        bad = self._bad[share]
        if len(bad) <= (1 - share.attainment) * self._count:
            return None
        good = np.ones(self._count)
        good[list(bad)] = 0
        # How far the requests to come depend on each other is unknown, so the blocks are the
        # shortest.
        length = block_bootstrap.block_length(self._count, 0)
        if share_bounds(good, np.ones(self._count), length, LOOK_CONFIDENCE)[1] >= share.attainment:
            return None
        missed = (
            f"{len(bad)} of {self._count} requests ({percent(len(bad) / self._count, 1)}) "
            f"failed{''.join(map(_beyond, share.limits))}"
        )
        return f"{missed}; {share.text} allows {percent(1 - share.attainment, 1)}"

    def _read(self) -> bool:
        before = sum(map(len, self._bad.values()))
        first = self._journal(0)
        for index in range(first.partition.count if first else 0):
            journal = self._journal(index)
            for record in journal.new_records() if journal else ():
                for share, bad in self._bad.items():
                    if not share.is_good(record, self._settings):
                        bad.add(record.index)
        return sum(map(len, self._bad.values())) > before

    def _journal(self, index: int) -> RecordFile | None:
        """Return the journal of a worker; None as long as it is not begun."""
        if index not in self._journals:
            with contextlib.suppress(BadInput):
                self._journals[index] = RecordFile(shard_path(self._path, index))
        return self._journals.get(index)


def _beyond(limit: slo.Limit) -> str:
    ms = f"{limit.threshold:g} ms"
    return f" or had {limit.metric.upper()} " + (
        f"above {ms}" if limit.inclusive else f"of {ms} or more"
    )
