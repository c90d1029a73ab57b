"""`loadgen verify` finds what was changed in a result or its records, and nothing in whole ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.verify import findings
from loadgen.lab.verify.figures import columns, counts
from loadgen.lab.verify.records import NotVerifiable, Record, Run, read, read_result
from tests.helpers.command_line import loadgen

pytestmark = pytest.mark.integration
LOAD = ["--rate", "60", "--num-prompts", "40", "--seed", "7"]
LENGTHS = ["--random-input-len", "16", "--random-output-len", "6"]
SIM = ["--engine", "sim", *LOAD, *LENGTHS]
CLOSED = ["--engine", "sim", "--max-concurrency", "4", "--num-prompts", "24", *LENGTHS]
SAVED = ["--save-result", "--result-filename", "run.json"]
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


def hash_of_a_worker_left_out(records: list[Json], result: Json) -> None:
    del result["loadgen"]["workers"][0]["schedule_sha256"]


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
    (hash_of_a_worker_left_out, "another schedule than the run's"),
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
    said = capsys.readouterr().err
    assert "the run was cut short" in said
    assert f"read what is left of it with `loadgen report {tmp_path / 'cut.jsonl'}`" in said


def test_the_command_answers_and_says_what_it_cannot_check_by_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["verify", str(folder / "run.jsonl"), str(folder / "run.json")]) == 0
    answer, *rest = capsys.readouterr().out.splitlines()
    assert answer.startswith("verify: 0 differences; ")
    assert all(line.startswith("not checked: ") for line in rest)
    reasons = [line.rpartition(": ")[2] for line in rest[:-1]]
    assert len(reasons) == len({*reasons})
    assert rest[-1].startswith("not checked: that the records are true")


def test_requests_that_were_never_sent_are_cancelled(tmp_path: Path) -> None:
    load = ["--engine", "sim", "--rate", "60", "--num-prompts", "300", *LENGTHS]
    ends = ["--stop-when", "ttft_p50>1ms over 1s", "--records", "run.jsonl"]
    done = loadgen("run", *load, *ends, *SAVED, "--quiet", cwd=tmp_path)
    assert (tmp_path / "run.json").exists(), done.stderr
    run, result = read(tmp_path / "run.jsonl"), read_result(tmp_path / "run.json")
    assert run.never_sent == result["loadgen"]["outcomes"]["cancelled"] > 1
    assert findings.verified(run, result).problems == []


def test_a_request_that_the_end_of_the_run_cut_off_did_not_fail(folder: Path) -> None:
    whole = read(folder / "run.jsonl")
    cut_off = Record({**whole.records[0].line, "outcome": "cancelled"})
    failed = Record({**whole.records[1].line, "outcome": "truncated"})
    run = Run(whole.head, [cut_off, failed, *whole.records[2:]], whole.end)
    in_columns = columns(run, 10**9)
    per_column = [n or 0 for path, n in in_columns.items() if ".timeline.failed." in path]
    assert sum(per_column) == counts(run)["failed"] == 1


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (0, {"loadgen_records": 1}, "has loadgen_records 1, and this verify knows 2"),
        (0, {"scheduled": None}, "line 1: scheduled is null or missing, not an integer"),
        (3, {"sent": "abc"}, "line 4: sent is 'abc', not an integer"),
        (3, {"index": None}, "line 4: index is null or missing"),
        (3, {"token_times": [1.5]}, "line 4: token_times.0 is Decimal('1.5'), not an integer"),
        (3, {"tokens_per_event": [1]}, "line 4: tokens_per_event has 1 items, token_times 6"),
        (-1, {"end": None}, "end is null or missing, not an object"),
    ],
)
def test_a_line_that_is_none_of_records_is_named(
    folder: Path, tmp_path: Path, number: int, change: Json, said: str
) -> None:
    records, result = files(folder)
    records[number] |= change
    with pytest.raises(NotVerifiable) as refused:
        problems(records, result, tmp_path)
    assert said in refused.value.problem
    assert "changed.jsonl" in refused.value.problem


@pytest.mark.parametrize("line", ["[]", "{}", "nonsense"])
def test_a_foreign_line_is_named(folder: Path, tmp_path: Path, line: str) -> None:
    first, *_, last = (folder / "run.jsonl").read_text().splitlines()
    (tmp_path / "changed.jsonl").write_text("\n".join([first, line, last]))
    with pytest.raises(NotVerifiable, match=r"changed\.jsonl: line 2"):
        read(tmp_path / "changed.jsonl")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({}, "has no loadgen.schema, and this verify knows 1"),
        ({"schema": 99}, "has loadgen.schema 99, and this verify knows 1"),
        ({"schema": "x"}, "has loadgen.schema 'x', and this verify knows 1"),
        ({"schema": 1}, "loadgen.verdict is null or missing, not a text"),
    ],
)
def test_a_result_that_is_not_whole_or_not_of_this_version_is_refused(
    tmp_path: Path, own: Json, said: str
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"loadgen": own}))
    with pytest.raises(NotVerifiable, match=f"run\\.json.* ?{said}"):
        read_result(tmp_path / "run.json")


@pytest.mark.parametrize("text", ["null", "[1]", "", "{}"])
def test_a_file_without_records_is_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "null.json").write_text(text)
    assert dispatch(["verify", str(tmp_path / "null.json")]) == 2
    said = capsys.readouterr().err
    assert "null.json: line 1 is not" in said
    assert len(said.splitlines()) == 1


def test_a_missing_file_is_said_as_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["verify", "nofile.jsonl"]) == 2
    assert capsys.readouterr().err == (
        "loadgen verify: nofile.jsonl: No such file or directory; name a file that can be read\n"
    )
