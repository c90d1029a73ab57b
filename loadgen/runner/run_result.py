"""Results: the result of a run, made from what was measured, from its records, or read from a file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen import checks, report
from loadgen.config.option import check_type
from loadgen.config.run_fields import python_names
from loadgen.config.settings import seed_of
from loadgen.errors import BadInput
from loadgen.metrics import streamed_tokens
from loadgen.metrics.records.file import RecordFile
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.run_data import Measurement, RunData
from loadgen.metrics.snapshot import Snapshot
from loadgen.report.result import RunResult
from loadgen.runner import crash_recovery
from loadgen.workload.arrivals import Schedule
from loadgen.workload.due_times import DueTimes


class SavedResult(RunResult, frozen=True, kw_only=True):
    """The result of a run as it is saved, and as `load` returns it: all but the snapshot. `str` gives the report."""

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, as `save_result` does; the file is complete or not written at all.

        Raises:
            BadInput: It cannot be written.
        """
        report.write_json(path, self.data, private=self.columns is not None)  # the columns have answers of the server

    def __str__(self) -> str:
        return report.render(self)

    def __repr__(self) -> str:
        return f"<loadgen.{type(self).__name__}: {report.summary_line(self)}>"

    def _repr_html_(self) -> str:
        from loadgen.report.ci_summary import notebook_html  # not before: it imports the charts of pages

        return notebook_html(self)


class Result(SavedResult, frozen=True, kw_only=True):
    """The result of a run, and the snapshot that it was made from.

    Attributes:
        snapshot: The histograms, counts and times of the run.
    """

    snapshot: Snapshot

    def assert_slo(self, limits: str) -> None:
        """Raise unless the run meets all of these limits, whatever `slo` the run was asked to meet.

        Args:
            limits: As `slo` has them: "ttft_p99<500ms,error_rate<1%".

        Raises:
            AssertionError: It misses some: each of them, with its value and the 99 % interval of a percentile.
            BadInput: A limit is not understood.
        """
        __tracebackhide__ = True  # pytest shows the caller
        with python_names():
            missed = list(report.describe_misses(limits, self.snapshot, self.latency_from))
        if missed:
            raise AssertionError("\n".join(missed))


def conclude(header: RunHeader, schedule: DueTimes, measured: Measurement) -> Result:
    """Check what was measured, and make the result."""
    snapshot = streamed_tokens.with_sampled_tpot(measured.snapshot)
    data = RunData(header=header, schedule=schedule, snapshot=snapshot, trailer=measured.trailer)
    return Result.of(data, checks.examine(data), snapshot=snapshot)


def from_records(path: str | Path) -> Result:
    """Make the result of a run from its records, complete or not; what only the processes knew is n/a.

    Args:
        path: A file that --records or a run that ended early has written.

    Raises:
        BadInput: It is not such a file.
    """
    check_type("path", path, str | Path, "give the path of a file")
    file = RecordFile(path)
    settings = file.header.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"), file.asked_due)
    return conclude(file.header, schedule, crash_recovery.recover_run(file, schedule))


def read(path: str | Path) -> list[dict[str, Any]]:
    """Read the results in a file: a saved one, the several of --append-result, or that of a file of records.

    Returns:
        The JSON as it was saved; `report.from_dict` converts it to its type.

    Raises:
        BadInput: It cannot be read, or holds none.
    """
    return [from_records(path).data] if RecordFile.is_one(path) else report.load(str(path))


@contextlib.contextmanager
def whole(where: str) -> Iterator[None]:
    """Refuse, in the block, a result in which something is missing that it had when it was saved.

    Args:
        where: It was read.

    Raises:
        BadInput: Something is missing.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, BadInput, LookupError, TypeError, ValueError) as error:
        problem = f"{where} is not a whole loadgen result ({type(error).__name__}: {error})"
        raise BadInput("FILE", problem, "name a result as it was saved, or a file of records") from error
