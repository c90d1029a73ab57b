"""The journals of several workers are the records of one run, and become one file at its end."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.metrics.records.file import RecordFile, RecordWriter, write_trailer
from loadgen.metrics.records.shards import (
    further_shards,
    holds_records,
    remove_empty_shards,
    shard_path,
)
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util.partition import Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import START, S, answered, heading, shard

SETTINGS, SCHEDULE = RunSettings(num_prompts=6), Schedule.burst(6)
TRAILER = RunTrailer(workers=(shard(SCHEDULE), shard(SCHEDULE, 1)))
TOTALS = LoopTotals(
    scheduled=6,
    warm_connections=2,
    repeated_prompts=0,
    turns_without_token=0,
    partial=None,
    histograms={},
)


def write(path: Path, number: int, *, start_ns: int = START) -> None:
    """Write the journal of a worker, with every second record."""
    with RecordWriter.optional(path) as writer:
        assert writer
        writer.begin(heading(SETTINGS, SCHEDULE), start_ns, 6, [], None, Partition(number, 2))
        for index in range(number, 6, 2):
            record = answered(index)
            for name in ("due", "ready", "sent", "closed"):
                setattr(record, name, getattr(record, name) + start_ns - START)
            writer.write(record)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """The journals of two workers, three records each."""
    made = [shard_path(tmp_path / "r.jsonl", number) for number in range(2)]
    for number, path in enumerate(made):
        write(path, number)
    return made


def end(path: Path, totals: LoopTotals = TOTALS) -> str | None:
    """End the run, whose records are wanted as lines of JSON."""
    return write_trailer(path, TRAILER, totals, str(path))


def indices(path: Path) -> list[int]:
    return [record.index for record in RecordFile(path)]


def test_first_shard_is_the_records_file_itself(tmp_path: Path) -> None:
    assert [shard_path(tmp_path / "r.jsonl", number).name for number in range(3)] == [
        "r.jsonl",
        "r.jsonl.part2",
        "r.jsonl.part3",
    ]


def test_all_journals_become_one_file_with_the_trailer(paths: list[Path]) -> None:
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]
    assert end(paths[0]) is None
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]
    file = RecordFile(paths[0])
    assert (file.is_journal, file.trailer) == (False, TRAILER)
    assert list(paths[0].parent.iterdir()) == [paths[0]]
    assert paths[0].stat().st_mode & 0o777 == 0o600


def test_a_run_that_names_no_records_keeps_its_journals(paths: list[Path]) -> None:
    assert write_trailer(paths[0], TRAILER, TOTALS) is None
    file = RecordFile(paths[0])
    assert (file.is_journal, file.is_of_whole_run, file.trailer) == (True, True, TRAILER)
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


def test_the_lines_can_go_to_a_pipe(paths: list[Path], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(pipe.read_bytes)
        assert write_trailer(paths[0], TRAILER, TOTALS, str(pipe)) is None
        first, *lines, last = map(orjson.loads, reading.result().splitlines())
    assert (first["loadgen_records"], list(last)) == (2, ["end"])
    assert [line["index"] for line in lines] == [0, 2, 4, 1, 3, 5]
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("number", [0, 1])
def test_a_row_that_was_cut_off_is_left_out_and_breaks_no_other(
    paths: list[Path], number: int
) -> None:
    paths[number].write_bytes(paths[number].read_bytes()[:-20])
    end(paths[0])
    assert sorted(indices(paths[0])) == sorted({*range(6)} - {4 + number})


def test_the_end_of_a_part_is_not_that_of_the_run(paths: list[Path]) -> None:
    for number, path in enumerate(paths):
        write_trailer(path, RunTrailer(workers=(shard(SCHEDULE, number),)), TOTALS)
    assert not RecordFile(paths[0]).is_of_whole_run
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("begun", [None, b'{"loadgen_rec'])
def test_the_others_are_one_file_where_one_was_never_begun(
    paths: list[Path], number: int, begun: bytes | None
) -> None:
    if begun is None:
        paths[number].unlink()
    else:
        paths[number].write_bytes(begun)
    assert end(paths[0]) is None
    assert indices(paths[0]) == [1 - number, 3 - number, 5 - number]


def test_times_of_another_machine_are_moved_to_one_clock(paths: list[Path]) -> None:
    before = {record.index: record.sent for record in RecordFile(paths[0])}
    write(paths[1], 1, start_ns=START + 9 * S)
    assert {record.index: record.sent for record in RecordFile(paths[0])} == before
    end(paths[0])
    assert {record.index: record.sent for record in RecordFile(paths[0])} == before


def test_a_full_disk_removes_no_journal(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("loadgen.metrics.records.file.record_line", full)
    assert end(paths[0]) == (
        f"No space left on device; it is still a journal, which `loadgen report {paths[0]}` reads"
    )
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]
    file = RecordFile(paths[0])
    assert (file.is_journal, file.is_of_whole_run, file.trailer) == (True, True, TRAILER)


def test_a_run_that_ends_while_its_lines_are_made_keeps_its_trailer(paths: list[Path]) -> None:
    before = RecordFile(paths[0])
    write_trailer(paths[0], TRAILER, TOTALS)
    with pytest.raises(OSError, match="its run is just ending"):
        before.write_lines(paths[0], RunTrailer(workers=()), TOTALS)
    assert RecordFile(paths[0]).trailer == TRAILER
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


def test_lines_that_were_made_of_a_run_before_its_end_get_its_trailer(paths: list[Path]) -> None:
    RecordFile(paths[0]).write_lines(paths[0], RunTrailer(workers=()), TOTALS)
    assert end(paths[0]) is None
    assert RecordFile(paths[0]).trailer == TRAILER
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


def test_a_journal_that_cannot_be_removed_loses_no_record(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == paths[1]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr("loadgen.metrics.records.file.Path.unlink", refused)
        assert end(paths[0]).startswith("Permission denied")
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


def test_empty_shards_are_removed_and_other_files_are_kept(
    paths: list[Path], tmp_path: Path
) -> None:
    never = [shard_path(paths[0], number) for number in (2, 3)]
    never[0].write_bytes(b"")
    never[1].write_bytes(b'{"loadgen_rec')
    mine = tmp_path / "r.jsonl.part"
    mine.write_bytes(b"of a download")
    remove_empty_shards(paths[0])
    assert sorted(tmp_path.iterdir()) == sorted([*paths, mine])


def test_a_run_holds_records_if_any_worker_has_written_one(paths: list[Path]) -> None:
    header = paths[0].read_bytes().partition(b"\n")[0] + b"\n"
    paths[0].write_bytes(header)
    assert holds_records(paths[0])
    paths[1].write_bytes(header)
    assert not holds_records(paths[0])
    paths[1].unlink()
    paths[0].unlink()
    assert not holds_records(paths[0])


def test_a_name_may_have_what_a_pattern_has(tmp_path: Path) -> None:
    path = tmp_path / "r[1].jsonl"
    for number in (9, 1):
        shard_path(path, number).write_bytes(b"")
    shard_path(tmp_path / "r1.jsonl", 1).write_bytes(b"")
    assert further_shards(path) == [shard_path(path, 1), shard_path(path, 9)]
