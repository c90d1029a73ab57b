"""Results that are saved, read, shown and compared by a program."""

from pathlib import Path

import orjson
import pytest

import loadgen
from tests.helpers import compared_runs, run_facts, saved_results


@pytest.fixture
def result() -> loadgen.Result:
    data = run_facts.run_data([run_facts.steady(), run_facts.steady(1)])
    return loadgen.Result.of(data, [], snapshot=data.snapshot)


def test_saved_result_is_loaded_as_it_was(result: loadgen.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "one.json")
    loaded = loadgen.load(tmp_path / "one.json")
    assert loaded.data == result.data
    assert loaded.ttft.p99_ms == result.ttft.p99_ms
    assert str(loaded) == str(result)


def test_result_that_cannot_be_saved_names_the_file(result: loadgen.Result, tmp_path: Path) -> None:
    with pytest.raises(loadgen.BadInput, match="cannot be written"):
        result.save(tmp_path / "none" / "one.json")


def test_several_results_in_a_file_are_loaded_in_order(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    rows = [compared_runs.result(date) for date in ("20261122-100000", "20261122-110000")]
    path.write_text("".join(f"{as_json(row)}\n" for row in rows))
    assert [each.numbers.date for each in loadgen.load_all(path)] == [
        "20261122-100000",
        "20261122-110000",
    ]
    with pytest.raises(loadgen.BadInput, match="load_all"):
        loadgen.load(path)


def test_series_is_saved_and_loaded_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "search.json").write_text(
        as_json(saved_results.search((4.0, 100.0, True), (8.0, 900.0, False)))
    )
    series = loadgen.load_series(tmp_path / "search.json")
    series.save(tmp_path / "again.json")
    assert loadgen.load_series(tmp_path / "again.json").to_dict() == series.to_dict()
    assert [point.level for point in series.points] == [4.0, 8.0]
    assert repr(series).startswith("<loadgen.SavedSeries: search over rate, 2 runs")
    with pytest.raises(loadgen.BadInput, match="load_series"):
        loadgen.load(tmp_path / "again.json")


def test_result_is_shown_in_one_line_and_in_a_notebook(result: loadgen.Result) -> None:
    assert repr(result).startswith("<loadgen.Result: ")
    assert f" | measurement {result.verdict}" in repr(result)
    assert "\n" not in repr(result)
    html = result._repr_html_()
    assert "<table>" in html
    assert "TTFT" in html
    assert "<style" not in html
    assert "<script" not in html


def as_json(data: object) -> str:
    return orjson.dumps(data).decode()
