"""Searches in virtual time for the highest load of servers with a known capacity.

`make test-all` searches each profile of the simulator by one SLO, and `make qa` by the others.
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import End, SearchRange, SearchResult, find_highest_level
from loadgen.analysis.search.criteria import separate_criteria
from loadgen.analysis.search.levels import (
    CONCURRENCY,
    RATE,
    Axis,
    InconclusiveRun,
    Levels,
    format_level,
)
from loadgen.analysis.search.search_bounds import SearchBounds
from loadgen.config.load_profile import MAX_RATE
from loadgen.config.settings import RunSettings
from loadgen.engines.sim.capacity import capacity_per_s
from loadgen.engines.sim.scheduler import Scheduler, Sequence
from loadgen.engines.sim.settings import SimSettings
from loadgen.testing.memory import Server
from loadgen.testing.memory_servers import answered, planned, queued
from loadgen.workload.arrivals import Schedule
from tests.helpers.sim_steps import steps
from tests.helpers.thinning import every_nth
from tests.helpers.virtual_bench import Bench
from tests.helpers.virtual_runs import MS, START_NS, S

WORKLOAD = RunSettings(base_url="http://memory", burstiness=math.inf)


def levels(bench: Bench, folder: Path, slo: str, axis: Axis = RATE, **options: Any) -> Levels:
    def records(name: str) -> contextlib.nullcontext[Path]:
        return contextlib.nullcontext(folder / f"{name}.records.jsonl")

    measure = options.pop("measure", bench.measure)
    return Levels(
        measure, WORKLOAD, separate_criteria(slo), records, name="search", axis=axis, **options
    )


async def searched(at: Levels, start: float, axis: Axis = RATE) -> SearchResult:
    span = SearchRange(0.05, at.min_level, axis.max_level, nearest=axis.nearest)
    return await find_highest_level(at.run_level, start, span)


def simulated(settings: SimSettings, prompt: int, output: int, schedule: Schedule) -> Server:
    """The simulator's scheduler: what arrives when it is due gets its first and last token at
    the ends of steps.
    """
    engine: Scheduler[Sequence] = Scheduler(settings.limits, settings.costs)
    arrivals = [
        Sequence(prompt, output, ready_ns=int(due + settings.frontend_ms * MS))
        for due in schedule.due_ns
    ]
    tokens: dict[Sequence, list[int]] = {each: [] for each in arrivals}
    first: dict[Sequence, int] = {}
    for step, progress in steps(engine, arrivals):
        first |= dict.fromkeys(progress.started, step.end_ns)
        for each in progress.finished:
            tokens[each] = (
                np.linspace(START_NS + first[each], START_NS + step.end_ns, output)
                .astype(int)
                .tolist()
            )
    return lambda index, body, arrived_ns: answered(tokens[arrivals[index]])


SMALL: dict[str, Any] = {"max_num_seqs": 8}
H100: dict[str, Any] = {"profile": "h100-qwen3-8b", "max_num_seqs": 16}
CAPACITIES = [
    (SMALL, 256, 32, "ttft_p90<1s"),
    (SMALL, 256, 32, "e2el_p99<4s,tpot_mean<50ms"),
    (SMALL, 256, 32, "ttft_mean<500ms,itl_p50<2s"),
    (H100, 512, 64, "e2el_p99<4s,tpot_mean<50ms"),
    (H100, 512, 64, "ttft_p90<1s"),
    (H100, 512, 64, "ttft_mean<500ms,itl_p50<2s"),
]


@pytest.mark.parametrize(("given", "prompt", "output", "slo"), every_nth(CAPACITIES, step=3))
async def test_the_capacity_of_the_simulator_is_found_within_5_percent(
    tmp_path: Path, given: dict[str, Any], prompt: int, output: int, slo: str
) -> None:
    """Slots are the limit: R / (m T) requests/s, by engines/sim/EQUATIONS.md; then a queue
    grows.
    """
    settings = SimSettings.of(**given)
    capacity = capacity_per_s(settings, prompt, output)
    bench = Bench(lambda schedule: simulated(settings, prompt, output, schedule))
    found = await searched(levels(bench, tmp_path, slo), capacity / 3)
    assert found.end is End.EDGE
    assert found.level == pytest.approx(capacity, rel=0.05)


async def test_where_to_begin_shows_itself(tmp_path: Path) -> None:
    """Of a server of ten requests a second, all at once take as long."""
    bench = Bench(lambda: queued(lambda index: 100 * MS))
    at = levels(bench, tmp_path, "ttft_p90<500ms")
    assert await at.run_burst() == pytest.approx(10.0, rel=0.02)
    assert bench.asked[0].request_rate == math.inf
    assert [point.run.met() for point in at.runs] == [None]


async def test_the_highest_concurrency_is_the_one_after_which_requests_wait(tmp_path: Path) -> None:
    """Seven are served at once; a limit that one wait exceeds is met by seven in flight, and not
    by eight.
    """
    bench = Bench(lambda: queued(lambda index: 100 * MS, servers=7))
    found = await searched(levels(bench, tmp_path, "ttft_p90<=101ms", CONCURRENCY), 16, CONCURRENCY)
    assert (found.level, found.fails, found.end) == (7, 8, End.EDGE)
    assert all(asked.request_rate == math.inf for asked in bench.asked)
    assert list(dict.fromkeys(asked.max_concurrency for asked in bench.asked)) == [
        level for level, _ in found.tried
    ]


async def test_each_limit_has_a_share_of_its_own(tmp_path: Path) -> None:
    """Every tenth answer is slow: e2el_p85 does not mind, and e2el_p95 does."""
    bench = Bench(lambda: planned(lambda index: [20 * MS, 3 * S if index % 10 == 0 else 60 * MS]))
    met = await levels(bench, tmp_path, "ttft_p99<50ms,e2el_p85<1s").run_level(10.0)
    assert ([each.met(1.0) for each in met.samples], met.met()) == ([True, True], True)
    missed = await levels(bench, tmp_path, "ttft_p99<50ms,e2el_p95<1s").run_level(10.0)
    assert ([each.met(1.0) for each in missed.samples], missed.met()) == ([True, False], False)


async def test_every_run_has_draws_of_its_own(tmp_path: Path) -> None:
    """So that no prompt comes again that a prefix cache could know."""
    bench = Bench(lambda: queued(lambda index: 100 * MS))
    await searched(levels(bench, tmp_path, "ttft_p90<500ms"), 20.0)
    seeds = [asked.seed_prompts for asked in bench.asked]
    assert len(set(seeds)) == len(seeds) > 3


async def test_a_client_that_cannot_keep_up_is_no_limit_of_the_server(tmp_path: Path) -> None:
    def lateness_ns() -> Iterator[int]:
        return itertools.count(0, S) if bench.asked[-1].request_rate > 25 else itertools.repeat(0)

    bench = Bench(lambda: planned(lambda index: [20 * MS]), lateness_ns=lateness_ns)
    at = levels(bench, tmp_path, "ttft_p90<500ms")
    found = await searched(at, 10.0)
    assert (found.level, found.fails, found.end) == (20.0, math.inf, End.CLIENT)
    assert str(at.runs[-1].why).startswith("the client could not keep up: it sent at ")
    assert at.runs[-1].run.met() is None


async def test_a_client_that_sends_at_another_rate_measures_another_level(tmp_path: Path) -> None:
    """Later and later, it sends fewer in a second than were due; as late for all, it sends as
    many.
    """
    for lateness_ns, keeps_up in (
        (itertools.repeat(5 * MS), True),
        (itertools.count(0, 40 * MS), False),
    ):
        bench = Bench(
            lambda: planned(lambda index: [20 * MS]), lateness_ns=lambda late=lateness_ns: late
        )
        run = await levels(
            bench, tmp_path, "ttft_p90<50s", min_requests=2000, length_s=0
        ).run_level(1500.0)
        assert (run.inconclusive is None) is keeps_up
    assert str(run.inconclusive).startswith("the client could not keep up: it sent at")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"verdict": "INVALID", "partial": "the measuring process died"},
            "the measuring process died",
        ),
        ({"partial": "interrupted"}, "interrupted"),
    ],
)
async def test_inconclusive_run_ends_the_search_and_is_kept(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    def distort(data: Any) -> None:
        if data["request_rate"] > 15:
            data["loadgen"].update(change)

    at = levels(
        Bench(lambda: planned(lambda index: [20 * MS]), distort=distort), tmp_path, "ttft_p90<500ms"
    )
    with pytest.raises(InconclusiveRun, match=f"the run at 20 req/s is inconclusive: {why}"):
        await searched(at, 10.0)
    assert [(point.level, point.run.met(), point.why) for point in at.runs] == [
        (10.0, True, None),
        (20.0, None, why),
    ]


async def test_server_that_refuses_all_is_inconclusive_not_slow(tmp_path: Path) -> None:
    def distort(data: Any) -> None:
        if data["request_rate"] > 15:
            data["completed"], data["loadgen"]["outcomes"] = 0, {"refused": 300}

    at = levels(
        Bench(lambda: planned(lambda index: [20 * MS]), distort=distort), tmp_path, "ttft_p90<500ms"
    )
    with pytest.raises(InconclusiveRun, match="no request succeeded: refused 300"):
        await searched(at, 10.0)


async def test_runs_of_fewer_requests_are_made_as_long_as_their_requests_need(
    tmp_path: Path,
) -> None:
    """A hundred requests at 50/s would be over before the first answer of 10 s was."""
    bench = Bench(lambda: planned(lambda index: [100 * MS, 10 * S]))
    at = levels(bench, tmp_path, "ttft_p90<500ms", min_requests=100, length_s=0)
    await at.run_level(50.0)
    assert [(point.run.met(), point.why) for point in at.runs] == [
        (None, "was too short (a request took 10 s)"),
        (True, None),
    ]
    counts = [asked.num_prompts for asked in bench.asked]
    assert counts[0] == 100
    assert counts[-1] >= 50 * 10 * 10


async def test_runs_of_a_search_are_limited(tmp_path: Path) -> None:
    """One shows where to begin, one turns out too short, and one is as long as it must be."""
    bench = Bench(lambda: planned(lambda index: [100 * MS, 10 * S]))
    at = levels(
        bench,
        tmp_path,
        "ttft_p90<500ms",
        min_requests=100,
        length_s=0,
        bounds=SearchBounds(max_runs=3),
    )
    await at.run_burst()
    found = await searched(at, 50.0)
    assert (found.level, found.end, found.tried) == (50.0, End.FLOOR, ((50.0, True),))
    assert [asked.request_rate for asked in bench.asked] == [math.inf, 50.0, 50.0]


async def test_the_last_run_may_turn_out_too_short_which_is_noted(tmp_path: Path) -> None:
    at = levels(
        Bench(lambda: planned(lambda index: [100 * MS, 10 * S])),
        tmp_path,
        "ttft_p90<500ms",
        min_requests=100,
        length_s=0,
        bounds=SearchBounds(max_runs=1),
    )
    assert (await searched(at, 50.0)).tried == ((50.0, None),)
    assert at.notes == ["at 50 req/s a run was too short (a request took 10 s)"]


@pytest.mark.parametrize(
    ("level", "said"), [(9.87654321, "9.877"), (8000, "8000"), (16_000, "16000"), (1e6, "1e+06")]
)
def test_levels_are_named_as_they_would_be_asked_for(level: float, said: str) -> None:
    assert format_level(level) == said


def test_a_search_may_ask_for_any_rate_that_a_run_may() -> None:
    assert RATE.max_level == MAX_RATE


async def test_run_with_missing_records_is_inconclusive_and_kept(tmp_path: Path) -> None:
    def distort(data: Any) -> None:
        data["num_prompts"] += 1

    bench = Bench(lambda: planned(lambda index: [20 * MS]), distort=distort)
    at = levels(bench, tmp_path, "ttft_p90<500ms")
    with pytest.raises(InconclusiveRun, match="only 600 of 601 requests have a record"):
        await at.run_level(10.0)
    assert [point.why for point in at.runs] == ["only 600 of 601 requests have a record"]
