"""Files of records: a journal with a row per request, and the lines of JSON that are made of it."""

import contextlib
import math
import sys
import time

import orjson
import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.file import RecordFile, RecordWriter, write_trailer
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util.trace_context import traceparent
from tests.helpers.record_kinds import (
    RECORDS,
    sent_to,
    spoken,
)
from tests.helpers.run_facts import (
    START,
    answered,
    failed,
)

HEADING = RunHeader(
    RunSettings(request_rate=math.inf, header=("A=b",)),
    "m",
    "20250102-030405",
    False,
    {"engine": {}},
)


TRAILER = RunTrailer(
    workers=(
        WorkerReport(client=ClientUsage(wall_s=1.5, disturbance="a hog"), schedule_sha256="0" * 64),
    ),
    never_sent=((1, 1),),
    facts={"tokenized": [[1, 8]], "sampled": [[0, 9]], "matching": {"some": 2}, "times_ns": [3, 4]},
)


TOTALS = LoopTotals(
    scheduled=2,
    warm_connections=3,
    repeated_prompts=0,
    turns_without_token=4,
    partial="interrupted",
    histograms={"gc_pause": Histogram()},
)


def as_lines(path):
    """Make lines of JSON of a journal, as the end of a run does; returns these."""
    assert write_trailer(path, TRAILER, TOTALS, str(path)) is None
    return path.read_bytes().splitlines()


@contextlib.contextmanager
def writing(path, sources=(), **options):
    with RecordWriter.optional(path, **options) as writer:
        writer.begin(HEADING, START, 7, list(sources))
        yield writer


def test_the_first_line_says_what_the_run_is_and_each_other_is_a_record(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path, ["x"]) as writer:
        writer.write(answered(0))
        writer.write(failed(1, Outcome.STATUS, detail="two\nlines"))
    first, *lines, _ = map(orjson.loads, as_lines(path))
    assert (first["start_ns"], first["scheduled"], first["heading"]["model"]) == (START, 7, "m")
    assert [line["index"] for line in lines] == [0, 1]
    assert (lines[0]["source"], lines[1]["detail"]) == ("x", "two\nlines")


def test_the_first_line_says_when_the_clock_started_since_1970(tmp_path):
    path = tmp_path / "records.jsonl"
    offset = time.time_ns() - time.monotonic_ns()
    with writing(path):
        pass
    assert RecordFile(path).start_unix_ns == pytest.approx(START + offset, abs=50_000_000)
    first = orjson.loads(as_lines(path)[0])
    assert first["start_unix_ns"] == RecordFile(path).start_unix_ns


def test_records_of_a_traced_run_have_the_ids_that_were_sent(tmp_path):
    path = tmp_path / "records.jsonl"
    heading = structs.replace(HEADING, provenance={"engine": {}, "trace_key": "ab" * 16})
    with RecordWriter.optional(path) as writer:
        writer.begin(heading, START, 1, [])
        writer.write(answered(7))
    line = orjson.loads(as_lines(path)[1])
    assert f"00-{line['trace_id']}-{line['span_id']}-01" == traceparent("ab" * 16, 7)


def test_secrets_are_not_in_the_file(tmp_path):
    path = tmp_path / "records.jsonl"
    heading = structs.replace(
        HEADING, settings=RunSettings(api_key="hunter2", header=("X-Key=hunter2",))
    )
    with RecordWriter.optional(path) as writer:
        writer.begin(heading, START, 1, [])
    assert b"hunter2" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def test_answer_text_is_written_only_if_asked(tmp_path):
    asked = structs.replace(HEADING, settings=RunSettings(save_detailed=True))
    for heading, found in ((HEADING, None), (asked, "xyz")):
        path = tmp_path / "records.jsonl"
        with RecordWriter.optional(path) as writer:
            writer.begin(heading, START, 1, [])
            writer.write(spoken(b"xyz"))
        assert [record.generated_text for record in RecordFile(path)] == [found or ""]
        assert orjson.loads(as_lines(path)[1]).get("answer") == found


def test_a_file_is_read_up_to_where_its_writing_was_cut_off(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        for index in range(3):
            writer.write(answered(index))
    journal = path.read_bytes()
    lines = b"\n".join(as_lines(path)[:-1]) + b"\n"
    for whole in (journal, lines):
        for cut in (1, 50):
            path.write_bytes(whole[:-cut])
            file = RecordFile(path)
            assert (file.header, file.start_ns, file.scheduled) == (shown(HEADING), START, 7)
            assert [record.index for record in file] == [0, 1]
            assert file.trailer is None


def test_a_journal_is_read_wherever_its_writing_was_cut_off(tmp_path):
    path = tmp_path / "records.jsonl"
    ends = []
    with writing(path) as writer:
        for record in RECORDS[5:]:
            ends.append(path.stat().st_size)
            writer.write(record)
            writer.flush()
    whole = path.read_bytes()
    for cut in range(ends[0], len(whole), 7):
        path.write_bytes(whole[:cut])
        count = sum(1 for end in ends[1:] if end <= cut)
        assert len(list(RecordFile(path))) == count
        # The end of the run is told though a row before it was cut off.
        write_trailer(path, TRAILER, TOTALS)
        file = RecordFile(path)
        assert (len(list(file)), file.trailer) == (count, TRAILER)


def test_a_journal_of_another_version_is_refused_in_one_line(tmp_path):
    path = tmp_path / "records.jsonl"
    heading = structs.replace(HEADING, provenance={"versions": {"loadgen": "7.8"}})
    with RecordWriter.optional(path) as writer:
        writer.begin(heading, START, 1, [])
        writer.write(answered())
    whole = path.read_bytes()
    for name, another in ((b'"due",', b'"die",'), (b'_journal":3', b'_journal":4')):
        path.write_bytes(whole.replace(name, another))
        with pytest.raises(BadInput, match=r"is a journal of loadgen 7\.8 that this") as caught:
            RecordFile(path)
        assert "\n" not in str(caught.value)


def shown(heading):
    """A heading as a file can hold it: without secrets, and with lists where JSON has no tuples."""
    return structs.replace(heading, settings=heading.settings.replace(header=("A=(given)",)))


def test_a_file_tells_what_the_run_ended_with(tmp_path):
    path = tmp_path / "records.jsonl"
    for lines in (None, str(path)):
        with writing(path) as writer:
            writer.write(answered(0))
            writer.write(answered(1))
        write_trailer(path, TRAILER, TOTALS, lines)
        file = RecordFile(path)
        assert (file.trailer, file.totals) == (TRAILER, TOTALS)
        assert [record.tokenized for record in file] == [-1, 8]


@pytest.mark.parametrize("name", ["scheduled", "facts", "shards", "histograms"])
def test_an_ending_that_lacks_something_is_refused(tmp_path, name):
    path = tmp_path / "records.jsonl"
    with writing(path):
        pass
    first, last = as_lines(path)
    told = orjson.loads(last)
    del told["end"][name]
    path.write_bytes(first + b"\n" + orjson.dumps(told) + b"\n")
    with pytest.raises(BadInput, match="the last line is no part"):
        RecordFile(path)


def test_a_second_run_in_the_file_is_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(answered())
    as_lines(path)
    assert len(list(RecordFile(path))) == 1
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(BadInput, match="line 4 comes after the end of the run"):
        list(RecordFile(path))


def test_a_file_of_records_is_told_by_its_first_line(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path):
        pass
    assert RecordFile.is_one(path)
    as_lines(path)
    assert RecordFile.is_one(path)
    path.write_text('{"loadgen": {}}\n')
    assert not RecordFile.is_one(path)
    with pytest.raises(BadInput, match="No such file"):
        RecordFile.is_one(tmp_path / "none")


def test_flushed_records_can_be_read_during_the_run(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(answered(0))
        writer.flush()
        assert len(list(RecordFile(path))) == 1


def test_a_file_never_grows_beyond_its_limit(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path, limit=6000) as writer:
        for index in range(100):
            writer.write(answered(index))
    assert writer.error == "the file has reached its limit"
    assert path.stat().st_size <= 6000
    assert len(list(RecordFile(path))) > 0


@pytest.mark.parametrize("version", [1, 9])
def test_records_of_another_version_are_refused_with_it(tmp_path, version):
    path = tmp_path / "other"
    path.write_text(f'{{"loadgen_records": {version}}}')
    with pytest.raises(BadInput) as caught:
        RecordFile(path)
    assert str(caught.value) == (
        f"{path} has records of version {version}, and this loadgen reads 2; "
        "read them with the loadgen that wrote them"
    )


@pytest.mark.parametrize("text", ["", "{}", "[]", "no JSON", '{"loadgen_records": 2}'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(BadInput, match="line 1"):
        RecordFile(path)


def test_a_start_that_is_no_number_is_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path):
        pass
    first, *rest = as_lines(path)
    start = orjson.loads(first) | {"start_unix_ns": "today"}
    path.write_bytes(b"\n".join((orjson.dumps(start), *rest)))
    with pytest.raises(BadInput, match="line 1"):
        RecordFile(path)


@pytest.mark.parametrize("target", [-1, 1])
def test_a_target_that_the_run_does_not_have_is_refused(tmp_path, target):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(sent_to(target, answered()))
    with pytest.raises(BadInput, match="the row at byte"):
        list(RecordFile(path))
    with writing(path) as writer:
        writer.write(answered())
    path.write_bytes(b"\n".join(as_lines(path)).replace(b'"target":0', b'"target":%d' % target))
    with pytest.raises(BadInput, match="line 2"):
        list(RecordFile(path))


def test_a_line_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(answered(0))
    first, line, _ = as_lines(path)
    path.write_bytes(b"\n".join((first, line, b'{"index": 1}\n')))
    with pytest.raises(BadInput, match="line 3"):
        list(RecordFile(path))


def test_a_row_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(answered(0))
    whole = path.read_bytes()
    for wrong in (bytes(8), (16).to_bytes(8, sys.byteorder) + bytes(8), bytes(1000)):
        path.write_bytes(whole + wrong)
        with pytest.raises(BadInput, match=f"the row at byte {len(whole)} is no"):
            list(RecordFile(path))


def test_the_file_is_whole_also_after_an_error(tmp_path):
    path = tmp_path / "records.jsonl"
    with contextlib.suppress(RuntimeError), writing(path) as writer:
        writer.write(answered(0))
        raise RuntimeError
    assert len(list(RecordFile(path))) == 1


def test_facts_of_features_stand_in_the_last_line_as_they_are(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path) as writer:
        writer.write(answered(0))
    write_trailer(path, TRAILER, TOTALS, str(path))
    end = orjson.loads(path.read_bytes().splitlines()[-1])["end"]
    assert end["facts"] == TRAILER.facts


def test_parts_of_a_run_have_their_facts_together():
    other = structs.replace(
        TRAILER, facts={"tokenized": [[2, 5]], "matching": {"some": 1, "all": 3}}
    )
    assert TRAILER.merge(other).facts == {
        "tokenized": [[1, 8], [2, 5]],
        "sampled": [[0, 9]],
        "matching": {"some": 3, "all": 3},
        "times_ns": [3, 4],
    }
