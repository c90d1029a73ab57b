"""EarlyStop: when a run can no longer meet a criterion."""

from itertools import pairwise
from pathlib import Path

import pytest

from loadgen.analysis.search.criteria import separate_criteria
from loadgen.analysis.search.early_stop import EarlyStop
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.metrics.progress import DONE, Progress
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.shards import shard_path
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts

CRITERIA = separate_criteria("ttft_p99<500ms,e2el_mean<1s")
SETTINGS = RunSettings(num_prompts=1000)
RUNNING = Progress("running", in_flight=1)
NEEDED = 17  # late requests of 1,000: of 16 the upper bound is 0.9903, of 17 it is 0.9895


def late(count: int, first: int = 0) -> list[Record]:
    """Requests far from each other that have missed their limit."""
    return [run_facts.steady(25 * number, ttft=600) for number in range(first, first + count)]


def journal(path: Path, records: list[Record], stripe: Partition = WHOLE) -> list[bytes]:
    """A journal of records as they ended, cut into its header and its rows."""
    parts = []
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(
            run_facts.heading(SETTINGS, Schedule.burst(1000)),
            run_facts.START,
            1000,
            [],
            None,
            stripe,
        )
        for record in records:
            parts.append(path.read_bytes())
            writer.write(record)
            writer.flush()
        parts.append(path.read_bytes())
    return [after[len(before) :] for before, after in pairwise([b"", *parts])]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def early_stop(path: Path) -> EarlyStop:
    return EarlyStop(path, CRITERIA, SETTINGS)


def test_run_goes_on_while_it_can_still_meet_the_share(path: Path) -> None:
    """Of 1,000 requests 10 may be late, and a few more by chance."""
    written, stop, needed = journal(path, late(40)), early_stop(path), 0
    for count in range(1, len(written) + 1):
        path.write_bytes(b"".join(written[:count]))
        if stop(RUNNING) is not None:
            needed = count - 1
            break
    assert needed == NEEDED
    assert stop.reason == (
        "17 of 1000 requests (1.7%) failed or had TTFT of 500 ms or more; "
        "ttft_p99<500ms allows 1.0%"
    )


def test_overload_stops_the_run_at_once(path: Path) -> None:
    """As soon as more have missed than may, and noise explains; however many are in flight by
    then.
    """
    journal(path, late(40))
    assert early_stop(path)(Progress("running", in_flight=600)) is not None


def test_good_requests_never_stop_the_run(path: Path) -> None:
    journal(path, late(5) + [run_facts.steady(1 + index, ttft=20) for index in range(900)])
    assert early_stop(path)(RUNNING) is None


def test_row_counts_once_and_when_complete(path: Path) -> None:
    written = journal(path, late(NEEDED))
    whole = b"".join(written[:NEEDED])  # the first is the header
    stop = early_stop(path)
    for ending in (b"", written[NEEDED][:5], written[NEEDED][:-1]):
        path.write_bytes(whole + ending)
        for _ in range(3):
            assert stop(RUNNING) is None
    path.write_bytes(whole + written[NEEDED])
    assert stop(RUNNING) is not None


def test_missing_records_do_not_stop_the_run(path: Path) -> None:
    assert early_stop(path)(RUNNING) is None


def test_records_of_an_earlier_run_do_not_count(path: Path) -> None:
    """Each of them was late, and the last had a number that this run does not have."""
    journal(path, [*late(40), run_facts.steady(5000, ttft=600)])
    stop = early_stop(path)
    for phase in ("preparing", "connecting", "warming up", "ready"):
        assert stop(Progress(phase)) is None
    journal(path, late(NEEDED - 1))
    assert stop(RUNNING) is None
    journal(path, late(NEEDED))
    assert stop(RUNNING) is not None


def test_records_of_all_workers_are_read(path: Path) -> None:
    journal(path, late(8), Partition(0, 2))
    stop = early_stop(path)
    assert stop(RUNNING) is None
    journal(shard_path(path, 1), late(NEEDED - 8, first=8), Partition(1, 2))
    assert stop(RUNNING) is not None


def test_leftover_files_of_more_workers_do_not_count(path: Path) -> None:
    journal(shard_path(path, 1), late(40), Partition(1, 2))
    journal(path, late(8))
    assert early_stop(path)(RUNNING) is None


def test_finished_run_is_not_stopped(path: Path) -> None:
    journal(path, late(40))
    assert early_stop(path)(Progress(DONE)) is None
