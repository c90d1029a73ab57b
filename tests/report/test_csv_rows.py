"""CSV: runs and requests as rows with stable columns, plain values and escaped text."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.shards import shard_path
from loadgen.report import csv_rows, from_dict, to_json
from loadgen.runner.run_result import from_records
from loadgen.util.partition import WHOLE, Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers import run_facts, saved_json
from tests.helpers.run_facts import START, answered, failed, result, steady, unsent
from tests.helpers.source import ROOT

RUN = [steady(i, due=i * 100, ttft=20 + i, gap=10, n=5) for i in range(24)]
RUNS, REQUESTS = ROOT / "docs/result.md", ROOT / "docs/records.md"  # under "As CSV"
Rows = list[dict[str, str]]


def read(text: str) -> Rows:
    """What a reader of CSV makes of it."""
    return list(csv.DictReader(text.splitlines(keepends=True), strict=True))


def run_table(*results: dict[str, Any]) -> Rows:
    rows = csv_rows.run_rows("r.json", map(from_dict, results))
    return read("".join(csv_rows.lines(csv_rows.run_columns(rows), rows)))


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """Writes records as a run that went on leaves them."""

    def write(
        records: list[Any], name: str = "r.jsonl", *, partition: Partition = WHOLE, **options: Any
    ) -> Path:
        path = tmp_path / name
        settings = RunSettings(request_rate=100.0, num_prompts=24, **options).checked()
        with RecordWriter.optional(path) as writer:
            assert writer is not None
            heading = run_facts.heading(settings, Schedule.from_settings(settings, 0))
            writer.begin(
                heading, START, 24, [f"prompt {n}" for n in range(24)], partition=partition
            )
            for record in records:
                writer.write(record)
        return path

    return write


def requests(path: Path) -> Rows:
    return read("".join(csv_rows.lines(csv_rows.REQUEST_COLUMNS, csv_rows.request_rows(str(path)))))


# -- runs


def test_a_run_is_a_row_of_what_its_result_says() -> None:
    made = result(RUN, RunSettings(slo="ttft_p99<1s"), prompts={"sha256": "ab"})
    (row,) = run_table(made)
    for name in csv_rows.VLLM_COLUMNS:
        assert row[name] == ("" if made[name] is None else str(made[name])), name
    own = made["loadgen"]
    assert float(row["lag_p99_ms"]) == own["latency_ms"]["lag"]["p99"]
    assert float(row["ttft_due_max_ms"]) == own["latency_ms"]["ttft_due"]["max"]
    assert (row["file"], row["verdict"], row["prompts_sha256"]) == ("r.json", own["verdict"], "ab")
    assert (row["slo_met"], row["simulated"], row["client_busy_share"]) == ("true", "false", "0.25")


def test_columns_are_stable_and_extra_ones_come_last() -> None:
    asked = RunSettings(metric_percentiles="50,99.9", metadata=("gpu=H100", "verdict=GOOD"))
    assert list(run_table(result([]))[0]) == list(csv_rows.RUN_COLUMNS)
    first, second = run_table(result(RUN), result(RUN, asked))
    further = [
        f"{p}_{metric}_ms" for metric in ("ttft", "tpot", "itl", "e2el") for p in ("p50", "p99.9")
    ]
    assert [name for name in first if name not in csv_rows.RUN_COLUMNS] == [
        "metadata.gpu",
        "metadata.verdict",
        *further,
    ]
    assert (first["metadata.gpu"], second["metadata.gpu"], second["metadata.verdict"]) == (
        "",
        "H100",
        "GOOD",
    )
    assert (first["p99_ttft_ms"], second["p99_ttft_ms"]) == (str(result(RUN)["p99_ttft_ms"]), "")


def test_why_a_run_is_not_valid_is_one_text() -> None:
    wrong = [
        run_facts.Check(name, False, "1", "0", "mend", group="B") for name in ("late", "early")
    ]
    (row,) = run_table(result(RUN, checks=wrong))
    assert (row["verdict"], row["reasons"]) == ("SUSPECT", "late: 1; early: 1")


def test_extra_key_of_the_result_is_a_plain_column() -> None:
    made = result(RUN) | {"a key of a later version": "x"}
    (row,) = run_table(made)
    assert row["a key of a later version"] == "x"


def test_a_series_has_a_row_for_each_of_its_runs_with_what_it_tells_of_them() -> None:
    data = saved_json.begun("sweep", "rate", None, "due")
    for rate in (2.0, 4.0):
        run = run_facts.measured(RUN)
        made = run_facts.result(run, RunSettings(request_rate=rate, metadata=("gpu=H100",)))
        data["points"].append(saved_json.point(rate, made, run, limits=None, saved=[]))
    rows = run_table(data)
    assert [row["request_rate"] for row in rows] == ["2.0", "4.0"]
    assert {row["metadata.gpu"] for row in rows} == {"H100"}
    assert {row["completed"] for row in rows} == {"24"}
    assert {row["lag_p99_ms"] for row in rows} == {""}


# -- requests


def test_a_request_is_a_row_in_ms(recorded: Callable[..., Path]) -> None:
    counts = {"prompt_tokens": 12, "completion_tokens": 4}
    record = answered(
        7, due=100, ready=102, connect=3, tokens=[125, 135, 165], counts=counts, closed=170
    )
    (row,) = requests(recorded([record]))
    told = {name: float(row[name]) for name in row if name.endswith("_ms")}
    assert told == {
        "due_ms": 100,
        "ready_ms": 2,
        "sent_ms": 5,
        "connect_ms": 3,
        "first_byte_ms": 25,
        "closed_ms": 70,
        "ttft_due_ms": 25,
        "ttft_sent_ms": 20,
        "ttfo_due_ms": 25,
        "ttfo_sent_ms": 20,
        "e2el_due_ms": 70,
        "e2el_sent_ms": 65,
        "tpot_ms": 15,
        "icl_max_ms": 30,
        "lag_ms": 0,
    }
    assert (row["index"], row["source"], row["outcome"], row["events"]) == (
        "7",
        "prompt 7",
        "ok",
        "4",
    )
    assert (row["prompt_tokens"], row["output_tokens"], row["planned_input_tokens"]) == (
        "12",
        "4",
        "10",
    )


def test_latencies_of_requests_are_those_of_the_result(recorded: Callable[..., Path]) -> None:
    path = recorded(RUN)
    latency, rows = from_records(path).data["loadgen"]["latency_ms"], requests(path)
    for name in ("ttft_due", "ttft_sent", "ttfo_due", "tpot", "e2el_due", "e2el_sent", "lag"):
        values = [float(row[f"{name}_ms"]) for row in rows]
        assert (min(values), max(values)) == (latency[name]["min"], latency[name]["max"]), name
    assert max(float(row["icl_max_ms"]) for row in rows) == latency["icl"]["max"]


def test_a_request_that_failed_has_what_it_came_to_and_no_pace(
    recorded: Callable[..., Path],
) -> None:
    cut, never = requests(recorded([failed(0, Outcome.TRUNCATED), unsent(1)]))
    assert (cut["outcome"], cut["ttft_due_ms"], cut["tpot_ms"], cut["output_tokens"]) == (
        "truncated",
        "20.0",
        "",
        "",
    )
    assert (never["outcome"], never["sent_ms"], never["lag_ms"], never["ttft_sent_ms"]) == (
        "dns_error",
        "",
        "",
        "",
    )


def test_an_answer_in_one_piece_has_no_times_of_tokens(recorded: Callable[..., Path]) -> None:
    (row,) = requests(recorded([steady(0)], disable_stream=True))
    assert [row[name] for name in csv_rows.OF_STREAMS] == [""] * len(csv_rows.OF_STREAMS)
    assert float(row["e2el_sent_ms"]) > 0


def test_requests_of_workers_whose_run_came_to_no_end_are_all_there(
    recorded: Callable[..., Path],
) -> None:
    path = recorded(RUN[:3], partition=Partition(0, 2))
    recorded(RUN[3:6], shard_path(path, 1).name, partition=Partition(1, 2))
    assert [row["index"] for row in requests(path)] == ["0", "1", "2", "3", "4", "5"]


# -- what a reader makes of it


def test_csv_follows_rfc_4180() -> None:
    rows = [{"a": 'say "no", twice', "b": -1.5, "c": None, "d": True}]
    assert list(csv_rows.lines("abcd", rows)) == [
        '"a","b","c","d"\r\n',
        '"say ""no"", twice",-1.5,"","true"\r\n',
    ]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1+1", '=cmd|"/c calc"!A0', "-"]
)
def test_a_text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(text: str) -> None:
    (row,) = read("".join(csv_rows.lines("a", [{"a": text}])))
    assert row["a"] == f"'{text}"


def test_text_has_line_ends_and_control_characters_escaped(recorded: Callable[..., Path]) -> None:
    (row,) = requests(recorded([failed(0, Outcome.STATUS, detail="\t=1\r\n\x1b[2J\u202e")]))
    assert row["detail"] == r"\t=1\r\n\x1b[2J\u202e"


# -- the command


def test_the_command_writes_runs_of_several_files_or_requests(
    tmp_path: Path, recorded: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.jsonl"
    one.write_text(to_json(result(RUN)))
    two.write_text(f"{to_json(result(RUN))}\n{to_json(result([]))}\n")
    assert dispatch(["report", str(one), str(two), "--csv", "-"]) == 0
    assert [row["file"] for row in read(capsys.readouterr().out)] == [str(one), str(two), str(two)]
    assert dispatch(["report", str(recorded(RUN)), "--csv", str(tmp_path / "r.csv")]) == 0
    assert len(read((tmp_path / "r.csv").read_text())) == len(RUN)
    assert capsys.readouterr().out == ""


def test_reports_of_several_files_are_printed_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(to_json(result(RUN)))
    assert dispatch(["report", "--json", *[str(tmp_path / "r.json")] * 2]) == 0
    assert [json.loads(line)["completed"] for line in capsys.readouterr().out.splitlines()] == [
        24,
        24,
    ]


def test_refused_output_is_one_line(
    tmp_path: Path, recorded: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    records, saved = recorded(RUN), tmp_path / "r.json"
    saved.write_text(to_json(result(RUN)))
    broken = tmp_path / "broken.json"
    broken.write_text('{"loadgen": {"schema": 1}}')
    for words, said in (
        (
            [saved, records, "--csv", "-"],
            f"{records} has a row for each request, {saved} one for each run;",
        ),
        ([saved, "--csv", saved], f"--csv: {saved} is the file that is to be read; name another"),
        (
            [saved, "--csv", tmp_path],
            f"--csv: {tmp_path} cannot be written (Is a directory); choose another path",
        ),
        ([saved, "--csv", "-", "--json"], "--json: not allowed with argument --csv;"),
        ([records, "--csv", "-", "--html", "x.html"], "--html: cannot be combined with --csv;"),
        (
            [records, "--csv", "-", "--as", "aiperf"],
            "--csv: cannot be combined with --as, which only prints;",
        ),
        (
            [broken, "--csv", "-"],
            f"{broken} is not a whole loadgen result (ValueError: Object missing required field "
            "`verdict`);",
        ),
        (
            [saved, broken, saved, "--csv", "-"],
            f"{broken} is not a whole loadgen result (ValueError: Object missing required field "
            "`verdict`);",
        ),
        (
            [saved, broken, saved, "--html", "x.html"],
            f"{broken} is not a whole loadgen result (ValueError: ",
        ),
        ([tmp_path / "none", "--csv", "-"], f"{tmp_path / 'none'}: No such file or directory;"),
    ):
        assert dispatch(["report", *map(str, words)]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith(f"loadgen report: {said}")
        assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert saved.read_text() == to_json(result(RUN))


def test_the_documents_name_every_column() -> None:
    of_runs, of_requests = (
        set(re.findall(r"`([\w.]+)`", page.read_text().partition("\n## As CSV\n")[2]))
        for page in (RUNS, REQUESTS)
    )
    assert set(csv_rows.REQUEST_COLUMNS) <= of_requests
    own = {*csv_rows.LOADGEN_COLUMNS} - {*csv_rows.LATENCY_COLUMNS}
    assert own | {"file", "reasons", "slo_met", "prompts_sha256"} <= of_runs
