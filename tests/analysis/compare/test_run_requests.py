"""RunRequests: resampled metrics, and the requests that they come from."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from loadgen.analysis.compare.compared_run import SavedRun
from loadgen.analysis.compare.metrics import DEFAULT_METRICS, Meaning, Metric, metric_by_name
from loadgen.analysis.compare.run_requests import RunRequests
from loadgen.metrics.records.shards import shard_path
from loadgen.runner.run_result import from_records
from loadgen.stats.block_bootstrap import BlockBootstrap
from loadgen.util.partition import Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts
from tests.helpers.compared_runs import SETTINGS, kept, recorded

DUE = Meaning("due")
OURS = tuple(metric for metric in DEFAULT_METRICS if not metric.from_server)
GOOD = SETTINGS.replace(goodput=("ttft:20",), num_prompts=700)


def started(path: str) -> SavedRun:
    return SavedRun(path, from_records(path).data, path)


def read(path: str, *names: str) -> RunRequests:
    requests = started(path).read_requests(
        [metric for name in names if (metric := metric_by_name(name))] or OURS, DUE
    )
    assert requests is not None
    return requests


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> SavedRun:
    return started(recorded(tmp_path_factory.mktemp("records") / "run.jsonl", settings=GOOD))


@pytest.fixture(scope="module")
def requests(start: SavedRun) -> RunRequests:
    found = start.read_requests(OURS, DUE)
    assert found is not None
    return found


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_single_block_of_the_run_gives_the_run_values(
    start: SavedRun, requests: RunRequests, metric: Metric
) -> None:
    """Drawn as one block, a circle is the same wherever it begins: so the estimators are those
    of the result.
    """
    drawn = requests.resample(metric, BlockBootstrap(requests.count), 0)
    assert drawn is not None
    assert drawn == pytest.approx(
        np.full(len(drawn), start.value(metric, start.meaning)), rel=1.5e-3
    )


def test_extremes_are_not_resampled(tmp_path: Path) -> None:
    requests = read(recorded(tmp_path / "run.jsonl"), "ttft_max", "ttft_p0")
    for name in ("ttft_max", "ttft_p0"):
        metric = metric_by_name(name)
        assert metric is not None
        assert requests.resample(metric, BlockBootstrap(10), 0) is None


def test_server_metrics_are_not_resampled(requests: RunRequests) -> None:
    metric = metric_by_name("server_ttft_mean")
    assert metric is not None
    assert requests.resample(metric, BlockBootstrap(10), 0) is None


def test_sample_in_flight_follows_littles_law(requests: RunRequests) -> None:
    """20 req/s of 50 ms each (20 to the first token and 3 gaps of 10) are one in flight."""
    assert requests.in_flight == pytest.approx(1.0, rel=0.15)


def test_run_of_few_blocks_is_too_short(requests: RunRequests) -> None:
    assert requests.too_short_for(140) is None
    assert (
        requests.too_short_for(141)
        == "700 requests are fewer than 5 blocks of 141: send 705 or more"
    )


def test_event_of_several_tokens_ends_several_gaps(tmp_path: Path) -> None:
    """Tokens at 20, 30 and three at 60 ms: gaps of 10 and 30 between events, of 10 four times
    between tokens.
    """
    records = [run_facts.per_event((20, 1), (30, 2), (60, 5), index=index) for index in range(3)]
    requests = read(kept(tmp_path / "run.jsonl", records, Schedule.burst(3)), "icl_p50", "itl_p50")
    icl, itl = requests.latencies["icl"], requests.latencies["itl"]
    assert (icl.sums.tolist(), icl.counts.tolist(), icl.within[50].tolist()) == (
        [40] * 3,
        [2] * 3,
        [1] * 3,
    )
    assert (itl.sums.tolist(), itl.counts.tolist(), itl.within[50].tolist()) == (
        [40] * 3,
        [4] * 3,
        [4] * 3,
    )


def test_requests_sent_before_an_interruption_count(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:31]))
    requests = read(str(path))
    assert (len(requests.failed), requests.failed.sum(), requests.count) == (30, 0, 30)
    assert requests.too_short_for(6) is None
    assert requests.too_short_for(7) == "30 requests are fewer than 5 blocks of 7: send 35 or more"
    throughput = metric_by_name("request_throughput")
    assert throughput is not None
    assert requests.resample(throughput, BlockBootstrap(6), 0) is not None


def test_run_without_ended_requests_is_too_short(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    requests = read(str(path))
    assert (requests.count, requests.failed.sum()) == (0, 0)
    assert requests.too_short_for(requests.block_length) is not None


def test_requests_beyond_the_duration_do_not_count(tmp_path: Path) -> None:
    """A closed loop holds far more requests ready than it comes to send."""
    records = [run_facts.steady(index, due=50 * index) for index in range(30)]
    requests = read(kept(tmp_path / "run.jsonl", records, Schedule.burst(10_000), scheduled=30))
    assert (len(requests.failed), requests.failed.sum(), requests.count) == (30, 0, 30)


def test_request_without_a_record_does_not_count(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:51], *lines[52:]]))
    requests = read(str(path))
    assert (len(requests.failed), requests.failed.sum(), requests.count) == (199, 0, 199)


def test_refused_requests_are_part_of_the_duration(tmp_path: Path) -> None:
    """As in the result: the run lasts until the last of them has ended, though none of them was
    sent.
    """
    records = [run_facts.steady(index, due=10 * index) for index in range(100)]
    records += [run_facts.unsent(100 + index, due=1000 + 10 * index) for index in range(100)]
    path = kept(tmp_path / "run.jsonl", records, Schedule.burst(200))
    start, requests = started(path), read(path)
    throughput = metric_by_name("request_throughput")
    assert throughput is not None
    drawn = requests.resample(throughput, BlockBootstrap(requests.count), 0)
    assert drawn is not None
    assert (
        drawn[0]
        == pytest.approx(start.value(throughput, start.meaning))
        == pytest.approx(100 / 1.995)
    )


def test_records_of_several_workers_are_one_run(tmp_path: Path) -> None:
    """Of a run that was killed the records of each still lie in a file of their own."""
    path = tmp_path / "run.jsonl"
    for number in (0, 1):
        recorded(shard_path(path, number), partition=Partition(number, 2))
    requests = read(str(path))
    assert (len(requests.failed), requests.failed.sum(), requests.count) == (200, 0, 200)


@pytest.mark.integration
def test_memory_does_not_grow_with_answers(tmp_path: Path) -> None:
    """What is kept is of requests, not of their tokens."""
    most = []
    for n in (4, 400):
        records = (run_facts.steady(index, due=10 * index, gap=1, n=n) for index in range(60))
        path = kept(tmp_path / f"{n}.jsonl", records, Schedule.burst(60))
        start = started(path)
        tracemalloc.start()
        start.read_requests(OURS, DUE)
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[1] < most[0] + 60 * 400 * 8 / 2
