"""Results: what a run found, made from what was measured, from the records that it has left, or read from a file."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen import checks, report
from loadgen.checks import Verdict
from loadgen.config.settings import seed_of
from loadgen.errors import BadInput
from loadgen.metrics import streamed_tokens
from loadgen.metrics.measurement import Measurement
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.run_data import RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner import recovery
from loadgen.workload.arrivals import Schedule


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        data: The result as saved: `vllm bench serve`'s keys, and loadgen's own under "loadgen".
        snapshot: The numbers it was made from.
    """

    data: dict[str, Any]
    snapshot: Snapshot

    @property
    def verdict(self) -> Verdict:
        """Whether to believe it."""
        return Verdict(self.data["loadgen"]["verdict"])

    def assert_slo(self, limits: str) -> None:
        """Do nothing where it meets all of these limits, whatever `slo` the run was asked to meet.

        Args:
            limits: As `slo` has them: "ttft_p99<500ms,error_rate<1%".

        Raises:
            AssertionError: It misses some: each of them, with its value and the 99 % interval of a percentile.
            BadInput: A limit is not understood.
        """
        __tracebackhide__ = True  # where pytest shows who called
        missed = list(report.misses(limits, self.snapshot, self.data["loadgen"]["latency_from"]))
        if missed:
            raise AssertionError("\n".join(missed))

    def __str__(self) -> str:
        return report.render(self.data)


def conclude(header: RunHeader, schedule: Schedule, measured: Measurement) -> Result:
    """Check what was measured, and make the result."""
    snapshot = streamed_tokens.paced(measured.snapshot)
    data = RunData(header=header, schedule=schedule, snapshot=snapshot, trailer=measured.trailer)
    return Result(report.build(data, checks.examine(data)), snapshot)


def from_records(path: str | Path) -> Result:
    """The result of a run from the records it has left, complete or not; what only the processes knew is n/a.

    Args:
        path: A file that --records or a run that ended early has written.

    Raises:
        BadInput: It is no such file.
    """
    file = RecordFile(path)
    settings = file.header.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), file.asked_due)
    return conclude(file.header, schedule, recovery.recover_run(file, schedule))


def read(path: str | Path) -> list[dict[str, Any]]:
    """The results in a file: a saved one, the several of --append-result, or that of a file of records.

    Raises:
        BadInput: It cannot be read, or holds none.
    """
    return [from_records(path).data] if RecordFile.is_one(path) else report.load(str(path))


@contextlib.contextmanager
def whole(where: str) -> Iterator[None]:
    """Refuse, in the block, a result in which something is missing that it would have had as it was saved.

    Args:
        where: It was read.

    Raises:
        BadInput: It is such a one.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError) as error:
        problem = f"{where} is not a whole loadgen result ({type(error).__name__}: {error})"
        raise BadInput("FILE", problem, "name a result as it was saved, or a file of records") from error
