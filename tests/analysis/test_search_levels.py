"""Levels: how many requests their runs have, and when it is clear that a run cannot meet what is demanded."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import Run, Shown
from loadgen.analysis.search.criteria import Share, of_each
from loadgen.analysis.search.levels import CONCURRENCY, MOST_REQUESTS, RATE, Axis, Levels, Watch
from loadgen.config.settings import RunSettings
from loadgen.core.wire import Record
from loadgen.metrics.progress import DONE, Progress
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.shards import join_shards, shard_path
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts

DEMANDS = of_each("ttft_p99<500ms,e2el_mean<1s")
SETTINGS = RunSettings(num_prompts=1000)
RUNNING = Progress("running", in_flight=1)
NEEDED = 17  # late requests of 1,000: of 16 the upper bound is 0.9903, of 17 it is 0.9895


def late(count: int, first: int = 0) -> list[Record]:
    """Requests far from each other that have missed their limit."""
    return [run_facts.steady(25 * number, ttft=600) for number in range(first, first + count)]


def lines(path: Path, records: list[Record], partition: Partition = WHOLE) -> list[bytes]:
    """A file of records as they ended, cut into lines."""
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(run_facts.heading(SETTINGS, Schedule.burst(1000)), run_facts.START, 1000, [], None, partition)
        for record in records:
            writer.write(record)
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def watch(path: Path) -> Watch:
    return Watch(path, DEMANDS, SETTINGS)


def test_it_may_go_on_as_long_as_the_others_could_make_up_for_it(path: Path) -> None:
    """Of 1,000 requests 10 may be late, and a few more by chance."""
    written, watching, needed = lines(path, late(40)), watch(path), 0
    for count in range(1, len(written) + 1):
        path.write_bytes(b"".join(written[:count]))
        if watching(RUNNING) is not None:
            needed = count - 1
            break
    assert needed == NEEDED
    assert watching.reason == "17 of 1000 requests have missed ttft_p99<500ms, which 99.0% of them must meet"


def test_an_overload_is_not_waited_for(path: Path) -> None:
    """As soon as more have missed than may, and noise explains; however many are in flight by then."""
    lines(path, late(40))
    assert watch(path)(Progress("running", in_flight=600)) is not None


def test_requests_that_are_good_never_stop_it(path: Path) -> None:
    lines(path, late(5) + [run_facts.steady(1 + index, ttft=20) for index in range(900)])
    assert watch(path)(RUNNING) is None


def test_a_line_counts_once_and_when_it_is_whole(path: Path) -> None:
    written = lines(path, late(NEEDED))
    whole = b"".join(written[:NEEDED])  # the first says what the run is
    watching = watch(path)
    for ending in (b"", written[NEEDED][:50], written[NEEDED][:-1]):
        path.write_bytes(whole + ending)
        for _ in range(3):
            assert watching(RUNNING) is None
    path.write_bytes(whole + written[NEEDED])
    assert watching(RUNNING) is not None


def test_before_there_are_records_there_is_nothing_to_say(path: Path) -> None:
    assert watch(path)(RUNNING) is None


def test_records_of_an_earlier_run_at_the_same_place_are_not_this_runs(path: Path) -> None:
    """Each of them was late, and the last had a number that this run does not have."""
    lines(path, [*late(40), run_facts.steady(5000, ttft=600)])
    watching = watch(path)
    for phase in ("preparing", "connecting", "warming up", "ready"):
        assert watching(Progress(phase)) is None
    lines(path, late(NEEDED - 1))
    assert watching(RUNNING) is None
    lines(path, late(NEEDED))
    assert watching(RUNNING) is not None


def test_the_pieces_of_all_workers_are_read(path: Path) -> None:
    lines(path, late(8), Partition(0, 2))
    watching = watch(path)
    assert watching(RUNNING) is None
    lines(shard_path(path, 1), late(NEEDED - 8, first=8), Partition(1, 2))
    assert watching(RUNNING) is not None


def test_what_is_read_again_where_pieces_are_joined_counts_once(path: Path) -> None:
    pieces = [shard_path(path, number) for number in range(2)]
    lines(pieces[0], late(8), Partition(0, 2))
    written = lines(pieces[1], late(NEEDED - 8, first=8), Partition(1, 2))
    pieces[1].write_bytes(b"".join(written[:-1]))  # the last record is not on disk yet
    watching = watch(path)
    assert watching(RUNNING) is None
    pieces[1].write_bytes(b"".join(written))
    join_shards(pieces)
    assert str(watching(RUNNING)).startswith(f"{NEEDED} of 1000 requests")


def test_what_an_earlier_run_of_more_workers_has_left_is_not_this_runs(path: Path) -> None:
    lines(shard_path(path, 1), late(40), Partition(1, 2))
    lines(path, late(8))
    assert watch(path)(RUNNING) is None


def test_a_run_that_is_done_is_not_ended_any_more(path: Path) -> None:
    lines(path, late(40))
    assert watch(path)(Progress(DONE)) is None


def along(axis: Axis, demands: str = "ttft_p99<500ms", **options: Any) -> Levels:
    async def measure(*asked: object) -> Any:
        raise AssertionError("nothing is to be measured")

    return Levels(
        measure, SETTINGS, of_each(demands), lambda name: nullcontext(Path(name)), name="n", axis=axis, **options
    )


@pytest.mark.parametrize("demands", ["ttft_p99<500ms", "ttft_p99.9<500ms"])
@pytest.mark.parametrize("in_flight", [794, 2000, CONCURRENCY.most])
def test_two_runs_at_a_concurrency_can_meet_a_percentile(demands: str, in_flight: int) -> None:
    requests = 2 * along(CONCURRENCY, demands).requests_at(in_flight)
    good = np.ones(requests)
    (share,) = of_each(demands)
    assert isinstance(share, Share)
    assert Run([Shown(good, good, share.attainment)], in_flight).met()


def test_a_run_at_a_rate_is_cut_at_most_requests() -> None:
    assert along(RATE).requests_at(100_000.0) == MOST_REQUESTS


def test_a_run_has_as_many_requests_as_were_asked_for() -> None:
    assert along(RATE, enough=MOST_REQUESTS + 1).requests_at(1.0) == MOST_REQUESTS + 1
