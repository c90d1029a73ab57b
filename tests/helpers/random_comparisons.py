"""Random comparisons, for what must hold in all: runs whose metrics are drawn, without requests."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from loadgen.analysis.compare.compared_run import ComparedRun
from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.metrics import (
    DEFAULT_METRICS,
    ERROR_RATE,
    Meaning,
    Metric,
)
from loadgen.analysis.compare.run_requests import EndedRequests, RunRequests
from loadgen.analysis.compare.side import Side
from loadgen.util.arrays import Floats
from tests.helpers.queue_runs import values

DUE = Meaning("due")
SHIFTS = (0.5, 0.9, 0.95, 0.999, 1.0, 1.0, 1.0, 1.001, 1.02, 1.05, 2.0)
SCATTERS = (0.0, 1e-4, 0.002, 0.05, 0.3)
RATES = (0.0, 0.0, 0.0, 0.004, 0.03, 0.5)
REQUESTS = 120  # of a run with records


class DrawnRun(ComparedRun):
    """A run that has drawn values of its metrics.

    Args:
        where: Its name.
        drawn: The value of each metric, by name.
        marks: The marks of each metric, by name.
        requests: Its requests; None: it has no records.
        about: Its other attributes.
    """

    tool = "tests"
    meaning = DUE

    def __init__(
        self,
        where: str,
        drawn: Mapping[str, float],
        marks: Mapping[str, str],
        requests: RunRequests | None,
        **about: Any,
    ) -> None:
        self.where = self.date = where
        self.key = (where,)
        self.reasons, self.failed_checks, self.warnings = ["why"], [], []
        self.workload, self.load, self.environment = {}, {}, {}
        self._drawn, self._marks, self._requests = drawn, marks, requests
        self.error_rate = drawn.get(ERROR_RATE)
        for name, value in about.items():
            setattr(self, name, value)

    @property
    def load_text(self) -> str:
        """As `ComparedRun.load_text`."""
        return "a load"

    def read_requests(self, metrics: Iterable[Metric], meaning: Meaning) -> RunRequests | None:
        """As `ComparedRun.read_requests`."""
        return self._requests

    def value(self, metric: Metric, meaning: Meaning) -> float | None:
        """As `ComparedRun.value`."""
        return self._drawn.get(metric.name)

    def marks(self, metric: Metric, meaning: Meaning) -> str:
        """As `ComparedRun.marks`."""
        return self._marks.get(metric.name, "") if metric.latency else ""

    def resolution(self, metric: Metric, meaning: Meaning) -> float:
        """As `ComparedRun.resolution`."""
        return 1e-3


def comparison(seed: int) -> Comparison:
    """Draw a comparison: one to four starts of each side, some without a request that succeeded,
    with a single value, with ties, with rows that are better and worse, or INVALID or partial.
    """
    rng = np.random.default_rng(seed)
    known = [metric for metric in DEFAULT_METRICS if metric.name != "goodput" or rng.random() < 0.2]
    if rng.random() < 0.15:  # embeddings
        known = [metric for metric in known if metric.latency in ("", "e2el")]
    base = {metric.name: _base(metric, rng) for metric in known}
    shift = {metric.name: 1.0 for metric in known}
    for subject in dict.fromkeys(metric.subject for metric in known):
        common = float(rng.choice(SHIFTS))
        for metric in known:
            if metric.subject == subject:
                own = float(rng.choice(SHIFTS)) if rng.random() < 0.3 else common
                shift[metric.name] = own
    is_tied = rng.random() < 0.15
    if is_tied:
        shift = dict.fromkeys(shift, 1.0)
    has_records = rng.random() < 0.1
    counts = rng.choice([1, 2, 3, 3, 4], size=2) if not has_records else (1, 1)
    sides = []
    for name, count, factors in zip(
        ("base", "new"), counts, (dict.fromkeys(shift, 1.0), shift), strict=True
    ):
        centers = {key: base[key] * factors[key] for key in base}
        runs = _runs(name, int(count), centers, known, rng, is_tied, has_records)
        sides.append(Side(name, name, tuple(runs), DUE))
    return compare(sides)


def _runs(
    name: str,
    count: int,
    centers: Mapping[str, float],
    known: list[Metric],
    rng: np.random.Generator,
    is_tied: bool,
    has_records: bool,
) -> list[DrawnRun]:
    scatter = 0.0 if is_tied else float(rng.choice(SCATTERS))
    error_rate = float(rng.choice(RATES))
    verdict = str(rng.choice(["VALID", "VALID", "VALID", "VALID", "SUSPECT", "INVALID"]))
    partial = "killed" if rng.random() < 0.05 else None
    ok = int(rng.choice([0, 1, REQUESTS, REQUESTS, REQUESTS, REQUESTS, REQUESTS, REQUESTS]))
    runs = []
    for number in range(count):
        drawn = {
            key: value * float(np.exp(scatter * rng.standard_normal()))
            for key, value in centers.items()
        }
        if ERROR_RATE in drawn:
            drawn[ERROR_RATE] = min(1.0, error_rate * (1 + number * scatter))
        if not ok:
            drawn = {
                metric.name: 0.0 if metric.counted else drawn[metric.name]
                for metric in known
                if not metric.latency
            } | {ERROR_RATE: 1.0 - 0.001 * float(rng.integers(2)) * number}
        marks = {metric.name: str(rng.choice(["", "", "", "*", "~", "*~"])) for metric in known}
        requests = _requests(drawn, rng) if has_records and ok > 1 else None
        about = {"verdict": verdict, "partial": partial, "succeeded": ok}
        runs.append(DrawnRun(f"{name}-{number}", drawn, marks, requests, **about))
    return runs


def _base(metric: Metric, rng: np.random.Generator) -> float:
    return float(rng.uniform(0.1, 0.9) if metric.is_share else rng.uniform(5.0, 200.0))


def _requests(drawn: Mapping[str, float], rng: np.random.Generator) -> RunRequests:
    """Requests with latencies that have some mean; those of the result are drawn apart."""

    def spread(latency: str) -> Floats:
        center = drawn.get(f"{latency}_mean", 10.0)
        return center * np.exp(0.02 * rng.standard_normal(REQUESTS))

    latencies = {
        latency: values(*spread(latency)[:, None])
        for latency in ("ttft", "ttfo", "tpot", "icl", "itl", "e2el")
    }
    rates = ("request_throughput", "output_throughput", "total_throughput", "goodput")
    ended = EndedRequests(
        rng.exponential(0.05, REQUESTS), {name: np.ones(REQUESTS) for name in rates}
    )
    return RunRequests(np.zeros(REQUESTS), np.ones(REQUESTS), latencies, ended, 2.0)
