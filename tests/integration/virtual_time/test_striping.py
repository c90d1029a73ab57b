"""One schedule in partitions, each with its own load and recorder: merged, they equal the whole
run.
"""

from functools import reduce
from typing import Any

import numpy as np
import pytest

from loadgen.config.settings import RunSettings
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.throughput import (
    peak_concurrency,
    peak_output_tokens,
    steady_output_rate,
    wall_ns,
)
from loadgen.testing.memory import Reply
from loadgen.testing.memory_servers import answered, planned
from loadgen.util.clock import NS_PER_S
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts
from tests.helpers.virtual_runs import MS, carried_out

COUNT = 3_000
SETTINGS = RunSettings(
    request_rate=400.0, num_prompts=COUNT, goodput=("ttft:40", "tpot:12"), save_detailed=True
)
SCHEDULE = Schedule.from_settings(SETTINGS, 7)
OF_THE_LOOP = ("loop_stall", "gc_pause")  # each loop measures its own


def plan(index: int) -> list[int]:
    """One to thirty tokens, in lognormal gaps, the same for a request whoever sends it."""
    rng = np.random.default_rng([index, *b"plan"])
    gaps = rng.lognormal(np.log(10 * MS), 0.5, int(rng.integers(1, 30)))
    return [int(at_ns) for at_ns in np.cumsum(gaps)]


def server(index: int, body: bytes, arrived_ns: int) -> Reply:
    """Answers by the plan, but breaks every 13th stream off, refuses every 17th request and
    drops every 29th.
    """
    whole = planned(plan)(index, body, arrived_ns)
    last_ns = whole.parts[-1][0]
    if index % 13 == 0:
        return Reply(
            answered([arrived_ns + MS, last_ns + MS]).parts[:1],
            closes_ns=last_ns,
            error="reset by peer",
        )
    if index % 17 == 0:
        return Reply([(last_ns, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")])
    if index % 29 == 0:
        return Reply([], closes_ns=last_ns)
    return whole


def part(i: int, n: int) -> Snapshot:
    return carried_out(server, SCHEDULE, SETTINGS, stripe=(i, n)).snapshot


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    return part(0, 1)


@pytest.fixture(scope="module", params=[1, 2, 7])
def together(request: pytest.FixtureRequest) -> Snapshot:
    n = request.param
    return reduce(Snapshot.merge, [part(i, n) for i in range(n)])


def comparable(snapshot: Snapshot) -> dict[str, Any]:
    """All that a snapshot says, requests in the order of the schedule: a run in one piece has
    them as they ended.
    """
    return vars(run_facts.in_order(snapshot)) | {
        "histograms": {
            name: h for name, h in snapshot.histograms.items() if name not in OF_THE_LOOP
        }
    }


def test_the_run_has_what_could_go_wrong_in_merging(whole: Snapshot) -> None:
    assert set(whole.outcomes) == {"ok", "truncated", "status(503)", "refused"}
    assert whole.scheduled == whole.ended == COUNT
    assert 0 < whole.counters["good"] < whole.ok
    assert whole.bins.sum() == whole.counters["output_tokens"]
    assert whole.histograms["icl"].count > 20_000


def test_stripes_merge_into_the_whole_bit_for_bit(whole: Snapshot, together: Snapshot) -> None:
    assert comparable(together) == comparable(whole)


def test_rates_and_peaks_are_those_of_the_whole(whole: Snapshot, together: Snapshot) -> None:
    for measure in (wall_ns, peak_output_tokens, steady_output_rate, peak_concurrency):
        assert measure(together) == measure(whole)
    assert wall_ns(whole) > 7 * NS_PER_S
    assert peak_concurrency(whole) > 50


def test_the_report_is_that_of_the_whole(whole: Snapshot, together: Snapshot) -> None:
    results = [run_facts.result(snapshot, SETTINGS) for snapshot in (together, whole)]
    for result in results:
        for name in OF_THE_LOOP:
            del result["loadgen"]["latency_ms"][name], result["loadgen"]["histograms"][name]
        del result["loadgen"]["provenance"]
    assert results[0] == results[1]


def test_partitions_merge_in_any_order_and_grouping(whole: Snapshot) -> None:
    first, second, third = (part(i, 3) for i in range(3))
    for merged in (
        first.merge(second).merge(third),
        third.merge(first).merge(second),
        first.merge(second.merge(third)),
    ):
        assert comparable(merged) == comparable(whole)
