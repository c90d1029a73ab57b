"""`loadgen verify` finds what was changed in a result or its records, and nothing in whole ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.verify import findings
from loadgen.lab.verify.records import read, read_result
from tests.helpers.command_line import loadgen

pytestmark = pytest.mark.integration
LOAD = ["--rate", "60", "--num-prompts", "40", "--seed", "7"]
LENGTHS = ["--random-input-len", "16", "--random-output-len", "6"]
SIM = ["--engine", "sim", *LOAD, *LENGTHS]
CLOSED = ["--engine", "sim", "--max-concurrency", "4", "--num-prompts", "24", *LENGTHS]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run at a rate, with its result and its records; and one of a closed loop."""
    path = tmp_path_factory.mktemp("run")
    for name, load in (("run", SIM), ("closed", CLOSED)):
        files = ["--records", f"{name}.jsonl", "--save-result", "--result-filename", f"{name}.json"]
        done = loadgen("run", *load, *files, "--quiet", cwd=path)
        assert (path / f"{name}.json").exists(), done.stderr
    return path


def problems(records: list[Json], result: Json, folder: Path) -> list[str]:
    """What is found in records and a result that are written into an empty folder."""
    lines, file = folder / "changed.jsonl", folder / "changed.json"
    lines.write_text("".join(json.dumps(line) + "\n" for line in records))
    file.write_text(json.dumps(result))
    return findings.verified(read(lines), read_result(file)).problems


def files(folder: Path, name: str = "run") -> tuple[list[Json], Json]:
    lines = (folder / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["run", "closed"])
def test_every_number_of_a_whole_run_is_computed_alike(folder: Path, name: str) -> None:
    run, result = read(folder / f"{name}.jsonl"), read_result(folder / f"{name}.json")
    verified = findings.verified(run, result)
    assert verified.problems == []
    assert verified.computed > 250


def token_later(records: list[Json], result: Json) -> None:
    records[3]["token_times"][2] += 100_000


def tokens_counted(records: list[Json], result: Json) -> None:
    records[3]["completion_tokens"] += 1


def failed_called_ok(records: list[Json], result: Json) -> None:
    records[4]["outcome"] = "truncated"


def record_left_out(records: list[Json], result: Json) -> None:
    del records[5]


def due_moved(records: list[Json], result: Json) -> None:
    records[6]["due"] += 1


def mean_improved(records: list[Json], result: Json) -> None:
    result["mean_ttft_ms"] *= 0.999


def percentile_improved(records: list[Json], result: Json) -> None:
    result["loadgen"]["latency_ms"]["e2el_due"]["p99"] *= 0.99


def throughput_raised(records: list[Json], result: Json) -> None:
    result["output_throughput"] *= 1.001


def count_raised(records: list[Json], result: Json) -> None:
    result["completed"] += 1


def verdict_improved(records: list[Json], result: Json) -> None:
    own = result["loadgen"]
    own["verdict"] = "INVALID" if own["verdict"] != "INVALID" else "VALID"


def check_called_met(records: list[Json], result: Json) -> None:
    check = next(each for each in result["loadgen"]["checks"] if each["measured"] is not None)
    check["measured"], check["ok"] = check["allowed"] + 1, True


def seed_changed(records: list[Json], result: Json) -> None:
    for provenance in (result["loadgen"]["provenance"], records[0]["heading"]["provenance"]):
        provenance["seeds"]["arrivals"] += 1


def hash_changed(records: list[Json], result: Json) -> None:
    result["loadgen"]["provenance"]["schedule"]["sha256"] = "0" * 64


def settings_changed(records: list[Json], result: Json) -> None:
    result["loadgen"]["provenance"]["settings"]["request_rate"] = "80"


CHANGES: list[tuple[Callable[[list[Json], Json], None], str]] = [
    (token_later, "latency_ms.icl"),
    (tokens_counted, "total_output_tokens"),
    (failed_called_ok, "completed"),
    (record_left_out, "in no record"),
    (due_moved, "schedule: the due times"),
    (mean_improved, "mean_ttft_ms"),
    (percentile_improved, "e2el_due.p99"),
    (throughput_raised, "output_throughput"),
    (count_raised, "completed"),
    (verdict_improved, "verdict: saved"),
    (check_called_met, "saved as met"),
    (seed_changed, "the seed of the arrivals does not draw it"),
    (hash_changed, "another schedule than the run's"),
    (settings_changed, "provenance.settings.request_rate"),
]


@pytest.mark.parametrize(
    ("change", "named"), CHANGES, ids=[change.__name__ for change, _ in CHANGES]
)
def test_a_planted_change_is_found(
    folder: Path, tmp_path: Path, change: Callable[[list[Json], Json], None], named: str
) -> None:
    records, result = files(folder)
    change(records, result)
    assert any(named in problem for problem in problems(records, result, tmp_path))


def test_a_run_that_was_cut_short_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, _ = files(folder)
    (tmp_path / "cut.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records[:-1]))
    assert dispatch(["verify", str(tmp_path / "cut.jsonl"), str(folder / "run.json")]) == 2
    assert "the run was cut short" in capsys.readouterr().err


def test_the_command_says_what_it_cannot_check(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["verify", str(folder / "run.jsonl"), str(folder / "run.json")]) == 0
    said = capsys.readouterr().out
    assert "not checked: that the records are true" in said
    assert said.endswith("verify: 0 differences\n")
