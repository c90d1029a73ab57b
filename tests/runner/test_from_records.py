"""A result made from the records of a run equals the result that the run printed."""

from itertools import islice

import pytest

from loadgen import report
from loadgen.checks import Verdict
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings, seed_of
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.records.file import RecordFile, RecordWriter, write_trailer
from loadgen.metrics.records.shards import shard_path
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import LoopTotals
from loadgen.runner.run_result import conclude, from_records, kept_records
from loadgen.util.files import create_private
from loadgen.util.partition import Partition
from loadgen.workload.arrivals import Schedule
from tests.helpers.run_facts import MS, START, failed, heading, shard, steady, unsent

SETTINGS = RunSettings(
    request_rate=100.0,
    num_prompts=40,
    slo="ttft_p99<1s",
    goodput=("ttft:25",),
    header=("X-Key=hunter2",),
).checked()
SCHEDULE = Schedule.from_settings(SETTINGS, seed_of(SETTINGS, "arrivals"))
HEADING = heading(SETTINGS, SCHEDULE)


def due_ms(index):
    return int(SCHEDULE.due_ns[index]) / MS


def records():
    for index in range(36):
        yield steady(index, due=due_ms(index), ttft=20 + index % 9, n=1 + index % 5)
    yield unsent(36, due=due_ms(36))
    for index, outcome in enumerate((Outcome.STATUS, Outcome.TRUNCATED, Outcome.STALLED), 37):
        yield failed(index, outcome, due=due_ms(index))


def run(path, ended=40, *, partial=None, to_its_end=True):
    """A run of which so many requests ended; returns its result and leaves its records in
    `path`.
    """
    recorder = Recorder.from_settings(SETTINGS, START, 40)
    with RecordWriter.optional(path) as writer:
        writer.begin(HEADING, START, 40, [])
        for record, _ in zip(records(), range(ended), strict=False):
            recorder.add(record)
            writer.write(record)
    recorder.waits["loop_stall"].record(MS)
    recorder.add_never_sent(ended, 40 - ended, Outcome.CANCELLED, partial or "")
    trailer = RunTrailer(workers=(shard(SCHEDULE),), never_sent=tuple(recorder.never_sent))
    measurement = Measurement(recorder.snapshot(partial), trailer)
    if to_its_end:
        write_trailer(path, trailer, LoopTotals.of(measurement.snapshot))
    return conclude(HEADING, SCHEDULE, measurement, islice(records(), ended))


def test_the_records_of_a_whole_run_make_its_result_again(tmp_path):
    result = run(tmp_path / "records.jsonl")
    assert report.render(from_records(tmp_path / "records.jsonl")) == report.render(result)


def test_a_run_is_explained_by_its_records(tmp_path):
    path = tmp_path / "records.jsonl"
    run(path)
    explain = from_records(path).explain
    assert explain is not None
    assert (explain.requests, explain.others) == (36, 4)
    assert explain.answer == "Not determined: 36 requests are too few, 50 are needed."


def test_records_that_were_not_kept_explain_nothing(tmp_path):
    trailer = RunTrailer(workers=(shard(SCHEDULE),))
    measurement = Measurement(Recorder.from_settings(SETTINGS, START, 40).snapshot(None), trailer)
    assert kept_records(None, measurement) == ()
    assert kept_records(tmp_path / "none.jsonl", measurement) == ()
    (tmp_path / "broken.jsonl").write_text("{}\n")
    assert kept_records(tmp_path / "broken.jsonl", measurement) == ()


def test_the_records_of_an_interrupted_run_make_its_result_again(tmp_path):
    result = run(tmp_path / "records.jsonl", ended=30, partial="interrupted")
    again = from_records(tmp_path / "records.jsonl")
    assert report.render(again) == report.render(result)
    assert again.data["loadgen"]["outcomes"]["cancelled"] == 10


def test_records_without_an_end_make_a_partial_report_that_is_invalid(tmp_path):
    whole = run(tmp_path / "records.jsonl", to_its_end=False)
    again = from_records(tmp_path / "records.jsonl")
    assert again.data["completed"] == whole.data["completed"]
    for name in ("ttft_due", "e2el_sent", "tpot", "itl", "icl", "lag"):
        assert again.snapshot.histograms[name] == whole.snapshot.histograms[name]
    assert "had ended when the records stopped" in again.data["loadgen"]["partial"]


def test_partial_run_is_invalid_and_omits_unknown_facts(tmp_path):
    run(tmp_path / "records.jsonl", ended=30, to_its_end=False)
    again = from_records(tmp_path / "records.jsonl")
    assert again.verdict is Verdict.INVALID
    assert "PARTIAL: 30 of 40 requests had ended when the records stopped." in report.render(again)
    assert "10 of 40 requests: 30 outcomes" in report.render(again)
    assert "n/a busy" not in report.render(again)
    assert "Client: 0 requests waited for a connection" in report.render(again)
    assert again.data["loadgen"]["client"]["warm_connections"] is None


def test_records_without_the_last_line_are_doubted_though_all_requests_ended(tmp_path):
    whole = run(tmp_path / "records.jsonl", to_its_end=False)
    again = from_records(tmp_path / "records.jsonl")
    assert "client unseen" not in [check.name for check in whole.failed_checks]
    assert "client unseen" in [check.name for check in again.failed_checks]
    assert again.verdict is not Verdict.VALID
    assert "ended early" not in report.summary_line(again)


def test_a_killed_run_has_its_lines_of_json_once_it_is_recovered(tmp_path):
    path = tmp_path / "records.jsonl"
    settings = SETTINGS.replace(records=str(path))
    with RecordWriter.optional(path) as writer:
        writer.begin(heading(settings, SCHEDULE), START, 40, [])
        for record, _ in zip(records(), range(30), strict=False):
            writer.write(record)
        writer.flush()
        first = from_records(path)
        assert RecordFile(path).is_journal  # the run goes on
    assert report.render(from_records(path)) == report.render(first)
    assert not RecordFile(path).is_journal
    assert path.read_bytes().count(b"\n") == 32
    assert report.render(from_records(path)) == report.render(first)
    assert "PARTIAL: 30 of 40 requests had ended when the records stopped." in report.render(first)


def test_journals_of_a_killed_run_of_two_workers_become_one_file(tmp_path):
    path = tmp_path / "records.jsonl"
    settings = SETTINGS.replace(records=str(path))
    for number in range(2):
        with RecordWriter.optional(shard_path(path, number)) as writer:
            writer.begin(heading(settings, SCHEDULE), START, 40, [], None, Partition(number, 2))
            for record in islice(records(), number, 30, 2):
                writer.write(record)
    with create_private("--records", shard_path(path, 2)):  # any that is written may be the run's
        from_records(path)
        assert RecordFile(path).is_journal
    shard_path(path, 2).unlink()
    first = report.render(from_records(path))
    assert list(tmp_path.iterdir()) == [path]
    assert report.render(from_records(path)) == first
    assert "PARTIAL: 30 of 40 requests had ended when the records stopped." in first


def test_a_worker_that_left_no_journal_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    settings = SETTINGS.replace(records=str(path))
    with RecordWriter.optional(path) as writer:
        writer.begin(heading(settings, SCHEDULE), START, 40, [], None, Partition(0, 2))
        for record in islice(records(), 0, 30, 2):
            writer.write(record)
    text = report.render(from_records(path))
    assert "worker 2 left no records" in text
    assert "PARTIAL: 15 of 40" in text
    assert RecordFile(path).is_journal  # the worker may be at it still


def test_a_result_is_no_file_of_records(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(BadInput, match="file of records"):
        from_records(tmp_path / "result.json")


def test_server_text_is_kept_in_records_and_escaped_when_shown(tmp_path, capsys):
    said = "\x9b31mred\x9d0;title\x07\u202eexe.gnp\u2066\x1b[2J"
    path = tmp_path / "run.jsonl"
    with RecordWriter.optional(path) as writer:
        writer.begin(HEADING, START, 40, [])
        writer.write(failed(0, Outcome.STATUS, due=due_ms(0), detail=said))
    assert said.encode()[:4] in path.read_bytes()
    assert dispatch(["report", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "exe.gnp" in out
    assert all(line.isprintable() for line in (out + err).split("\n"))
