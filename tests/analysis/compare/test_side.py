"""Sides: read from results, records and folders, each run once."""

import shutil
from pathlib import Path

import pytest

from loadgen.analysis.compare.metrics import DEFAULT_METRICS, metric_by_name
from loadgen.analysis.compare.side import Side, check_distinct
from loadgen.errors import BadInput
from loadgen.metrics.records.shards import shard_path
from loadgen.report import to_json
from loadgen.runner.run_result import from_records
from loadgen.util.partition import Partition
from tests.helpers import saved_json
from tests.helpers.compared_runs import recorded, result, saved, starts


def read(path: object) -> Side:
    return Side.read("A", str(path))


def test_result_is_one_start(tmp_path: Path) -> None:
    (start,) = read(saved(tmp_path / "r.json")).starts
    assert start.records is None
    assert start.read_requests(DEFAULT_METRICS, start.meaning) is None


def test_lines_of_a_file_are_starts_by_date(tmp_path: Path) -> None:
    lines = [
        to_json(result(date, ttft=ttft))
        for date, ttft in (("20250103", 30), ("20250101", 10), ("20250102", 20))
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(lines) + "\n")
    found = read(tmp_path / "all.jsonl").starts
    assert [start.date for start in found] == ["20250101", "20250102", "20250103"]
    assert [start.where.rpartition(": ")[2] for start in found] == ["line 2", "line 3", "line 1"]


def test_records_have_a_result_and_requests(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl")
    (start,) = read(path).starts
    ttft = metric_by_name("ttft_p90")
    assert ttft is not None
    assert (
        start.value(ttft, start.meaning)
        == from_records(path).data["loadgen"]["latency_ms"]["ttft_due"]["p90"]
    )
    assert start.read_requests(DEFAULT_METRICS, start.meaning) is not None


def test_folder_has_a_start_per_run(tmp_path: Path) -> None:
    folder = Path(starts(tmp_path / "base", 20, 21, 22))
    (folder / "notes.txt").write_text("of Tuesday")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x00")
    (folder / "search.json").write_text(to_json(saved_json.begun("search", "rate", None, "due")))
    (folder / "deeper").mkdir()
    assert len(read(folder).starts) == 3


def test_duplicate_run_counts_once_by_its_records(tmp_path: Path) -> None:
    """Or a folder with copies, or with results beside records, would have more starts than there
    were.
    """
    path = recorded(tmp_path / "z-run.jsonl")
    (tmp_path / "a-result.json").write_text(to_json(from_records(path).data))
    shutil.copy(tmp_path / "a-result.json", tmp_path / "zz-copy.json")
    (start,) = read(tmp_path).starts
    assert start.records == path


def test_records_of_one_worker_are_no_run(tmp_path: Path) -> None:
    for number in (0, 1):
        path = shard_path(tmp_path / "run.jsonl", number)
        recorded(path, partition=Partition(number, 2))
    assert len(read(tmp_path).starts) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.json", None, "none.json: No such file or directory"),
        ("words.json", "hello", "is not a loadgen result"),
        ("vllm.json", '{"request_throughput": 1.0}', "is not a loadgen result"),
        (
            "half.json",
            '{"loadgen": {"schema": 1, "verdict": "VALID"}}',
            "is not a whole loadgen result",
        ),
        (
            "search.json",
            to_json(saved_json.begun("search", "rate", None, "due")),
            "holds several runs at different loads",
        ),
    ],
)
def test_file_without_a_run_is_refused(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=said):
        read(tmp_path / name)


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no result and no records"):
        read(tmp_path)


def test_run_on_two_sides_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "r.json")
    shutil.copy(path, tmp_path / "copy.json")
    with pytest.raises(BadInput, match=r"copy\.json is the same run as .*r\.json"):
        check_distinct([read(path), read(tmp_path / "copy.json")])


def test_environment_differences_of_starts(tmp_path: Path) -> None:
    saved(tmp_path / "one.json", engine={"name": "vllm", "version": "0.11.0"})
    saved(tmp_path / "two.json", engine={"name": "vllm", "version": "0.12.0"})
    assert [str(each) for each in read(tmp_path).environment_differences] == [
        "engine.version 0.11.0 and 0.12.0"
    ]
    assert read(tmp_path).workload_differences == []


def test_result_without_a_histogram_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "r.json", histograms={})
    with pytest.raises(BadInput, match="is not a whole loadgen result"):
        read(path)
