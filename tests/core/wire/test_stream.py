"""The stream as it was: events without tokens are kept too, for tools differ in what they take for one."""

import orjson
import pytest

from loadgen.core.sse_event import (
    CHOICE,
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    OLD_REASONING,
    OTHER,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
)
from loadgen.core.wire import Record, line
from loadgen.metrics.records.line import event_runs
from tests.helpers.response_bytes import DONE as DONE_EVENT
from tests.helpers.response_bytes import HEAD, chunked, delta, event, read, usage
from tests.helpers.stream_events import Event, events

MS = 1_000_000
ROLES = delta(role="assistant", content="")


def record_of(*parts: bytes) -> Record:
    """The record of an answer of which each part comes a ms after the one before."""
    head, *bodies = (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        *(chunked(part).removesuffix(b"0\r\n\r\n") for part in parts),
    )
    return read([head, *bodies, b"0\r\n\r\n"])[1]


def said(*parts: bytes) -> list[Event]:
    found = events(record_of(*parts))
    assert found is not None
    return found


def test_every_event_is_kept_with_what_it_says_and_when_it_came() -> None:
    thought, word = delta(reasoning="hm"), delta(content="a")
    assert said(ROLES, thought, word, word, delta("stop"), usage(completion_tokens=3), DONE_EVENT) == [
        (CHOICE | ROLE | EMPTY, 2 * MS),
        (CHOICE | REASONING, 3 * MS),
        (CHOICE | CONTENT, 4 * MS),
        (CHOICE | CONTENT, 5 * MS),
        (CHOICE | FINISH, 6 * MS),
        (USAGE, 7 * MS),
        (DONE, 8 * MS),
    ]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (delta(role=None, content="a"), CHOICE | ROLE | CONTENT),
        (delta(content=None), CHOICE),
        (delta(content=""), CHOICE | EMPTY),
        (delta(reasoning_content="hm"), CHOICE | REASONING | OLD_REASONING),
        (delta(reasoning_content=""), CHOICE | OLD_REASONING),
        (delta(reasoning_content=None, content="a"), CHOICE | CONTENT),
        (delta(refusal="no"), CHOICE | OTHER),
        (delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]), CHOICE | TOOL),
        (delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]), CHOICE | TOOL | OTHER),
        (delta(tool_calls=[]), CHOICE),
        (delta("length", content="a"), CHOICE | CONTENT | FINISH),
        (event(choices=[{"text": "a"}]), CHOICE | CONTENT),
        (event(choices=[{"text": ""}]), CHOICE | EMPTY),
        (event(choices=[{"text": "a"}], usage={"completion_tokens": 1}), CHOICE | CONTENT | USAGE),
        (event(choices=[], usage=None), 0),
    ],
)
def test_what_an_event_says(one: bytes, says: int) -> None:
    assert said(one, delta("stop", content="z"))[0].says == says


def test_events_that_bear_tokens_take_no_room_of_their_own_while_they_are_alike() -> None:
    record = record_of(ROLES, *[delta(content="a")] * 500, delta("stop"))
    assert record.stream == [(CHOICE | ROLE | EMPTY, 2 * MS), (CHOICE | CONTENT, 500), (CHOICE | FINISH, 503 * MS)]


def test_more_of_them_than_can_be_kept_are_not_told_in_part() -> None:
    record = record_of(delta(content="a") + ROLES * 70_000 + delta("stop"))
    assert record.stream is None
    assert orjson.loads(line(record, 0, None))["stream"] is None


def test_it_is_written_with_names_and_times_from_due_and_read_again() -> None:
    record = record_of(ROLES, delta(content="a"), delta(content="b"), delta("stop"), DONE_EVENT)
    record.due = MS
    written = orjson.loads(line(record, 0, None))["stream"]
    assert written == [["choice+role+empty", MS], ["content+choice", 2], ["choice+finish", 4 * MS], ["done", 5 * MS]]
    assert event_runs(written, MS) == record.stream


def test_of_records_that_do_not_have_it_nothing_is_made_up() -> None:
    record = Record()
    record.restore([MS, 2 * MS])
    assert events(record) is None
