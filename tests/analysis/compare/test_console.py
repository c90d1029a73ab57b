"""The printed comparison, as a whole: golden/ holds its sentences once."""

from pathlib import Path

import pytest

from loadgen.analysis.compare.comparison import compare
from loadgen.analysis.compare.json_report import as_json
from loadgen.analysis.compare.page import render
from loadgen.analysis.compare.side import Side, names
from tests.helpers.compared_runs import FEW, recorded, saved, server, starts

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rendered(*paths: str, anyway: bool = False) -> str:
    sides = [Side.read(name, path) for name, path in zip(names(paths), paths, strict=True)]
    return render(compare(sides, anyway=anyway))


def test_starts_as_printed() -> None:
    sides = (
        starts(Path("base"), 20.0, 20.2, 19.9),
        starts(Path("new"), 10.0, 10.1, 9.9),
        starts(Path("near"), 20, 20, 21),
    )
    assert rendered(*sides) == (GOLDEN / "starts.txt").read_text()


def test_records_as_printed() -> None:
    sides = recorded(Path("a.jsonl")), recorded(Path("b.jsonl"), factor=2.0, seed=1)
    assert rendered(*sides) == (GOLDEN / "records.txt").read_text()


def test_parts_of_a_latency_add_up_to_its_change() -> None:
    sides = recorded(Path("a.jsonl")), recorded(Path("b.jsonl"), factor=2.0, seed=1)
    comparison = compare([Side.read(path, path) for path in sides])
    rows = {row["metric"]: row for row in as_json(comparison)["comparisons"][0]["rows"]}
    for name in ("ttft_mean", "e2el_mean"):
        change_ms = rows[name]["side"] - rows[name]["base"]
        assert sum(rows[name]["parts_ms"].values()) == pytest.approx(change_ms, abs=0.1)
    assert rows["request_throughput"]["parts_ms"] is None


def test_results_as_printed() -> None:
    engine = {"name": "vllm", "version": "0.11.0"}
    base = saved(Path("a.json"), engine=engine, server=server(3), simulated=True)
    other = saved(
        Path("b.json"),
        ttft=25.0,
        settings=FEW.replace(request_rate=40.0),
        error_rate=0.5,
        server=server(0),
    )
    partial = saved(Path("c.json"), ttft=21.0, engine=engine, partial="interrupted")
    assert rendered(base, other, partial, anyway=True) == (GOLDEN / "results.txt").read_text()
