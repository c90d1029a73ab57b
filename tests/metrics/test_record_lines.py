"""Lines of JSON: what is told of a record, and what is read back of it."""

import orjson
import pytest

from loadgen.core import event_flags
from loadgen.core.answer import BY_EVENTS
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.metrics.records.json_lines import record_from_line
from loadgen.util.redaction import MARK, Redaction
from tests.helpers.record_kinds import RECORDS, leaving, sent_again, spoken, told
from tests.helpers.run_facts import (
    MS,
    START,
    answered,
    failed,
    unsent,
)
from tests.helpers.source import ROOT


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


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.outcome))
def test_a_record_read_again_is_the_same(record):
    again = record_from_line(told(record, START), START)
    assert told(again, START) == told(record, START)
    assert (again.counted, again.first_tokens, again.events) == (
        record.counted,
        record.first_tokens,
        record.events,
    )
