"""Levels: runs at one level of load after the other, each long enough to show what is demanded of it.

The level is a request rate or a concurrency. Each run has prompts and arrivals of its own: seeds count up from those of
the settings, so that nothing a server's prefix cache has kept of one run makes the next one faster.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.analysis.search.algorithm import OF_A_LOOK, Run
from loadgen.analysis.search.criteria import Demand, Share
from loadgen.checks import BUSY
from loadgen.config.settings import MAX_RATE, RunSettings, seed_of
from loadgen.core.wire import Record
from loadgen.errors import LoadgenError
from loadgen.metrics.progress import ON_THE_CLOCK, Progress
from loadgen.metrics.records.file import RecordFile, from_dict
from loadgen.metrics.records.shards import piece
from loadgen.runner.run_result import Result
from loadgen.stats import block_bootstrap
from loadgen.stats.ratio_interval import of_share
from loadgen.util.number_format import percent
from loadgen.util.tail import Growing

Stop = Callable[[Progress], str | None]
Measure = Callable[[RunSettings, str, Stop], Awaitable[Result]]

RUN_S = 60.0  # a run at a rate is no shorter
RUNS = 16  # there are no more, unless somebody wants to
MOST_REQUESTS = 50_000  # of a run at a rate, unless more are needed: at higher rates it is shorter
MOST_IN_FLIGHT = 5_000
LONGEST_S = 1800.0  # of a run; rates that need longer to show anything are not tried
SOJOURNS = 10  # a run is at least as long as so many requests one after the other, else its beginning decides
READY_S = 60.0  # for a server to answer again after a run that was stopped, unless the settings say
LEAST_OF_RATE = 0.95  # at which requests are sent: below it, what is measured is another level
CLIENT = ("B", "C")  # groups of checks that tell of the client


@dataclass(frozen=True, slots=True)
class Axis:
    """Along which levels lie.

    Attributes:
        name: rate or concurrency.
        setting: The field of the settings that is the level.
        unit: Of it, as words that follow the number.
        nearest: The nearest level that can be asked for, and read again by a person.
        most: The highest.
        least: The lowest that is worth a try where a run has so many requests at least.
        requests: How many a run at a level has that lasts so many seconds, and so many times as long as a request.
        length_s: How long a run at a level lasts of so many requests.
    """

    name: str
    setting: str
    unit: str
    nearest: Callable[[float], float]
    most: float
    least: Callable[[int], float]
    requests: Callable[[float, float, int], float]
    length_s: Callable[[float, int], float]


def _four_digits(level: float) -> float:
    return float(f"{level:.4g}")


def named(level: float) -> str:
    """A level as a person reads it."""
    return f"{_four_digits(level):g}"


RATE = Axis(
    "rate",
    "request_rate",
    "requests/s",
    _four_digits,
    MAX_RATE,  # far below it the client is the limit, and a run says so
    least=lambda enough: enough / LONGEST_S,
    requests=lambda rate, length_s, sojourns: min(rate * length_s, MOST_REQUESTS),
    length_s=lambda rate, requests: requests / rate,
)
CONCURRENCY = Axis(
    "concurrency",
    "max_concurrency",
    "in flight",
    round,
    MOST_IN_FLIGHT,
    least=lambda enough: 1,
    requests=lambda in_flight, length_s, sojourns: sojourns * in_flight,
    length_s=lambda in_flight, requests: math.inf,  # as long as its requests need
)
AXES = {axis.name: axis for axis in (RATE, CONCURRENCY)}


class Untold(LoadgenError):
    """A run that says nothing of the server: it ended early, is not to be believed, or no request succeeded."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run at one level.

    Attributes:
        level: Of the load.
        result: What it found.
        run: What that says of the demands, if anything.
        why: It says nothing, was stopped early, or missed the demands whatever they are.
    """

    level: float
    result: Result
    run: Run
    why: str | None


class Levels:
    """Runs at levels, one after the other.

    Args:
        measure: Carries out a run, by its name. What is called with its progress tells why it need not go on, if so:
            the run is then to be aborted for that reason. The records stay where the settings say.
        settings: Of the workload, with the server that is asked. The level, the ramp and the length are not taken from
            it; arrivals are Poisson unless it says how bursty they are.
        demands: What is to be judged.
        records: Where those of a run go, by its name; left when they have been read.
        name: The beginning of the runs' names.
        axis: Along which the levels lie.
        length_s: How long a run at a rate is at least.
        enough: Requests that a run has at least; None: as many as show the demands.
        runs: That there may be at most.

    Attributes:
        points: The runs that have ended, in their order.
        enough: Requests that a run has at least.
        sojourns: A run is at least so many times as long as a request takes.
    """

    def __init__(
        self,
        measure: Measure,
        settings: RunSettings,
        demands: Sequence[Demand],
        records: Callable[[str], AbstractContextManager[Path]],
        *,
        name: str,
        axis: Axis = RATE,
        length_s: float = RUN_S,
        enough: int | None = None,
        runs: int = RUNS,
    ) -> None:
        self._measure, self._settings, self._demands, self._records = measure, settings, demands, records
        self._name, self._axis, self._length_s, self._runs = name, axis, length_s, runs
        needed = max(demand.enough for demand in demands)
        self.enough = enough or needed
        # A block is as long as two requests one after the other (`blocks.length`), and of b blocks no more is believed
        # than b * b / FEWEST requests tell (`bounds.of_share`): two runs of this length tell as much as `needed` do.
        self.sojourns = max(SOJOURNS, math.ceil(math.sqrt(block_bootstrap.FEWEST * needed)))
        self.points: list[Point] = []
        self._noted: dict[str, list[float]] = {}

    @property
    def least(self) -> float:
        """The lowest level that is worth a try: a lower rate takes too long to show anything."""
        return self._axis.least(self.enough)

    @property
    def left(self) -> int:
        """How many more runs there may be."""
        return self._runs - len(self.points)

    @property
    def notes(self) -> list[str]:
        """What else is to be known of the runs."""
        said = []
        for what, levels in self._noted.items():
            each = ", ".join(map(named, dict.fromkeys(levels)))
            said.append(f"at {each} {self._axis.unit} {what}")
        return said

    async def at(self, level: float) -> Run | None:
        """A run that is long enough for what it meets; None where there may be no more.

        Raises:
            LoadgenError: It ended early, is not to be believed, or no request succeeded.
        """
        while self.left:
            run, length_s, sojourn_s = await self._once(level)
            wanted_s = min(self.sojourns * sojourn_s, LONGEST_S)
            if length_s >= wanted_s or run.met() is False:  # which it would be later too
                return run
            short = f"too short for requests of {sojourn_s:.2g} s"
            if length_s < self._length_s or not self.left:
                self._note(level, f"a run is {short}")
                return run
            self.points[-1] = replace(self.points[-1], run=replace(run, untold=short), why=short)
            self._length_s = min(1.5 * wanted_s, LONGEST_S)
        return None

    async def at_once(self) -> float:
        """Send as many requests as show the demands all at once: what the server does then is a rate to begin with.

        Returns:
            Requests/s.

        Raises:
            LoadgenError: As `at`.
        """
        name = f"{self._name}-{len(self.points) + 1:02}"
        with self._records(name) as records:
            result = await self._measure(self._at(math.inf, records), name, lambda progress: None)
            self._trust(math.inf, result, _untold(result, stopped=False))
        self._says_nothing(math.inf, result, "all at once, to see where to begin")
        return float(result.numbers.request_throughput or 0.0)

    def _trust(self, level: float, result: Result, why: str | None) -> None:
        """Keep a run that says nothing, if there is a reason why, and end."""
        if why is not None:
            self._says_nothing(level, result, why)
            raise Untold(f"the run at {named(level)} {self._axis.unit} says nothing: {why}")

    def _says_nothing(self, level: float, result: Result, why: str) -> None:
        self.points.append(Point(level, result, Run((), 0.0, untold=why), why))

    async def _once(self, level: float) -> tuple[Run, float, float]:
        """A run at a level, its length as the axis has it, and the mean time of its requests, both in s."""
        name = f"{self._name}-{len(self.points) + 1:02}"
        with self._records(name) as records:
            settings = self._at(level, records)
            assert settings.num_prompts is not None
            watch = Watch(records, self._demands, settings)
            result = await self._measure(settings, name, watch)
            self._trust(level, result, _untold(result, stopped=watch.reason is not None))
            run, sojourn_s = self._judged(result, settings, level, watch.reason)
        why = run.untold or watch.reason or ("requests piled up" if run.failed else None)
        self.points.append(Point(level, result, run, why))
        return run, self._axis.length_s(level, settings.num_prompts), sojourn_s

    def _judged(self, result: Result, settings: RunSettings, level: float, stopped: str | None) -> tuple[Run, float]:
        assert settings.records is not None
        records = sorted(RecordFile(settings.records), key=lambda record: (record.due, record.index))
        sent = [record for record in records if record.sent]
        wrong = result.failed_checks
        behind = [f"loop busy {check.value}" for check in wrong if check.name == BUSY]
        if (share := _share_of_rate(sent)) < LEAST_OF_RATE:
            behind.append(f"it sent at {percent(share)} of the rate")
        if behind:
            return Run((), 0.0, untold=f"the client could not keep up: {', '.join(behind)}"), 0.0
        if stopped is not None:
            return Run((), 0.0, failed=True), 0.0
        if late := [check.name for check in wrong if check.group in CLIENT]:
            self._note(level, f"the client itself was disturbed ({', '.join(late)})")
        if len(records) < (count := result.numbers.num_prompts):
            self._trust(level, result, f"of {count} requests {len(records)} have a record")
        busy_ns = sum(record.closed - record.sent for record in sent)
        span_ns = max(record.closed for record in records) - min(record.due for record in records)
        shown = [demand.shown(records, settings) for demand in self._demands]
        run = Run(shown, busy_ns / max(1, span_ns), failed=result.overloaded is True)
        return run, busy_ns / 1e9 / max(1, len(sent))

    def _note(self, level: float, what: str) -> None:
        self._noted.setdefault(what, []).append(level)

    def requests_at(self, level: float) -> int:
        """How many requests the next run at a level has; an infinite one is all at once."""
        if math.isinf(level):
            return self.enough
        lasting = math.ceil(self._axis.requests(level, self._length_s, self.sojourns))
        return max(self.enough, lasting)

    def _at(self, level: float, records: Path) -> RunSettings:
        number = len(self.points) + 1
        return self._settings.replace(
            **{"request_rate": math.inf, self._axis.setting: level},
            num_prompts=self.requests_at(level),
            duration=None,
            ramp_up_strategy=None,
            ramp_up_start_rps=None,
            ramp_up_end_rps=None,
            ready_check_timeout_sec=self._settings.ready_check_timeout_sec or READY_S,
            records=str(records),
            seed_arrivals=seed_of(self._settings, "arrivals") + number,
            seed_prompts=seed_of(self._settings, "prompts") + number,
            seed_order=seed_of(self._settings, "order") + number,
        )


def _share_of_rate(sent: Sequence[Record]) -> float:
    """The rate at which requests were sent over that at which they were due, but for waits that are not the client's.

    Its lateness is that of the first and the last tenth of the requests, so that no single one decides.
    """
    if not sent:
        return 1.0
    lag_ns = np.array([record.lag_ns for record in sent])
    tenth = max(1, len(sent) // 10)
    later_ns = max(0.0, float(np.median(lag_ns[-tenth:]) - np.median(lag_ns[:tenth])))
    due_ns = sent[-1].due - sent[0].due
    return due_ns / (due_ns + later_ns) if due_ns else 1.0


def _untold(result: Result, *, stopped: bool) -> str | None:
    """Why a run says nothing of the server, if so.

    Args:
        result: What it found.
        stopped: Whether it was stopped early, by us.
    """
    if result.verdict == "INVALID" or (result.partial is not None and not stopped):
        wrong = [check.name for check in result.failed_checks if check.group == "A"]
        return result.partial or ", ".join(wrong)
    if not result.numbers.completed:
        return "no request succeeded: " + ", ".join(f"{name} {count}" for name, count in result.outcomes.items())
    return None


class Watch:
    """Follows the records of a run while they are written, and says when it cannot meet a demand any more.

    That is when such a bound as the run would be judged by is below the share, even if every request that has not ended
    turned out good. Answers that only a tokenizer counts are held to have a token for each event. A mean, and a share
    of gaps, may always recover. Until all who measure are on the clock, records of an earlier run may stand in the
    files. The first line of the first says how many there are. A run from a cluster is never stopped early: the records
    of its machines are not here before they have ended.

    Args:
        path: Of the records.
        demands: What must be met.
        settings: Of the run.

    Attributes:
        reason: Why it need not go on; None as long as it may.
    """

    def __init__(self, path: Path, demands: Sequence[Demand], settings: RunSettings) -> None:
        assert settings.num_prompts is not None
        self._settings, self._count, self._path = settings, settings.num_prompts, path
        self._pieces = [Growing(path)]
        self._bad: dict[Share, set[int]] = {demand: set() for demand in demands if isinstance(demand, Share)}
        self._start_ns = 0
        self.reason: str | None = None

    def __call__(self, progress: Progress) -> str | None:
        """Look at what has ended since the last time.

        Args:
            progress: Of the run.
        """
        here = progress.phase in ON_THE_CLOCK and not self._settings.ray
        if self.reason is None and here and self._read():
            self.reason = next(filter(None, (self._lost(share) for share in self._bad)), None)
        return self.reason

    def _lost(self, share: Share) -> str | None:
        bad = self._bad[share]
        if len(bad) <= (1 - share.attainment) * self._count:
            return None
        good = np.ones(self._count)
        good[list(bad)] = 0
        # Of those to come nobody knows what they have in common.
        if (
            of_share(good, np.ones(self._count), block_bootstrap.length(self._count, 0), OF_A_LOOK)[1]
            >= share.attainment
        ):
            return None
        missed = f"{len(bad)} of {self._count} requests have missed {share.text}"
        return f"{missed}, which {percent(share.attainment, 1)} of them must meet"

    def _read(self) -> bool:
        """Take in whole lines; tells whether there were bad requests among them."""
        before = sum(map(len, self._bad.values()))
        for told in (orjson.loads(line) for each in self._pieces for line in each.lines()):
            self._take(told)
        return sum(map(len, self._bad.values())) > before

    def _take(self, told: dict[str, Any]) -> None:
        if "loadgen_records" in told:
            self._start_ns = told["start_ns"]
            more = range(len(self._pieces), told["stripe"][1])
            self._pieces += (Growing(piece(self._path, number)) for number in more)  # read in this very turn
        elif "end" not in told:
            record = from_dict(told, self._start_ns)
            for share, bad in self._bad.items():
                if not share.good(record, self._settings):
                    bad.add(record.index)  # once, also where pieces are joined meanwhile
