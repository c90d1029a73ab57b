"""Side: the runs of one thing that is compared, read from files or a folder of them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.sample import Sample
from loadgen.analysis.compare.saved_run import Start
from loadgen.analysis.compare.workload import Difference, otherwise, unlike
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.report import is_series, load
from loadgen.runner import run_result
from loadgen.util.arrays import Floats

LEAST_STARTS = 3  # of a side, to know what starts of one thing differ by


@dataclass(frozen=True)
class Side:
    """Runs of one thing, a start each.

    Attributes:
        name: What it is called.
        path: What was named.
        starts: One at least, each once, in the order of their dates.
    """

    name: str
    path: str
    starts: tuple[Start, ...]

    @classmethod
    def read(cls, name: str, path: str) -> "Side":
        """Of a result, of several in one file, of a file of records, or of a folder of such files.

        Raises:
            BadInput: It cannot be read, or holds none.
        """
        found: dict[object, Start] = {}
        for start in _starts(path):
            known = found.get(start.key)
            if known is None or known.records is None:  # the records of a run tell more than its result
                found[start.key] = start
        if not found:
            raise BadInput("FILE", f"{path} holds no result and no records", "name a folder that does, or a file")
        return cls(name, path, tuple(sorted(found.values(), key=lambda start: start.date)))

    @property
    def doubts(self) -> list[str]:
        """Why nothing follows from some of its runs, each with where it was read."""
        return [f"{start.where}: {start.doubt}" for start in self.starts if start.doubt]

    @property
    def error_rate(self) -> float | None:
        """The share of requests that did not succeed, of several starts the mean; None where some run has none."""
        rates = [start.error_rate for start in self.starts if start.error_rate is not None]
        return sum(rates) / len(rates) if len(rates) == len(self.starts) else None

    def samples(self, metrics: Iterable[Metric]) -> list[Sample]:
        """The requests of the runs whose records are there, to be drawn anew for these metrics."""
        found = [start.sample(metrics) for start in self.starts]
        return [sample for sample in found if sample is not None]

    @property
    def unlike(self) -> list[Difference]:
        """In what its runs did not ask the same."""
        found = (each for start in self.starts[1:] for each in unlike(self.starts[0].workload, start.workload))
        return list(dict.fromkeys(found))

    @property
    def otherwise(self) -> list[Difference]:
        """What its runs are unlike in that should be of one thing."""
        found = (each for start in self.starts[1:] for each in otherwise(self.starts[0].facts, start.facts))
        return list(dict.fromkeys(found))

    def levels(self, metric: Metric) -> Floats | None:
        """What each run came to, shape (starts,): shares as they are, of all else the logarithms.

        None where a run has no value of the metric; a logarithm of 0 is -inf.
        """
        values = [start.value(metric) for start in self.starts]
        told = [value for value in values if value is not None]
        if len(told) < len(values):
            return None
        if metric.is_share:
            return np.array(told)
        return np.array([math.log(value) if value > 0 else -math.inf for value in told])

    def resolution(self, metric: Metric) -> float:
        """How finely its runs tell a metric that all of them have, as a share of its value."""
        return max(metric.resolution(start.result) for start in self.starts)


def _starts(path: str) -> Iterator[Start]:
    if Path(path).is_dir():
        for each in sorted(Path(path).iterdir()):
            if each.is_file() and _is_of_a_run(each):
                yield from _of_file(str(each), skip_series=True)
    else:
        yield from _of_file(path, skip_series=False)


def _of_file(path: str, *, skip_series: bool) -> Iterator[Start]:
    records = path if RecordFile.is_one(path) else None
    found = run_result.read(path)
    for number, result in enumerate(found, 1):
        if not is_series(result):
            yield Start(path if len(found) == 1 else f"{path}: line {number}", result, records)
        elif not skip_series:
            raise BadInput("FILE", f"{path} is of several runs at different loads", "name the files of single runs")


def _is_of_a_run(path: Path) -> bool:
    """Whether a file in a folder holds results or the records of a run, not only those of one of its workers."""
    try:
        if RecordFile.is_one(path):
            return RecordFile(path).partition.index == 0
        return bool(load(str(path)))
    except BadInput:
        return False


def check_apart(sides: Sequence[Side]) -> None:
    """Refuse a run that stands on two sides.

    Raises:
        BadInput: Naming both.
    """
    seen: dict[object, str] = {}
    for side in sides:
        for start in side.starts:
            if start.key in seen:
                problem = f"{start.where} is the same run as {seen[start.key]}"
                raise BadInput("FILE", problem, "name another to compare it with")
            seen[start.key] = start.where
