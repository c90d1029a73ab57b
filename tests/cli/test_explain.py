"""`loadgen explain` reads records and results, and refuses what explains nothing."""

import contextlib
from pathlib import Path

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


def recorded(path: Path, planted: list[Record], scheduled: int | None = None) -> str:
    """Write the records of a run; where more requests were scheduled, without their last line."""
    count = scheduled or len(planted)
    settings = RunSettings(request_rate=8.0, num_prompts=count).checked()
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
    recorder = Recorder.from_settings(settings, START_NS, len(planted))
    with RecordWriter.optional(path) as writer:
        assert writer is not None
        writer.begin(heading(settings, schedule), START_NS, count, [])
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
