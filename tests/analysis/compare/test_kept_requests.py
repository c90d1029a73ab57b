"""Results alone: a result that keeps all its requests is compared as its records are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.compare.answer import change_of
from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.pair import Row
from loadgen.analysis.compare.side import Side
from loadgen.report import to_json
from tests.helpers import run_facts

COUNT = 200


def result(path: Path, tpot_ms: float, seed: int, *, records: list[Any] | None = None) -> str:
    """A saved result of requests whose TPOT varies a little around this."""
    noise = np.random.default_rng(seed).normal(0, 0.02, (2, COUNT))
    requests = records or [
        run_facts.steady(
            index, due=100 * index, ttft=20 + noise[0][index], gap=tpot_ms + noise[1][index], n=10
        )
        for index in range(COUNT)
    ]
    data = run_facts.result(run_facts.measured(requests))
    data["date"] = path.stem
    path.write_text(to_json(data) + "\n")
    return str(path)


def compared(*paths: str) -> Comparison:
    return compare([Side.read(Path(path).stem, path) for path in paths])


def rows(comparison: Comparison) -> dict[str, Row]:
    return {row.metric.name: row for row in comparison.candidates[0].rows}


def test_slower_decoding_is_seen_between_two_results(tmp_path: Path) -> None:
    base, new = result(tmp_path / "a.json", 8.0, 1), result(tmp_path / "b.json", 8.4, 2)
    found = compared(base, new)
    row = rows(found)["tpot_p50"]
    assert row.interval is not None
    assert 0.03 < row.interval.low < 0.05 < row.interval.high < 0.07
    (first, _), *_ = change_of(found, found.candidates[0]).answer.parts
    assert first.startswith('"b" is slower in these two runs: TPOT p50 +5.0%')


def test_requests_that_are_alike_show_no_difference(tmp_path: Path) -> None:
    base, new = result(tmp_path / "a.json", 8.0, 1), result(tmp_path / "b.json", 8.0, 2)
    (first, _), *_ = change_of(found := compared(base, new), found.candidates[0]).answer.parts
    assert "slower" not in first
    assert "faster" not in first


def test_what_a_result_does_not_keep_needs_the_records(tmp_path: Path) -> None:
    base, new = result(tmp_path / "a.json", 8.0, 1), result(tmp_path / "b.json", 8.4, 2)
    found = rows(compared(base, new))
    for name in ("icl_mean", "request_throughput"):
        assert found[name].why_no_interval == "measure with --records"
    assert found["ttft_mean"].interval is not None


@pytest.mark.parametrize("failed", [1, 20])
def test_result_with_failed_requests_is_not_enough(tmp_path: Path, failed: int) -> None:
    records = [run_facts.steady(index, due=100 * index, n=10) for index in range(COUNT - failed)]
    records += [run_facts.failed(COUNT - 1 - index) for index in range(failed)]
    base = result(tmp_path / "a.json", 8.0, 1)
    new = result(tmp_path / "b.json", 8.0, 2, records=records)
    assert rows(compared(base, new))["tpot_p50"].why_no_interval == "measure with --records"
