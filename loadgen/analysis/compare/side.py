"""Side: the runs of one configuration, a start each, read from files or a folder of them, and
names of sides.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from string import ascii_uppercase

import numpy as np

from loadgen.analysis.compare import other_result
from loadgen.analysis.compare.compared_run import ComparedRun, SavedRun
from loadgen.analysis.compare.metrics import Meaning, Metric
from loadgen.analysis.compare.run_requests import RunRequests
from loadgen.analysis.compare.workload import Difference, draw
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.report import RunResult, is_series, load
from loadgen.report.result.latencies import Clock
from loadgen.runner import run_result
from loadgen.util.arrays import Floats

MIN_STARTS = 3  # of a side, to estimate the variation between starts
MAX_NAME = 20  # characters
ENDINGS = (".json", ".jsonl")


@dataclass(frozen=True)
class Side:
    """The runs of a baseline or a candidate.

    Attributes:
        name: For tables.
        path: File or folder.
        starts: One run or more, without duplicates, in the order of their dates.
        meaning: How the latencies of its runs are read; `together` gives all sides the same.
    """

    name: str
    path: str
    starts: tuple[ComparedRun, ...]
    meaning: Meaning

    @property
    def quoted(self) -> str:
        """Its name in sentences."""
        return f'"{self.name}"'

    @classmethod
    def read(cls, name: str, path: str) -> "Side":
        """Read a result, a file of several results, a file of records, or a folder of such files.

        Raises:
            BadInput: It cannot be read, or holds no run.
        """
        side = cls._of(name, path, _read_runs(path))
        if not side.starts:
            raise BadInput(
                (),
                f"{path} holds no result and no records",
                "name a folder that does, or a file",
            )
        return side

    @classmethod
    def of_sources(cls, name: str, sources: Sequence[RunResult | str]) -> "Side":
        """Take results, and read paths as `read` does: a start of the server each, or several if a
        path has several.

        Raises:
            BadInput: A path cannot be read, or holds no run; or there are no sources.
        """
        if not sources:
            raise BadInput((), f"the side {name} has no runs", "give results, or paths of files")
        runs: list[ComparedRun] = []
        for source in sources:
            if isinstance(source, RunResult):
                runs.append(SavedRun(f"a result of {name}", source.data))
            else:
                runs += cls.read(name, source).starts
        return cls._of(name, ", ".join(dict.fromkeys(run.where for run in runs)), runs)

    @classmethod
    def _of(cls, name: str, path: str, runs: Iterable[ComparedRun]) -> "Side":
        runs_by_key: dict[object, ComparedRun] = {}
        for run in runs:
            earlier = runs_by_key.get(run.key)
            if (
                earlier is None or earlier.records is None
            ):  # prefer the records of a run to its result
                runs_by_key[run.key] = run
        started = tuple(sorted(runs_by_key.values(), key=lambda run: run.date))
        return cls(name, path, started, shared_meaning(started))

    @property
    def unusable_runs(self) -> list[str]:
        """Runs that are INVALID or partial: their path and the reason."""
        return [f"{run.where}: {run.unusable}" for run in self.starts if run.unusable]

    @property
    def error_rate(self) -> float | None:
        """The share of requests that failed, the mean over starts; None if some run has none."""
        rates = [run.error_rate for run in self.starts if run.error_rate is not None]
        return sum(rates) / len(rates) if len(rates) == len(self.starts) else None

    @property
    def has_unanswered_run(self) -> bool:
        """Whether no request succeeded in some run."""
        return any(run.succeeded == 0 for run in self.starts)

    def marks(self, metric: Metric) -> str:
        """Return the marks of a value, those of any run."""
        of_runs = (run.marks(metric, self.meaning) for run in self.starts)
        return "".join(sorted(set("".join(of_runs))))

    def read_requests(self, metrics: Iterable[Metric]) -> list[RunRequests]:
        """Read the requests of the runs that have records, for resampling these metrics."""
        requests_of_runs = [run.read_requests(metrics, self.meaning) for run in self.starts]
        return [requests for requests in requests_of_runs if requests is not None]

    @property
    def workload_differences(self) -> list[Difference]:
        """Differences between the workloads of its runs."""
        differences = map(self.starts[0].workload_differences, self.starts[1:])
        return list(dict.fromkeys(chain.from_iterable(differences)))

    @property
    def draws(self) -> list[tuple[object, ...]]:
        """What seeds decided of the workload of each run, where that is known."""
        return [draw(run.workload) for run in self.starts if run.workload]

    @property
    def environment_differences(self) -> list[Difference]:
        """Differences between the environments of its runs."""
        differences = map(self.starts[0].environment_differences, self.starts[1:])
        return list(dict.fromkeys(chain.from_iterable(differences)))

    def scaled_values(self, metric: Metric) -> Floats | None:
        """Return the values of a metric on the scale on which sides are compared, shape (starts,).

        These are logarithms, for shares the values themselves. The logarithm of 0 is -inf. None if
        a run has no value.
        """
        values = [run.value(metric, self.meaning) for run in self.starts]
        complete = [value for value in values if value is not None]
        if len(complete) < len(values):
            return None
        if metric.is_share:
            return np.array(complete)
        return np.array([math.log(value) if value > 0 else -math.inf for value in complete])

    def resolution(self, metric: Metric) -> float:
        """Return the coarsest rounding step of a metric that all runs have, as a share of its
        value.
        """
        return max(run.resolution(metric, self.meaning) for run in self.starts)


def check_distinct(sides: Sequence[Side]) -> None:
    """Refuse a run that is on two sides.

    Raises:
        BadInput: Naming both files.
    """
    seen: dict[object, str] = {}
    for side in sides:
        for run in side.starts:
            if run.key in seen:
                problem = f"{run.where} is the same run as {seen[run.key]}"
                raise BadInput((), problem, "name another to compare it with")
            seen[run.key] = run.where


def have_other_seeds(baseline: Side, candidate: Side) -> bool:
    """Tell whether two sides with one workload have draws of different seeds."""
    draws = [set(side.draws) for side in (baseline, candidate)]
    is_known = all(draws) and not baseline.starts[0].workload_differences(candidate.starts[0])
    return is_known and draws[0] != draws[1]


def repeats_seed(side: Side) -> bool:
    """Tell whether two starts have the same draw, so that starts do not show how draws vary."""
    return len(set(side.draws)) < len(side.draws)


def together(sides: Sequence[Side]) -> list[Side]:
    """Return the sides with one meaning of their latencies, so that like is compared with like."""
    meaning = shared_meaning(run for side in sides for run in side.starts)
    return [replace(side, meaning=meaning) for side in sides]


def shared_meaning(runs: Iterable[ComparedRun]) -> Meaning:
    """Return the meaning that all runs can be read by: from sent if some run is, and as vLLM if
    some run is.
    """
    meanings = [run.meaning for run in runs]
    clock: Clock = "due" if all(meaning.clock == "due" for meaning in meanings) else "sent"
    return Meaning(clock, any(meaning.as_vllm for meaning in meanings))


def names(paths: Sequence[str]) -> list[str]:
    """Name sides after what their paths differ in: runs/base/1.json and runs/new/1.json are base
    and new.

    Of long names that begin alike, such as those that `--save-result` gives, the first word that
    differs is the name.

    Returns:
        Letters if the paths give no short names that are all different.
    """
    files = list(map(PurePath, paths))
    parts = [
        (*path.parts[:-1], path.stem if path.suffix in ENDINGS else path.name) for path in files
    ]
    ways = (
        [part[-1] for part in parts],
        _first_difference([part[::-1] for part in parts]),
        ["/".join(part[-2:]) for part in parts],
        _first_difference([part[-1].split("-") for part in parts]),
    )
    for candidates in ways:
        has_no_twins = len(set(candidates)) == len(candidates)
        if has_no_twins and all(0 < len(name) <= MAX_NAME for name in candidates):
            return candidates
    return list(ascii_uppercase[: len(paths)])


def _read_runs(path: str) -> Iterator[ComparedRun]:
    if Path(path).is_dir():
        for file in sorted(Path(path).iterdir()):
            if file.is_file() and _holds_a_run(file):
                yield from _runs_of_file(str(file), skip_series=True)
    else:
        yield from _runs_of_file(path, skip_series=False)


def _runs_of_file(path: str, *, skip_series: bool) -> Iterator[ComparedRun]:
    records = path if RecordFile.is_one(path) else None
    try:
        results = run_result.read(path)
    except BadInput:
        others = other_result.read(path)
        if not others:
            raise
        for other in others:
            yield other.run()
        return
    for number, result in enumerate(results, 1):
        if not is_series(result):
            yield SavedRun(path if len(results) == 1 else f"{path}: line {number}", result, records)
        elif not skip_series:
            problem = f"{path} holds several runs at different loads"
            raise BadInput((), problem, "name the files of single runs")


def _holds_a_run(path: Path) -> bool:
    """Tell whether a file holds results or the records of a run; not those of a further worker."""
    try:
        if RecordFile.is_one(path):
            return RecordFile(path).partition.index == 0
        return bool(load(str(path)))
    except BadInput:
        return bool(other_result.read(str(path)))


def _first_difference(rows: Sequence[Sequence[str]]) -> list[str]:
    for items in zip(*rows, strict=False):
        if len(set(items)) > 1:
            return list(items)
    return [""] * len(rows)
