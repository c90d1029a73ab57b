"""Records on disk: one JSON line per request; what did not happen is null, and what was not told too."""

import contextlib

import orjson
import pytest

from loadgen.errors import BadInput
from loadgen.outcomes import Outcome
from loadgen.records import RecordWriter, to_dict
from tests.unit.making import MS, START, answered, failed, unsent


def test_times_count_from_due_and_due_from_the_start():
    told = {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}
    record = answered(
        4, due=100, ready=110, connect=5, sent=116, reasoning=[130], tokens=[150], closed=160, counts=told
    )
    assert to_dict(record, START, ["a", "b", "c"]) == {
        "index": 4,
        "source": "b",
        "outcome": "ok",
        "detail": None,
        "finish_reason": "stop",
        "planned_input_tokens": 10,
        "planned_output_tokens": 2,
        "status": 200,
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "cached_tokens": 8,
        "due": 100 * MS,
        "ready": 10 * MS,
        "sent": 16 * MS,
        "connect": 5 * MS,
        "first_byte": 30 * MS,
        "first_token": 30 * MS,
        "first_answer": 50 * MS,
        "last_token": 50 * MS,
        "closed": 60 * MS,
        "reused": False,
        "by_reader": False,
        "token_events": [30 * MS, 50 * MS],
    }


def test_what_did_not_happen_is_null_and_never_zero():
    line = to_dict(unsent(due=100, detail="no such host"), START, [])
    assert (line["outcome"], line["detail"]) == ("dns_error", "no such host")
    absent = ("source", "status", "sent", "first_byte", "first_token", "first_answer", "last_token", "finish_reason")
    assert {name: line[name] for name in absent} == dict.fromkeys(absent)
    assert line["token_events"] == []


def test_what_the_server_did_not_count_is_null():
    line = to_dict(answered(), START, [])
    assert [line[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")] == [None, None, None]


def test_a_failure_keeps_the_tokens_that_came():
    line = to_dict(failed(0, Outcome.TRUNCATED, detail="reset"), START, [])
    assert (line["outcome"], len(line["token_events"])) == ("truncated", 2)


def test_each_record_is_a_line(tmp_path):
    path = tmp_path / "records.jsonl"
    with RecordWriter.optional(str(path)) as writer:
        writer.write(answered(0), START, ["x"])
        writer.write(failed(1, Outcome.STATUS, detail="two\nlines"), START, ["x"])
    lines = path.read_bytes().splitlines()
    assert [orjson.loads(line)["index"] for line in lines] == [0, 1]
    assert orjson.loads(lines[1])["detail"] == "two\nlines"


def test_the_file_is_whole_also_after_an_error(tmp_path):
    path = tmp_path / "records.jsonl"
    with contextlib.suppress(RuntimeError), RecordWriter.optional(str(path)) as writer:
        writer.write(answered(0), START, [])
        raise RuntimeError
    assert len(path.read_bytes().splitlines()) == 1


def test_without_a_path_there_is_no_writer():
    with RecordWriter.optional(None) as writer:
        assert writer is None


@pytest.mark.parametrize("path", ["missing/records.jsonl", "."])
def test_a_file_that_cannot_be_written_is_refused(tmp_path, path):
    with pytest.raises(BadInput) as caught, RecordWriter.optional(str(tmp_path / path)):
        pass
    assert caught.value.field == "--records"
    assert str(tmp_path) in caught.value.problem


def test_a_full_disk_is_remembered_and_ends_nothing():
    with RecordWriter.optional("/dev/full") as writer:
        for index in range(2000):  # more than the buffer holds
            writer.write(answered(index), 0, [])
        writer.close()
        assert writer.error == "No space left on device"
