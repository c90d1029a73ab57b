"""Goodput: the highest rate at which a server that runs still meets its limits, looked for with real runs."""

import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen import workers
from loadgen.errors import LoadgenError
from loadgen.measurement import Progress
from loadgen.outcomes import Outcome
from loadgen.pieces import piece
from loadgen.records import RecordFile, from_dict
from loadgen.results import Result
from loadgen.search import Goal, Run, attained, highest_rate
from loadgen.settings import RunSettings, seed_of
from loadgen.studies.limits import CONFIDENCE, Effort, Limits
from loadgen.studies.summary import failed
from loadgen.wire import Record
from loadgen.words import percent, to_ms

Stop = Callable[[Progress], str | None]
Measure = Callable[[RunSettings, str, Stop], Awaitable[Result]]

FASTEST = 10_000.0  # requests/s: more than one process sends
MOST_REQUESTS = 50_000  # of a run: at higher rates it is shorter
LONGEST_S = 1800.0  # of a run; rates that need longer to show anything are not tried
SOJOURNS = 10  # a run is as long as so many requests one after the other, or its beginning, with few in flight, decides
READY_S = 300.0  # for what a run that was stopped has left in the server's queue
CLIENT = ("B", "C")  # groups of checks that tell of the client


async def highest(
    measure: Measure, settings: RunSettings, limits: Limits, effort: Effort, *, folder: Path, start: float
) -> dict[str, Any]:
    """Look for it.

    Each run has prompts and arrivals of its own (seeds count up from those of the settings), and so many requests that
    it lasts RUN_S or longer, and can show the share that must be good.

    Args:
        measure: Carries out a run, by its name. What is called with its progress tells why it need not go on, if so:
            the run is then to be aborted for that reason. The records stay where the settings say.
        settings: Of the workload, with the server that is asked. Rate, ramp, count and duration are not taken from it;
            arrivals are Poisson unless it says how bursty they are.
        limits: What must be met.
        effort: How finely it is looked for.
        folder: Where the records go.
        start: The rate to begin with, requests/s: the throughput of the workload as it stands is a good one.

    Returns:
        JSON: `rate`, the highest in requests/s that met the limits (0: none); `fails`, the lowest that did not (null:
        none); `end`, as `search.End`; `tried`, pairs of rate and whether it met them; `attainment`, `limits` and
        `resolution`; `runs`, how many there were; `notes`, what else is to be known.

    Raises:
        LoadgenError: A run ended early, or is not to be believed.
    """
    runs = _Runs(measure, settings, limits, folder)
    goal = Goal(
        attainment=limits.attainment,
        confidence=CONFIDENCE,
        resolution=effort.resolution,
        least=limits.enough / LONGEST_S,
        most=FASTEST,
        runs=effort.most_runs,
    )
    found = await highest_rate(runs.at, max(start, goal.least), goal)
    return {
        "rate": found.rate,
        "fails": found.fails if math.isfinite(found.fails) else None,
        "end": str(found.end),
        "tried": [list(pair) for pair in found.tried],
        "attainment": limits.attainment,
        "limits": limits.text,
        "resolution": effort.resolution,
        "runs": runs.count,
        "notes": runs.notes,
    }


class Watch:
    """Follows the records of a run while they are written, and says when it cannot meet its limits any more.

    That is when the bound by which the run would be judged is below the share, even if every request that has not ended
    turned out good. Answers that only a tokenizer counts are held to have a token for each event.

    Args:
        path: Of the records.
        limits: What must be met.
        settings: Of the run.

    Attributes:
        reason: Why it need not go on; None as long as it may.
    """

    def __init__(self, path: Path, limits: Limits, settings: RunSettings) -> None:
        assert settings.num_prompts is not None
        self._limits, self._settings, self._count = limits, settings, settings.num_prompts
        self._read_up_to = {piece(path, number): 0 for number in range(workers.count(settings))}
        self._start_ns = 0
        self._bad: list[int] = []
        self.reason: str | None = None

    def __call__(self, progress: Progress) -> str | None:
        """Look at what has ended since the last time.

        Args:
            progress: Of the run.
        """
        if self.reason is None and self._read() and len(self._bad) > (1 - self._limits.attainment) * self._count:
            good = np.ones(self._count, dtype=bool)
            good[self._bad] = False
            if attained(good.tolist(), progress.in_flight, CONFIDENCE)[1] < self._limits.attainment:
                missed = f"{len(self._bad)} of {self._count} requests have missed {self._limits.text}"
                self.reason = f"{missed}, which {percent(self._limits.attainment, 1)} of them must meet"
        return self.reason

    def _read(self) -> bool:
        """Take in whole lines; tells whether there were bad requests among them."""
        before = len(self._bad)
        for path in self._read_up_to:
            self._read_part(path)
        return len(self._bad) > before

    def _read_part(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._read_up_to[path])
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return
        lines = whole.split(b"\n") if whole else []
        self._read_up_to[path] += len(whole) + 1 if whole else 0
        for told in map(orjson.loads, lines):
            if "loadgen_records" in told:
                self._start_ns = told["start_ns"]
            elif "end" not in told:
                record = from_dict(told, self._start_ns)
                if not is_good(record, self._limits, self._settings):
                    self._bad.append(record.index)


def is_good(record: Record, limits: Limits, settings: RunSettings) -> bool:
    """Whether a request that has ended succeeded and met its limits; one of a single token has no TPOT."""
    if record.outcome is not Outcome.OK:
        return False
    start = record.due if settings.latency_from == "due" else record.sent
    for limit in limits.each:
        if limit.metric == "tpot":
            value = record.tpot_ns
            if value is None:
                continue
        else:
            ended = {"ttft": record.first_token, "ttfo": record.first_answer, "e2el": record.last_token}[limit.metric]
            value = ended - start if ended else None
        if not limit.met_by(to_ms(value)):
            return False
    return True


class _Runs:
    """Runs at rates, one after the other."""

    def __init__(self, measure: Measure, settings: RunSettings, limits: Limits, folder: Path) -> None:
        self._measure, self._settings, self._limits, self._folder = measure, settings, limits, folder
        self._length_s = Effort.RUN_S
        self.count = 0
        self.notes: list[str] = []

    async def at(self, rate: float) -> Run:
        """A run that is long enough for what it meets."""
        while True:
            run, length_s, sojourn_s = await self._once(rate)
            wanted_s = min(SOJOURNS * sojourn_s, LONGEST_S)
            fails = run.overloaded or np.mean(run.good) < self._limits.attainment  # and would do so later too
            if fails or length_s >= wanted_s:
                return run
            if length_s < self._length_s:
                self.notes.append(f"at {rate:.4g} requests/s a run is too short for requests of {sojourn_s:.0f} s")
                return run
            self._length_s = min(1.5 * wanted_s, LONGEST_S)

    async def _once(self, rate: float) -> tuple[Run, float, float]:
        """A run, its length and the mean time of its requests, both in s."""
        self.count += 1
        name = f"goodput-{self.count:02}"
        settings = self._at_rate(rate, self._folder / f"{name}.records.jsonl")
        assert settings.num_prompts is not None
        assert settings.records is not None
        watch = Watch(Path(settings.records), self._limits, settings)
        result = await self._measure(settings, name, watch)
        length_s = settings.num_prompts / rate
        if watch.reason is not None:
            return Run([False], 0.0, overloaded=True), length_s, 0.0
        own = result.data["loadgen"]
        wrong = failed(result.data)
        if own["partial"] is not None or own["verdict"] == "INVALID":
            why = own["partial"] or ", ".join(check["name"] for check in wrong if check["group"] == "A")
            raise LoadgenError(f"{name}, at {rate:.4g} requests/s, says nothing: {why}")
        if late := [check["name"] for check in wrong if check["group"] in CLIENT]:
            self.notes.append(f"at {rate:.4g} requests/s the client itself was disturbed ({', '.join(late)})")
        records = sorted(RecordFile(settings.records), key=lambda record: (record.due, record.index))
        if len(records) < settings.num_prompts:
            raise LoadgenError(f"{name}: of {settings.num_prompts} requests {len(records)} have a record")
        good = [is_good(record, self._limits, settings) for record in records]
        sent = [record for record in records if record.sent]
        busy_ns = sum(record.closed - record.sent for record in sent)
        span_ns = max(record.closed for record in records) - min(record.due for record in records)
        sojourn_s = busy_ns / 1e9 / max(1, len(sent))
        return Run(good, busy_ns / max(1, span_ns), overloaded=own["overloaded"] is True), length_s, sojourn_s

    def _at_rate(self, rate: float, records: Path) -> RunSettings:
        return self._settings.replace(
            request_rate=rate,
            num_prompts=min(max(self._limits.enough, math.ceil(rate * self._length_s)), MOST_REQUESTS),
            duration=None,
            ramp_up_strategy=None,
            ramp_up_start_rps=None,
            ramp_up_end_rps=None,
            ready_check_timeout_sec=READY_S,
            records=str(records),
            seed_arrivals=seed_of(self._settings, "arrivals") + self.count,
            seed_prompts=seed_of(self._settings, "prompts") + self.count,
            seed_order=seed_of(self._settings, "order") + self.count,
        )
