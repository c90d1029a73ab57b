"""Searches as GPUStack starts them: which files they leave, and which load GPUStack can
recommend.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import TOKENIZER, ended, environment, hear, loadgen, served, start
from tests.helpers.gpustack_contract import at, refusals

pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
COMMAND = ("benchmark-runner", "benchmark", "run", "--auto-tune")
LENGTHS = (
    "--data",
    "prompt_tokens=16,output_tokens=8",
    "--processor",
    TOKENIZER,
    "--random-seed",
    "5",
)
STREAMS = ("--axis", "concurrency", "--lower-bound", "1.0")
LIMIT = 6
TOTALS = "benchmarks.0.metrics.request_totals"
TOKENS_PER_S = "benchmarks.0.metrics.tokens_per_second.successful.mean"


@pytest.fixture(scope="module")
def simulator() -> Iterator[str]:
    with served("--max-num-seqs", "4", "--step-base-ms", "2") as (url, _):
        yield url


@pytest.fixture(scope="module")
def limited() -> Iterator[str]:
    """A server that refuses requests beyond the first LIMIT in flight."""
    command = [sys.executable, "-m", "tests.helpers.limited_server", str(LIMIT)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1]
    process.kill()
    process.communicate()


def flags(target: str, folder: Path, *more: str) -> list[str]:
    return [
        *COMMAND,
        "--target",
        target,
        *LENGTHS,
        "--output-dir",
        str(folder),
        "--outputs",
        "7.dual_json",
        *more,
    ]


def points(folder: Path) -> list[dict[str, Any]]:
    """The summaries of the points, in the order of their numbers."""
    found = sorted(folder.glob("7__p*.json"), key=lambda path: int(path.stem.removeprefix("7__p")))
    assert [path.name for path in found] == [f"7__p{number}.json" for number in range(len(found))]
    return [json.loads(path.read_text()) for path in found]


def load(summary: dict[str, Any]) -> float | None:
    """The load of a point as GPUStack reads it; None: it recommends no such point."""
    strategy = at(summary, "benchmarks.0.config.strategy")
    found: float | None = (
        strategy.get("streams") if strategy["type_"] == "concurrent" else strategy["rate"]
    )
    return found


def ramp(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "7__ramp.json").read_text())
    return found


def test_points_are_in_the_order_of_the_search_and_all_can_be_read(
    simulator: str, tmp_path: Path
) -> None:
    done = loadgen(*flags(simulator, tmp_path, *STREAMS, "--max-points", "4"), timeout_s=300)
    assert done.returncode == 0, done.stderr
    found = points(tmp_path)
    loads = [summary["loadgen"]["load"] for summary in found]
    assert loads[:2] == [1, 2]
    assert len(loads) == len(set(loads)) == 4
    for summary in found:
        assert load(summary) == (summary["loadgen"]["load"] if summary["loadgen"]["met"] else None)
    assert load(found[0]) == 1
    assert all(refusals(summary) == [] for summary in found)
    for summary in found:
        assert Path(summary["loadgen"]["records"]).exists()
    facts = ramp(tmp_path)
    assert [point["knob"] for point in facts["points"]] == loads
    assert facts["stop_reason"] in ("budget_points", "converged")
    assert f"{max(filter(None, map(load, found)))} request" in done.stdout


def test_a_load_that_failed_has_no_load_for_gpustack(limited: str, tmp_path: Path) -> None:
    done = loadgen(*flags(limited, tmp_path, *STREAMS, "--max-points", "8"), timeout_s=300)
    assert done.returncode == 0, done.stderr
    found = points(tmp_path)
    best = max((one for one in found if load(one)), key=lambda one: at(one, TOKENS_PER_S))
    assert load(best) == LIMIT
    assert at(best, f"{TOTALS}.errored") == 0
    failed = [one for one in found if at(one, f"{TOTALS}.errored")]
    assert failed
    assert not any(load(one) for one in failed)


def test_range_is_hard_at_both_ends(simulator: str, tmp_path: Path) -> None:
    bounds = ("--axis", "concurrency", "--lower-bound", "2", "--upper-bound", "3")
    done = loadgen(*flags(simulator, tmp_path, *bounds), timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert [summary["loadgen"]["load"] for summary in points(tmp_path)] == [2, 3]
    assert ramp(tmp_path)["stop_reason"] == "upper_bound"


def test_limit_that_no_load_meets_is_an_answer(simulator: str, tmp_path: Path) -> None:
    done = loadgen(*flags(simulator, tmp_path, *STREAMS, "--sla-avg-ttft-ms", "1"), timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert [load(summary) for summary in points(tmp_path)] == [None]
    assert ramp(tmp_path)["slo_bracket"] == [None, 1]


def test_time_ends_a_search_within_a_run(simulator: str, tmp_path: Path) -> None:
    rate = ("--lower-bound", "2", "--max-total-seconds", "3")
    done = loadgen(*flags(simulator, tmp_path, *rate), timeout_s=300)
    assert done.returncode == 3, done.stderr  # no load was found
    facts = ramp(tmp_path)
    assert facts["stop_reason"] == "budget_seconds"
    assert facts["elapsed_seconds"] < 20
    assert [load(summary) for summary in points(tmp_path)] == [None]


def test_interrupted_search_keeps_its_points_and_does_not_say_that_it_ended(
    simulator: str, tmp_path: Path
) -> None:
    process = start(*flags(simulator, tmp_path, *STREAMS))
    hear(process, lambda line: "2 in flight: met" in line)
    hear(process, lambda line: ended(line) > 0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert [load(summary) for summary in points(tmp_path)][:2] == [1, 2]
    assert not (tmp_path / "7__ramp.json").exists()


def test_search_that_cannot_begin_leaves_nothing(simulator: str, tmp_path: Path) -> None:
    done = loadgen(*flags(simulator, tmp_path, *STREAMS, "--processor", "/nowhere/tokenizer.json"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("loadgen benchmark-runner: --processor: ")
    assert list(tmp_path.glob("7__*.json")) == []


def test_saturation_stops_a_run_if_asked(tmp_path: Path) -> None:
    run = (
        "--profile",
        "constant",
        "--rate",
        "200",
        "--max-requests",
        "20000",
        "--detect-saturation",
    )
    command = [word for word in flags("URL", tmp_path, *run) if word != "--auto-tune"]
    with served("--max-num-seqs", "4") as (url, _):  # 62 req/s
        done = loadgen(*[word.replace("URL", url) for word in command], timeout_s=300)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "7.json").read_text())
    assert 200 < at(summary, f"{TOTALS}.successful") < 10_000
    assert "requests pile up" in summary["loadgen"]["partial"]
