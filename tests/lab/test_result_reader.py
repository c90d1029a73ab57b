"""Baselines that other tools have measured: what is compared, with what intervals, and what is
said of them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis.compare import as_json, compare, judged_comparison
from loadgen.analysis.compare.comparison import Comparison
from loadgen.analysis.compare.confidence_interval import Basis, NoiseFile
from loadgen.analysis.compare.metrics import Meaning
from loadgen.analysis.compare.pair import Row
from loadgen.analysis.compare.side import Side
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from tests.helpers.compared_runs import recorded, saved, starts
from tests.lab.test_tool_result import RUST, SGLANG_FILE, data

LIKE_RUST = RunSettings(request_rate=60.0, num_prompts=240)


def side(path: object) -> Side:
    return Side.read(Path(str(path)).stem, str(path))


def against(baseline: object, candidate: object, **options: Any) -> Comparison:
    return compare([side(baseline), side(candidate)], **options)


def rows(comparison: Comparison) -> dict[str, Row]:
    return {row.metric.name: row for row in comparison.candidates[0].rows}


def changed(path: Path, **changes: Any) -> Path:
    """The result of the client in Rust, with changes."""
    path.write_text(json.dumps(data(**changes)))
    return path


def without_requests(path: Path, **changes: Any) -> Path:
    kept = {name: value for name, value in data(**changes).items() if not isinstance(value, list)}
    path.write_text(json.dumps(kept))
    return path


def test_numbers_are_those_that_the_tool_printed(tmp_path: Path) -> None:
    candidate = saved(tmp_path / "own.json", settings=LIKE_RUST, model="sim")
    found = rows(against(RUST, candidate, anyway=True))
    printed = data()
    assert found["ttft_p99"].baseline == pytest.approx(printed["p99_ttft_ms"])
    assert found["ttft_p50"].baseline == pytest.approx(printed["median_ttft_ms"])
    assert found["tpot_mean"].baseline == pytest.approx(printed["mean_tpot_ms"])
    assert found["icl_mean"].baseline == pytest.approx(printed["mean_itl_ms"])
    assert found["total_throughput"].baseline == pytest.approx(printed["total_token_throughput"])
    assert found["error_rate"].baseline == 0
    assert not {name for name in found if name.startswith(("ttfo", "server"))}


def test_latencies_of_both_sides_are_from_sent(tmp_path: Path) -> None:
    comparison = against(
        RUST, saved(tmp_path / "own.json", settings=LIKE_RUST, model="sim"), anyway=True
    )
    assert comparison.baseline.meaning == Meaning("sent", as_vllm=True)
    assert any(note.startswith("all latencies are from sent") for note in comparison.notes)


def test_without_requests_there_is_no_interval_and_the_flag_is_named(tmp_path: Path) -> None:
    baseline = without_requests(tmp_path / "rs.json")
    candidate = recorded(tmp_path / "own.jsonl", settings=LIKE_RUST)
    row = rows(against(baseline, candidate, anyway=True))["ttft_p90"]
    assert row.interval is None
    assert row.why_no_interval == f"{baseline} was saved without --save-detailed"


def test_requests_give_intervals_within_the_run(tmp_path: Path) -> None:
    found = rows(against(RUST, recorded(tmp_path / "own.jsonl", settings=LIKE_RUST), anyway=True))
    for name in ("ttft_mean", "request_throughput"):
        interval = found[name].interval
        assert interval is not None, (name, found[name].why_no_interval)
        assert interval.basis is Basis.WITHIN
        assert interval.low < interval.high


def test_the_interval_of_a_run_with_a_copy_of_itself_contains_no_change(tmp_path: Path) -> None:
    found = rows(against(RUST, changed(tmp_path / "again.json", date="later")))
    assert all(row.change == pytest.approx(0) for row in found.values())


def test_three_runs_of_a_tool_are_a_side(tmp_path: Path) -> None:
    folder = tmp_path / "rs"
    folder.mkdir()
    for number, factor in enumerate((0.99, 1.0, 1.01)):
        without_requests(
            folder / f"{number}.json", date=str(number), p99_ttft_ms=factor * data()["p99_ttft_ms"]
        )
    candidate = starts(tmp_path / "own", 20.0, 20.2, 20.4, settings=LIKE_RUST, model="sim")
    row = rows(against(folder, candidate, anyway=True))["ttft_p99"]
    assert row.interval is not None
    assert row.interval.basis is Basis.STARTS
    assert row.conclusion == "better"


def test_sglangs_result_is_a_baseline_too(tmp_path: Path) -> None:
    found = rows(against(SGLANG_FILE, saved(tmp_path / "own.json"), anyway=True))
    printed = data(SGLANG_FILE)
    assert found["e2el_p99"].baseline == pytest.approx(printed["p99_e2e_latency_ms"])
    assert found["itl_p90"].baseline == pytest.approx(printed["p90_itl_ms"])
    assert found["total_throughput"].baseline == pytest.approx(printed["total_throughput"])
    assert found["error_rate"].baseline == pytest.approx(1 / 9)
    assert "icl_p90" not in found


def test_a_different_load_is_refused(tmp_path: Path) -> None:
    candidate = saved(
        tmp_path / "own.json", settings=LIKE_RUST.replace(request_rate=50.0), model="sim"
    )
    with pytest.raises(BadInput, match="different workloads: --request-rate 60 and 50"):
        against(RUST, candidate)


def test_what_the_file_is_stands_before_its_numbers(tmp_path: Path) -> None:
    comparison = against(RUST, saved(tmp_path / "own.json"), anyway=True)
    (note,) = (note for note in comparison.notes if "is a result of" in note)
    assert note.startswith(
        f"{RUST} is a result of vllm-rs bench serve: latencies are as that tool measures them"
    )
    assert "audit: itl-diluted" in note
    (baseline, candidate) = (each["starts"][0] for each in as_json(comparison)["sides"])
    assert (baseline["tool"], baseline["verdict"]) == ("vllm-rs bench serve", None)
    assert (candidate["tool"], candidate["verdict"]) == ("loadgen", "VALID")


def test_conditions_are_judged_against_it(tmp_path: Path) -> None:
    comparison = against(RUST, saved(tmp_path / "own.json", ttft=60.0), anyway=True)
    judged = judged_comparison.judge(
        comparison, judged_comparison.parse(["ttft_p99>+5%", "request_throughput<-90%"])
    )
    assert [each.failed for each in judged] == [None, None]  # one start of each


def test_noise_of_loadgens_own_runs_gives_intervals(tmp_path: Path) -> None:
    noise = NoiseFile.of(side(starts(tmp_path / "base", 20.0, 20.2, 20.4)))
    candidate = saved(tmp_path / "own.json", ttft=20.1)
    row = rows(against(RUST, candidate, anyway=True, noise=noise))["ttft_p99"]
    assert row.interval is not None
    assert row.interval.basis is Basis.NOISE


def test_noise_is_not_estimated_from_runs_of_another_tool(tmp_path: Path) -> None:
    folder = tmp_path / "rs"
    folder.mkdir()
    for number in range(3):
        changed(folder / f"{number}.json", date=str(number))
    with pytest.raises(
        BadInput, match="is a result of vllm-rs bench serve, whose workload is unknown"
    ):
        NoiseFile.of(side(folder))


def test_the_command_says_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = saved(tmp_path / "own.json", ttft=60.0)
    code = dispatch(
        ["compare", str(RUST), own, "--anyway", "--fail-if", "ttft_p99>+5%", "--names", "rust,own"]
    )
    out = capsys.readouterr().out
    assert code == 10  # one start of each
    assert '"rust" no verdict, "own" VALID' in out
    assert "latencies from actual send" in " ".join(out.split())


def test_runs_from_due_and_from_sent_are_both_read_from_sent(tmp_path: Path) -> None:
    due = saved(tmp_path / "due.json")
    sent = saved(
        tmp_path / "sent.json", settings=LIKE_RUST.replace(num_prompts=20, latency_from="sent")
    )
    with pytest.raises(BadInput, match="--latency-from due and sent"):
        against(due, sent)
    comparison = against(due, sent, anyway=True)
    assert comparison.baseline.meaning == Meaning("sent")
    assert f"all latencies are from sent, also those of {due}" in comparison.notes
    assert against(due, saved(tmp_path / "other.json")).baseline.meaning == Meaning("due")
