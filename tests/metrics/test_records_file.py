"""Files of records: a journal with a row per request, and the lines of JSON that are made of it."""

import contextlib
import math
import sys

import orjson
import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.core import event_flags
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.record import BY_EVENTS, Record
from loadgen.core.record_json import record_line
from loadgen.errors import BadInput
from loadgen.metrics.client_cpu_usage import ClientUsage
from loadgen.metrics.records.file import RecordFile, RecordWriter, write_trailer
from loadgen.metrics.records.header import RunHeader
from loadgen.metrics.records.json_lines import record_from_line
from loadgen.metrics.records.trailer import RunTrailer, WorkerReport
from loadgen.metrics.snapshot import LoopTotals
from loadgen.util.redaction import MARK, Redaction
from tests.helpers.response_bytes import delta
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    MS,
    START,
    answered,
    chunk,
    failed,
    planned,
    read,
    unsent,
)
from tests.helpers.source import ROOT

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
    tokenized={1: 8},
)
TOTALS = LoopTotals(
    scheduled=2,
    warm_connections=3,
    repeated_prompts=0,
    turns_without_token=4,
    partial="interrupted",
    histograms={"gc_pause": Histogram()},
)


def told(record, start_ns, source=None):
    """The JSON form of a record, read again."""
    record.source = source
    return orjson.loads(record_line(record, start_ns))


def as_lines(path):
    """Make lines of JSON of a journal, as the end of a run does; returns these."""
    assert write_trailer(path, TRAILER, TOTALS, str(path)) is None
    return path.read_bytes().splitlines()


@contextlib.contextmanager
def writing(path, sources=(), **options):
    with RecordWriter.optional(path, **options) as writer:
        writer.begin(HEADING, START, 7, list(sources))
        yield writer


def test_times_count_from_due_and_due_from_the_start():
    counts = {
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    counts["completion_tokens_details"] = {"reasoning_tokens": 1}
    record = answered(
        4,
        due=100,
        ready=110,
        connect=5,
        sent=116,
        reasoning=[130],
        tokens=[150],
        closed=160,
        counts=counts,
    )
    assert told(record, START, "b") == {
        "index": 4,
        "source": "b",
        "outcome": "ok",
        "detail": None,
        "finish_reason": "stop",
        "matched_stop": None,
        "planned_input_tokens": 10,
        "planned_output_tokens": 2,
        "target": 0,
        "status": 200,
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "cached_tokens": 8,
        "reasoning_tokens": 1,
        "due": 100 * MS,
        "ready": 10 * MS,
        "sent": 16 * MS,
        "written": None,
        "predicted_server_input_tokens": None,
        "connect": 5 * MS,
        "first_byte": 30 * MS,
        "first_token": 30 * MS,
        "first_answer": 50 * MS,
        "last_token": 50 * MS,
        "closed": 60 * MS,
        "reused": False,
        "by_reader": False,
        "window_filled": False,
        "reads": 2,
        "content_events": 1,
        "reasoning_events": 1,
        "other_events": 0,
        "nan_events": 0,
        "counted_by": BY_EVENTS,
        "tokens_per_event": None,
        "stream": [
            ["reasoning+choice", 1],
            ["content+choice", 1],
            ["choice+finish", 60 * MS],
            ["usage", 60 * MS],
        ],
        "token_times": [30 * MS, 50 * MS],
        "user_stamped": 0,
    }


def test_what_is_known_beside_the_stamps_comes_back() -> None:
    record = answered(4, due=100, tokens=[130, 150, 170])
    first, _, last = record.stamps
    record.written, record.user_stamped, record.window_filled = record.sent + 7, 1, True
    record.restore([], earliest=[(0, first - 3), (2, last - 2)], read_late=[5, 6, 7])
    line = told(record, START)
    assert line["earliest"] == [[0, 30 * MS - 3], [2, 70 * MS - 2]]
    assert line["first_answer_earliest"] == 30 * MS - 3
    assert line["read_late"] == [5, 6, 7]
    again = record_from_line(line, START)
    assert record_line(again, START) == record_line(record, START)
    assert again.earliest == record.earliest
    assert again.read_times == record.read_times
    assert again.first_answer_earliest == record.first_answer_earliest


def test_every_key_of_a_record_is_described():
    described = (ROOT / "docs" / "records.md").read_text()
    keys = told(leaving(sent_again(answered()), tokens=1, after_ns=1), START)
    assert [key for key in keys if f"`{key}`" not in described] == []
    assert [name for name in event_flags.NAMES if f"`{name}`" not in described] == []


def test_phases_that_did_not_happen_are_null():
    line = told(unsent(due=100, detail="no such host"), START)
    assert (line["outcome"], line["detail"]) == ("dns_error", "no such host")
    absent = (
        "source",
        "status",
        "sent",
        "first_byte",
        "first_token",
        "first_answer",
        "last_token",
        "finish_reason",
    )
    assert {name: line[name] for name in absent} == dict.fromkeys(absent)
    assert line["token_times"] == []


def test_a_stamp_is_told_whatever_its_number():
    record = Record(due=5)
    stamps = ("ready", "sent", "first_byte", "first_token", "first_answer", "last_token", "closed")
    for number, stamp in enumerate(stamps, 1):
        setattr(record, stamp, number << 32)
    record.outcome = Outcome.OK
    line = told(record, 0)
    assert [line[stamp] for stamp in stamps] == [
        (number << 32) - 5 for number, _ in enumerate(stamps, 1)
    ]


def test_finish_details_and_token_counts_are_read_back():
    counts = {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 6}}
    record = answered(counts=counts)
    record.matched_stop, record.nan_events = 151645, 2
    again = record_from_line(told(record, START), START)
    assert (again.reasoning_tokens, again.hidden_tokens, again.tpot_ns) == (6, 6, record.tpot_ns)
    assert (again.matched_stop, again.nan_events) == (151645, 2)


def test_tokens_not_counted_by_the_server_are_null():
    line = told(answered(), START)
    counts = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    assert [line[name] for name in counts] == [None] * 4


def test_a_failure_keeps_the_tokens_that_came():
    line = told(failed(0, Outcome.TRUNCATED, detail="reset"), START)
    assert (line["outcome"], len(line["token_times"])) == ("truncated", 2)


def test_the_first_line_says_what_the_run_is_and_each_other_is_a_record(tmp_path):
    path = tmp_path / "records.jsonl"
    with writing(path, ["x"]) as writer:
        writer.write(answered(0))
        writer.write(failed(1, Outcome.STATUS, detail="two\nlines"))
    first, *lines, _ = map(orjson.loads, as_lines(path))
    assert (first["start_ns"], first["scheduled"], first["heading"]["model"]) == (START, 7, "m")
    assert [line["index"] for line in lines] == [0, 1]
    assert (lines[0]["source"], lines[1]["detail"]) == ("x", "two\nlines")


def test_secrets_are_not_in_the_file(tmp_path):
    path = tmp_path / "records.jsonl"
    heading = structs.replace(
        HEADING, settings=RunSettings(api_key="hunter2", header=("X-Key=hunter2",))
    )
    with RecordWriter.optional(path) as writer:
        writer.begin(heading, START, 1, [])
    assert b"hunter2" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def spoken(content, *, keeps_answer=True):
    """A record whose answer is this, as the inside of a JSON string."""
    record = planned()
    record.keeps_answer = keeps_answer
    words = (
        delta(reasoning="hm")
        + b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % content
    )
    return read(record, CHUNKED + chunk(words + delta("stop")) + LAST_CHUNK)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (rb"say \"hi\"\n", 'say "hi"\n'),
        ("n\u00e9".encode(), "n\u00e9"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud83d!", "\ufffd!"),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_answer_without_reasoning_stands_there_where_it_is_asked_for(content, text):
    told_of = orjson.loads(record_line(spoken(content), START, answer=True))
    assert told_of["answer"] == text
    assert record_from_line(told_of, START).generated_text == text


def test_credentials_are_taken_out_of_an_answer_as_it_is_kept():
    record = spoken(b"say sk-0123456789")
    record.redaction = Redaction({"Authorization": "Bearer sk-0123456789"})
    assert orjson.loads(record_line(record, START, answer=True))["answer"] == f"say {MARK}"
    # As it was: further turns repeat it, and it is what is counted.
    assert record.answer_text == "say sk-0123456789"


def test_answer_text_is_written_only_if_asked(tmp_path):
    asked = structs.replace(HEADING, settings=RunSettings(save_detailed=True))
    for heading, found in ((HEADING, None), (asked, "xyz")):
        path = tmp_path / "records.jsonl"
        with RecordWriter.optional(path) as writer:
            writer.begin(heading, START, 1, [])
            writer.write(spoken(b"xyz"))
        assert [record.generated_text for record in RecordFile(path)] == [found or ""]
        assert orjson.loads(as_lines(path)[1]).get("answer") == found


def sent_to(target, record):
    record.target = target
    return record


def predicted(record, tokens):
    record.server_tokens = tokens
    return record


def leaving(record, *, tokens=0, after_ns=-1):
    record.disconnect_tokens, record.disconnect_ns = tokens, after_ns
    return record


def sent_again(record):
    record.attempts, record.retried_ns, record.first_status = 3, 900 * MS, 429
    record.first_sent, record.first_closed = record.due + MS, record.due + 4 * MS
    return record


RECORDS = [
    leaving(answered(0), tokens=10),
    leaving(failed(0, Outcome.DISCONNECTED), after_ns=0),
    sent_again(answered(0, due=5, ready=7)),
    predicted(answered(0), 18),
    sent_to(3, answered(0)),
    answered(0, tokens=[20, 30], reasoning=[10]),
    answered(
        1,
        due=5,
        tools=[30],
        ready=7,
        connect=1,
        counts={"completion_tokens": 4, "prompt_tokens": 9},
    ),
    read(planned(2), CHUNKED + chunk(delta("stop", content="a b", token_ids=[1, 2])) + LAST_CHUNK),
    unsent(3),
    *(
        failed(4 + n, outcome)
        for n, outcome in enumerate(o for o in Outcome if o is not Outcome.OK)
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.outcome))
def test_a_record_read_again_is_the_same(record):
    again = record_from_line(told(record, START), START)
    assert told(again, START) == told(record, START)
    assert (again.counted, again.first_tokens, again.events) == (
        record.counted,
        record.first_tokens,
        record.events,
    )


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
    for name, another in ((b'"due",', b'"die",'), (b'_journal":1', b'_journal":2')):
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


@pytest.mark.parametrize("name", ["scheduled", "tokenized", "shards", "histograms"])
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


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no JSON", '{"loadgen_records": 2}', '{"loadgen_records": 1}']
)
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
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
