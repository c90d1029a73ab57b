"""The record files of several workers are joined into one, with the trailer at its end."""

import errno
import os

import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.metrics.records import shards
from loadgen.metrics.records.file import RecordFile, RecordWriter
from loadgen.metrics.records.shards import (
    further_shards,
    join_shards,
    remove_empty_shards,
    shard_path,
    write_trailer,
)
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util.partition import Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import START, answered, heading, shard

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


@pytest.fixture
def paths(tmp_path):
    """The records of two workers, three each."""
    made = [shard_path(tmp_path / "r.jsonl", number) for number in range(2)]
    for number, path in enumerate(made):
        with RecordWriter.optional(path) as writer:
            writer.begin(heading(SETTINGS, SCHEDULE), START, 6, [], None, Partition(number, 2))
            for index in range(number, 6, 2):
                writer.write(answered(index))
    return made


def indices(path):
    return [record.index for record in RecordFile(path)]


def test_first_shard_is_the_records_file_itself(tmp_path):
    assert [shard_path(tmp_path / "r.jsonl", number).name for number in range(3)] == [
        "r.jsonl",
        "r.jsonl.part2",
        "r.jsonl.part3",
    ]


def test_joined_file_has_all_records_and_the_trailer(paths):
    assert join_shards(paths) is None
    assert RecordFile(paths[0]).trailer is None
    assert write_trailer(paths[0], TRAILER, TOTALS) is None
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]
    assert RecordFile(paths[0]).trailer == TRAILER
    assert list(paths[0].parent.iterdir()) == [paths[0]]


@pytest.mark.parametrize("number", [0, 1])
def test_a_line_that_was_cut_off_is_left_out_and_breaks_no_other(paths, number):
    paths[number].write_bytes(paths[number].read_bytes()[:-20])
    join_shards(paths)
    assert sorted(indices(paths[0])) == sorted(set(range(6)) - {4 + number})


def test_the_end_of_a_part_is_not_that_of_the_run(paths):
    for path in paths:
        write_trailer(path, TRAILER, TOTALS)
    join_shards(paths)
    assert RecordFile(paths[0]).trailer is None
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


@pytest.mark.parametrize("number", [0, 1])
def test_the_others_are_one_file_where_one_was_never_written(paths, number):
    paths[number].unlink()
    assert join_shards(paths) is None
    assert indices(paths[0]) == [1 - number, 3 - number, 5 - number]
    assert not paths[1].exists()


@pytest.mark.parametrize("number", [0, 1])
def test_the_others_are_one_file_where_one_was_never_begun(paths, number):
    paths[number].write_bytes(b'{"loadgen_rec')
    assert join_shards(paths) is None
    assert indices(paths[0]) == [1 - number, 3 - number, 5 - number]
    assert not paths[1].exists()


def test_the_end_of_the_run_takes_the_place_of_another(paths):
    for partial in ("alone", "together"):
        write_trailer(paths[0], TRAILER, structs.replace(TOTALS, partial=partial))
    assert RecordFile(paths[0]).totals.partial == "together"
    assert indices(paths[0]) == [0, 2, 4]


def test_failed_join_removes_no_shard(paths, monkeypatch):
    def full(part, whole):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shards, "_append", full)
    assert join_shards(paths) == "No space left on device"
    assert paths[1].exists()


def test_shard_that_cannot_be_removed_loses_no_record(paths, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(shards.Path, "unlink", refused)
    assert join_shards(paths) == "Permission denied"
    assert indices(paths[0]) == [0, 2, 4, 1, 3, 5]


def test_trailer_is_not_written_to_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert write_trailer(pipe, TRAILER, TOTALS) is None


def test_empty_shards_are_removed_and_other_files_are_kept(paths, tmp_path):
    never = [shard_path(paths[0], number) for number in (2, 3)]
    never[0].write_bytes(b"")
    never[1].write_bytes(b'{"loadgen_rec')
    mine = tmp_path / "r.jsonl.part"
    mine.write_bytes(b"of a download")
    remove_empty_shards(paths[0])
    assert sorted(tmp_path.iterdir()) == sorted([*paths, mine])


def test_a_name_may_have_what_a_pattern_has(tmp_path):
    path = tmp_path / "r[1].jsonl"
    shard_path(path, 1).write_bytes(b"")
    shard_path(tmp_path / "r1.jsonl", 1).write_bytes(b"")
    assert list(further_shards(path)) == [shard_path(path, 1)]
