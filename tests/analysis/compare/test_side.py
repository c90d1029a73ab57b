"""Sides: results, several in one file, records and folders of them; each run once."""

import shutil
from pathlib import Path

import pytest

from loadgen.analysis.compare.metrics import USUAL, named
from loadgen.analysis.compare.side import Side, check_apart
from loadgen.errors import BadInput
from loadgen.report import to_json
from loadgen.runner.run_result import from_records
from tests.helpers import saved_json
from tests.helpers.compared_runs import recorded, result, saved, starts


def read(path: object) -> Side:
    return Side.read("A", str(path))


def test_a_result_is_one_start(tmp_path: Path) -> None:
    (start,) = read(saved(tmp_path / "r.json")).starts
    assert start.records is None
    assert start.sample(USUAL) is None


def test_the_lines_of_an_appended_file_are_starts_in_the_order_of_their_dates(tmp_path: Path) -> None:
    lines = [to_json(result(date, ttft=ttft)) for date, ttft in (("20250103", 30), ("20250101", 10), ("20250102", 20))]
    (tmp_path / "all.jsonl").write_text("\n".join(lines) + "\n")
    found = read(tmp_path / "all.jsonl").starts
    assert [start.date for start in found] == ["20250101", "20250102", "20250103"]
    assert [start.where.rpartition(": ")[2] for start in found] == ["line 2", "line 3", "line 1"]


def test_records_make_their_result_and_tell_of_requests(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl")
    (start,) = read(path).starts
    ttft = named("ttft_p90")
    assert ttft is not None
    assert start.value(ttft) == from_records(path).data["loadgen"]["latency_ms"]["ttft_due"]["p90"]
    assert start.sample(USUAL) is not None


def test_a_folder_has_a_start_for_each_run_and_leaves_out_what_is_of_none(tmp_path: Path) -> None:
    folder = Path(starts(tmp_path / "base", 20, 21, 22))
    (folder / "notes.txt").write_text("of Tuesday")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x00")
    (folder / "search.json").write_text(to_json(saved_json.begun("search", "rate", None, "due")))
    (folder / "deeper").mkdir()
    assert len(read(folder).starts) == 3


def test_a_run_that_is_there_twice_counts_once_and_by_its_records(tmp_path: Path) -> None:
    """Or a folder with copies, or with results beside records, would have more starts than there were."""
    path = recorded(tmp_path / "z-run.jsonl")
    (tmp_path / "a-result.json").write_text(to_json(from_records(path).data))
    shutil.copy(tmp_path / "a-result.json", tmp_path / "zz-copy.json")
    (start,) = read(tmp_path).starts
    assert start.records == path


def test_what_one_worker_has_left_is_no_run(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "run.jsonl"))
    first, *lines = path.read_text().splitlines(keepends=True)
    assert '"stripe":[0,1]' in first
    (tmp_path / "run.jsonl.part2").write_text(
        "".join([first.replace('"stripe":[0,1]', '"stripe":[1,2]'), *lines[1::2]])
    )
    assert len(read(tmp_path).starts) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.json", None, "none.json: No such file or directory"),
        ("words.json", "hello", "is not a loadgen result"),
        ("vllm.json", '{"request_throughput": 1.0}', "is not a loadgen result"),
        ("half.json", '{"loadgen": {"schema": 1, "verdict": "VALID"}}', "is not a whole loadgen result"),
        ("search.json", to_json(saved_json.begun("search", "rate", None, "due")), "of several runs at different loads"),
    ],
)
def test_what_is_no_run_is_refused_by_its_name(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=said):
        read(tmp_path / name)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no result and no records"):
        read(tmp_path)


def test_a_run_cannot_stand_on_both_sides(tmp_path: Path) -> None:
    path = saved(tmp_path / "r.json")
    shutil.copy(path, tmp_path / "copy.json")
    with pytest.raises(BadInput, match=r"copy\.json is the same run as .*r\.json"):
        check_apart([read(path), read(tmp_path / "copy.json")])


def test_runs_of_a_side_that_are_not_of_one_thing_are_told(tmp_path: Path) -> None:
    saved(tmp_path / "one.json", engine={"name": "vllm", "version": "0.11.0"})
    saved(tmp_path / "two.json", engine={"name": "vllm", "version": "0.12.0"})
    assert [str(each) for each in read(tmp_path).otherwise] == ["engine.version 0.11.0 and 0.12.0"]
    assert read(tmp_path).unlike == []


def test_a_result_without_a_latency_s_histogram_is_not_whole(tmp_path: Path) -> None:
    path = saved(tmp_path / "r.json", histograms={})
    with pytest.raises(BadInput, match="is not a whole loadgen result"):
        read(path)
