"""`loadgen explain` reads records and results, and refuses what explains nothing."""

import contextlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.cli import exit_codes
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.record import Record
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordWriter, write_trailer
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals
from loadgen.workload.arrivals import Schedule
from tests.helpers.planted_records import START_NS, records, served
from tests.helpers.run_facts import heading, shard


def recorded(
    path: Path, planted: list[Record], scheduled: int | None = None, **settings: Any
) -> str:
    """Write the records of a run; where more requests were scheduled, without their last line."""
    count = scheduled or len(planted)
    run = RunSettings(request_rate=8.0, num_prompts=count, **settings).checked()
    schedule = Schedule.from_settings(run, seed_of(run, "arrivals"))
    recorder = Recorder.from_settings(run, START_NS, len(planted))
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(heading(run, schedule), START_NS, count, [])
        for record in planted:
            recorder.add(record)
            writer.write(record)
    trailer = RunTrailer(workers=(shard(schedule),))
    if scheduled is None:
        write_trailer(path, trailer, LoopTotals.of(recorder.snapshot(None)))
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert dispatch(["explain", *words]) == 0
    return capsys.readouterr().out


def test_records_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path / "run.jsonl", records(served(max_num_seqs=3)))
    text = " ".join(said(capsys, path).split())
    assert text.startswith("- Requests waited ")
    assert (
        "-> raise the limit of running requests if the KV cache has room, or add a replica. "
        "Predicted of 6 slots for 3: TTFT p50 "
    ) in text


def test_a_saved_result_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path / "run.jsonl", records(served()))
    with contextlib.suppress(SystemExit):
        dispatch(["report", "--json", path])
    result = tmp_path / "result.json"
    result.write_text(capsys.readouterr().out)
    assert said(capsys, str(result)) == said(capsys, path)
    assert (
        orjson.loads(said(capsys, path, "--json"))
        == orjson.loads(result.read_bytes())["loadgen"]["explain"]
    )


def test_two_runs_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = recorded(tmp_path / "one.jsonl", records(served()))
    other = recorded(tmp_path / "other.jsonl", records(served(outside_ms=103.0)))
    assert said(capsys, one, other).splitlines()[0] == "- mean TTFT +100 ms: +100 outside"


def test_two_runs_that_do_not_differ_are_said_to_be_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "one.jsonl", records(served()))
    assert said(capsys, path, path).startswith("- Neither the mean TTFT nor the mean time after it")


def test_another_workload_is_no_change_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = recorded(tmp_path / "one.jsonl", records(served()))
    other = recorded(tmp_path / "other.jsonl", records(served()), max_concurrency=16)
    assert dispatch(["explain", one, other]) == exit_codes.DONE
    assert capsys.readouterr().err == (
        "loadgen: the workloads differ, too: --max-concurrency none and 16\n"
    )


def test_a_result_with_other_parts_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "run.jsonl", records(served()))
    with contextlib.suppress(SystemExit):
        dispatch(["report", "--json", path])
    saved = orjson.loads(capsys.readouterr().out)
    saved["loadgen"]["explain"]["part_kinds"] = {}
    result = tmp_path / "result.json"
    result.write_bytes(orjson.dumps(saved))
    assert dispatch(["explain", str(result)]) == exit_codes.BAD_INPUT
    assert "is not a whole loadgen result" in capsys.readouterr().err


def test_a_run_whose_answers_came_in_one_piece_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = records(served(count=3))
    for record in planted:
        record.is_whole = True
    path = recorded(tmp_path / "run.jsonl", planted)
    assert dispatch(["explain", path]) == exit_codes.BAD_INPUT
    assert capsys.readouterr().err == (
        f"loadgen explain: {path} has no request with the times of its tokens, or is of an earlier "
        "version; name the file of --records of a run that streams\n"
    )


def test_records_that_are_cut_off_or_repeated_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = records(served())
    path = recorded(tmp_path / "run.jsonl", [*planted[:-5], planted[0]], len(planted))
    assert dispatch(["explain", path]) == exit_codes.DONE
    count = len(planted)
    assert capsys.readouterr().err.splitlines() == [
        f"loadgen: {path}: PARTIAL: {count - 4} of {count} requests had ended when the records "
        "stopped",
        f"loadgen: {path}: requests not ended once: 5 of {count} requests: {count - 4} outcomes, "
        "1 of them repeated",
    ]
