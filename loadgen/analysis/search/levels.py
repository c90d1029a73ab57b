"""Runs at load levels, one after the other, each long enough to be judged by the criteria.

A level is a request rate or a concurrency. Each run has prompts and arrivals of its own: its seeds
count up from those of the settings, so the server's prefix cache holds nothing of an earlier run
that would make it faster.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.analysis.search.algorithm import Run
from loadgen.analysis.search.criteria import Criterion
from loadgen.analysis.search.early_stop import EarlyStop, StopRule
from loadgen.analysis.search.search_bounds import RUN_S, UNBOUNDED, SearchBounds
from loadgen.config.load import FIRST_TOKEN_S, SEEDS
from loadgen.config.load_profile import MAX_RATE
from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.record import Record
from loadgen.errors import LoadgenError
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run_result import Result
from loadgen.stats import block_bootstrap
from loadgen.util.number_format import percent

Measure = Callable[[RunSettings, str, StopRule], Awaitable[Result]]

MAX_REQUESTS = (
    50_000  # of a run at a rate, unless the criteria need more: at higher rates runs are shorter
)
MAX_IN_FLIGHT = 5_000
MAX_RUN_S = 1800.0  # rates that need longer runs are not tried
MIN_SOJOURNS = (
    10  # a run is at least as long as this many requests in succession, else its beginning decides
)
READY_S = 60.0  # for a server to answer again after a run that was stopped, unless the settings say
MIN_SHARE_OF_RATE = (
    0.95  # of the rate at which requests are sent: below it the run measured another level
)
CLIENT_GROUPS = ("B", "C")  # groups of checks on the client
PILED_UP = "requests piled up"


@dataclass(frozen=True, slots=True)
class Axis:
    """The dimension of the load that is searched.

    Attributes:
        name: rate or concurrency.
        setting: The field of the settings that is the level.
        unit: As words that follow the number.
        nearest: Rounds a level to one that can be run and is easy to read.
        max_level: The highest level.
        min_level: The lowest level worth trying with so many requests per run.
        requests: Requests of a run at a level with a minimum duration in s and a minimum number of
            sojourns.
        length_s: Duration of a run at a level with so many requests.
    """

    name: str
    setting: str
    unit: str
    nearest: Callable[[float], float]
    max_level: float
    min_level: Callable[[int], float]
    requests: Callable[[float, float, int], float]
    length_s: Callable[[float, int], float]


def _four_digits(level: float) -> float:
    return float(f"{level:.4g}")


def format_level(level: float) -> str:
    """Format a level for people: four significant digits."""
    return f"{_four_digits(level):g}"


RATE = Axis(
    "rate",
    "request_rate",
    "req/s",
    _four_digits,
    MAX_RATE,  # the client is the limit far below it, which the run then reports
    min_level=lambda min_requests: min_requests / MAX_RUN_S,
    requests=lambda rate, length_s, sojourns: min(rate * length_s, MAX_REQUESTS),
    length_s=lambda rate, requests: requests / rate,
)
CONCURRENCY = Axis(
    "concurrency",
    "max_concurrency",
    "in flight",
    round,
    MAX_IN_FLIGHT,
    min_level=lambda min_requests: 1,
    requests=lambda in_flight, length_s, sojourns: sojourns * in_flight,
    length_s=lambda in_flight, requests: math.inf,  # as long as the requests take
)
AXES = {axis.name: axis for axis in (RATE, CONCURRENCY)}


class InconclusiveRun(LoadgenError):
    """A run shows nothing about the server: it ended early, is INVALID, or no request succeeded."""


@dataclass(frozen=True, slots=True)
class LevelRun:
    """One run at one level.

    Attributes:
        level: The level of the load.
        result: The result of the run.
        run: What it shows of the criteria.
        why: Why it is inconclusive, was stopped early, or missed the criteria whatever they are;
            None otherwise.
    """

    level: float
    result: Result
    run: Run
    why: str | None


class Levels:
    """Carries out runs at load levels and judges them.

    Args:
        measure: Carries out a run with these settings under this name. It calls the stop rule with
            the run's progress and aborts the run for the reason that the rule returns. Records go
            where the settings say.
        settings: The settings of the workload, with the server. Level, ramp and duration are
            replaced. Arrivals are Poisson unless the settings say how bursty they are.
        criteria: The criteria by which each run is judged.
        records: Where a run's records go, by its name; the context ends when they have been read.
        name: Prefix of the names of runs.
        axis: The axis of the levels.
        length_s: Minimum duration of a run at a rate.
        min_requests: Minimum requests of a run; None: as many as the criteria need.
        bounds: How many runs there may be, and what they must do beyond the criteria.

    Attributes:
        runs: The runs that have ended, in order.
        min_requests: Minimum requests of a run.
        sojourns: Minimum duration of a run, in mean times of a request.
    """

    def __init__(
        self,
        measure: Measure,
        settings: RunSettings,
        criteria: Sequence[Criterion],
        records: Callable[[str], AbstractContextManager[Path]],
        *,
        name: str,
        axis: Axis = RATE,
        length_s: float = RUN_S,
        min_requests: int | None = None,
        bounds: SearchBounds = UNBOUNDED,
    ) -> None:
        self._measure, self._settings, self._criteria, self._records = (
            measure,
            settings,
            criteria,
            records,
        )
        self._name, self._axis, self._length_s, self._bounds = name, axis, length_s, bounds
        needed = max(criterion.min_requests for criterion in criteria)
        self.min_requests = min_requests or needed
        # A block is as long as two requests in succession (`block_bootstrap.block_length`), and the
        # effective sample size of b blocks is b * b / MIN_BLOCKS at most (`share_bounds`): two runs
        # of this length show as much as `needed` independent requests. A run that must decide alone
        # is as long as the two.
        alone = 2 if bounds.looks == 1 else 1
        # minimum duration of a run, in mean times of a request
        self.sojourns = max(
            MIN_SOJOURNS, alone * math.ceil(math.sqrt(block_bootstrap.MIN_BLOCKS * needed))
        )
        self.runs: list[LevelRun] = []
        self._too_short: dict[str, list[float]] = {}
        self._disturbed: dict[str, list[float]] = {}

    @property
    def min_level(self) -> float:
        """The lowest level worth trying: runs at a lower rate would take too long."""
        return self._axis.min_level(self.min_requests)

    @property
    def runs_left(self) -> int:
        """How many more runs are allowed."""
        return self._bounds.max_runs - len(self.runs)

    @property
    def notes(self) -> list[str]:
        """Remarks on runs that are too short, each with the levels that it is about."""
        return self._remarks(self._too_short)

    @property
    def disturbances(self) -> list[str]:
        """Remarks on the client, as the reasons of the verdicts of the runs have them."""
        return self._remarks(self._disturbed)

    def _remarks(self, noted: dict[str, list[float]]) -> list[str]:
        return [
            f"at {', '.join(map(format_level, dict.fromkeys(levels)))} {self._axis.unit} {remark}"
            for remark, levels in noted.items()
        ]

    async def run_level(self, level: float) -> Run | None:
        """Run a level, and run it longer if its requests take too long; return None if no more runs
        are allowed.

        Raises:
            InconclusiveRun: It ended early, is INVALID, or no request succeeded.
        """
        while self.runs_left:
            run, length_s, sojourn_s = await self._run_once(level)
            wanted_s = min(self.sojourns * sojourn_s, MAX_RUN_S)
            if (
                length_s >= wanted_s or run.met() is False
            ):  # a longer run would miss the criteria too
                return run
            short = f"was too short (a request took {sojourn_s:.2g} s)"
            if length_s < self._length_s or not self.runs_left:
                self._too_short.setdefault(f"a run {short}", []).append(level)
                return run
            self.runs[-1] = replace(self.runs[-1], run=replace(run, inconclusive=short), why=short)
            self._length_s = min(1.5 * wanted_s, MAX_RUN_S)
        return None

    def doubt(self, level: float, why: str) -> None:
        """Take the misses of all runs at a level for doubtful."""
        self.runs = [
            replace(level_run, run=replace(level_run.run, disturbed=level_run.run.disturbed or why))
            if level_run.level == level
            else level_run
            for level_run in self.runs
        ]

    async def run_burst(self) -> float:
        """Send the minimum number of requests all at once and return the throughput, in requests/s:
        a first rate.

        Raises:
            InconclusiveRun: It ended early, is INVALID, or no request succeeded.
        """
        name = f"{self._name}-{len(self.runs) + 1:02}"
        with self._records(name) as records:
            result = await self._measure(
                self._settings_at(math.inf, records), name, lambda progress: None
            )
            self._require_conclusive(math.inf, result, _why_inconclusive(result, stopped=False))
        self._add_inconclusive(math.inf, result, "all at once, to see where to begin")
        return float(result.numbers.request_throughput or 0.0)

    def _require_conclusive(self, level: float, result: Result, why: str | None) -> None:
        if why is not None:
            self._add_inconclusive(level, result, why)
            raise InconclusiveRun(
                f"the run at {format_level(level)} {self._axis.unit} is inconclusive: {why}"
            )

    def _add_inconclusive(self, level: float, result: Result, why: str) -> None:
        self.runs.append(LevelRun(level, result, Run((), 0.0, inconclusive=why), why))

    async def _run_once(self, level: float) -> tuple[Run, float, float]:
        """Run a level; return the run, its duration by the axis, and the mean time of its
        requests, both in s.
        """
        name = f"{self._name}-{len(self.runs) + 1:02}"
        with self._records(name) as records:
            settings = self._settings_at(level, records)
            assert settings.num_prompts is not None
            stop = EarlyStop(records, self._criteria, settings, self._bounds.stop_rules(settings))
            result = await self._measure(settings, name, stop)
            self._require_conclusive(
                level, result, _why_inconclusive(result, stopped=stop.reason is not None)
            )
            run, sojourn_s = self._judge(result, settings, level, stop.reason)
        why = run.inconclusive or stop.reason or (PILED_UP if run.failed else None)
        if (
            why is None
            and run.met() is not False
            and (why := self._bounds.misses(level, result)) is not None
        ):
            run = replace(run, failed=True)
        self.runs.append(LevelRun(level, result, run, why))
        return run, self._axis.length_s(level, settings.num_prompts), sojourn_s

    def _judge(
        self, result: Result, settings: RunSettings, level: float, stopped: str | None
    ) -> tuple[Run, float]:
        """Return what a run shows of the criteria, and the mean time of its requests in s."""
        assert settings.records is not None
        records = sorted(
            RecordFile(settings.records), key=lambda record: (record.due, record.index)
        )
        sent = [record for record in records if record.sent]
        wrong = result.failed_checks
        if (share := _share_of_rate(sent)) < MIN_SHARE_OF_RATE:
            why = f"the client could not keep up: it sent at {percent(share)} of the rate"
            return Run((), 0.0, inconclusive=why), 0.0
        disturbed = ", ".join(check.name for check in wrong if check.group in CLIENT_GROUPS) or None
        if disturbed:
            self._disturbed.setdefault(
                f"the client or the server was disturbed ({disturbed})", []
            ).append(level)
        if stopped is not None:
            return Run((), 0.0, failed=True, disturbed=disturbed), 0.0
        if len(records) < (count := result.numbers.num_prompts):
            self._require_conclusive(
                level, result, f"only {len(records)} of {count} requests have a record"
            )
        busy_ns = sum(record.closed - record.sent for record in sent)
        span_ns = max(record.closed for record in records) - min(record.due for record in records)
        counted = self._bounds.counted(records, settings)
        samples = [criterion.sample(counted, settings) for criterion in self._criteria]
        in_flight = busy_ns / max(1, span_ns)
        run = Run(samples, in_flight, failed=result.overloaded is True, disturbed=disturbed)
        return run, busy_ns / 1e9 / max(1, len(sent))

    def requests_at(self, level: float) -> int:
        """Return how many requests the next run at a level has; an infinite rate sends all at
        once.
        """
        if math.isinf(level):
            return self.min_requests
        return max(
            self.min_requests, math.ceil(self._axis.requests(level, self._length_s, self.sojourns))
        )

    def _settings_at(self, level: float, records: Path) -> RunSettings:
        number = len(self.runs) + 1 if self._bounds.new_seeds else 0
        load: dict[str, Any] = {"request_rate": math.inf, self._axis.setting: level}
        load |= {f"seed_{of}": seed_of(self._settings, of) + number for of in SEEDS}
        return self._settings.replace(
            **load,
            num_prompts=self.requests_at(level),
            duration=None,
            ramp_up_strategy=None,
            ramp_up_start_rps=None,
            ramp_up_end_rps=None,
            ready_check_timeout_sec=self._settings.ready_check_timeout_sec or READY_S,
            records=str(records),
        ).unattended(first_token_timeout=FIRST_TOKEN_S)


def _share_of_rate(sent: Sequence[Record]) -> float:
    """Return the rate at which requests were sent over the rate at which they were due.

    The client's lateness is the median of the first and of the last tenth of the requests, so that
    no single request decides. Waits that are not the client's are left out (`Record.lag_ns`).
    """
    if not sent:
        return 1.0
    lag_ns = np.array([record.lag_ns for record in sent])
    tenth = max(1, len(sent) // 10)
    later_ns = max(0.0, float(np.median(lag_ns[-tenth:]) - np.median(lag_ns[:tenth])))
    due_ns = sent[-1].due - sent[0].due
    return due_ns / (due_ns + later_ns) if due_ns else 1.0


def _why_inconclusive(result: Result, *, stopped: bool) -> str | None:
    """Return why a run shows nothing about the server; None if it does.

    Args:
        result: The result of the run.
        stopped: Whether a stop rule ended it early.
    """
    if result.verdict == "INVALID" or (result.partial is not None and not stopped):
        wrong = [check.name for check in result.failed_checks if check.group == "A"]
        return result.partial or ", ".join(wrong)
    if not result.numbers.completed:
        return "no request succeeded: " + ", ".join(
            f"{name} {count}" for name, count in result.outcomes.items()
        )
    return None
