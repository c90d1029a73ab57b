"""The events of a stream are all kept, also those without tokens, since tools count them
differently.
"""

import orjson
import pytest

from loadgen.core.event_flags import (
    BARE,
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
from loadgen.core.record import Record
from loadgen.core.record_json import record_line
from loadgen.metrics.records.json_lines import event_runs
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


def test_stream_holds_flags_and_stamps_of_every_event() -> None:
    thought, word = delta(reasoning="hm"), delta(content="a")
    assert said(
        ROLES, thought, word, word, delta("stop"), usage(completion_tokens=3), DONE_EVENT
    ) == [
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
        (delta(content=None), CHOICE | BARE),
        (delta(role=None, content=""), CHOICE | ROLE | EMPTY | BARE),
        (delta(content=""), CHOICE | EMPTY),
        (delta(reasoning_content="hm"), CHOICE | REASONING | OLD_REASONING),
        (delta(reasoning_content=""), CHOICE | OLD_REASONING | BARE),
        (delta(reasoning_content=None, content="a"), CHOICE | CONTENT),
        (delta(refusal="no"), CHOICE | OTHER),
        (
            delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]),
            CHOICE | TOOL | OTHER,
        ),
        (delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]), CHOICE | TOOL | OTHER),
        (delta(tool_calls=[]), CHOICE | BARE),
        (delta("length", content="a"), CHOICE | CONTENT | FINISH),
        (event(choices=[{"text": "a"}]), CHOICE | CONTENT),
        (event(choices=[{"text": ""}]), CHOICE | EMPTY),
        (event(choices=[{"text": "a"}], usage={"completion_tokens": 1}), CHOICE | CONTENT | USAGE),
        (event(choices=[], usage=None), 0),
    ],
)
def test_event_flags_of_one_event(one: bytes, says: int) -> None:
    assert said(one, delta("stop", content="z"))[0].says == says


def test_equal_token_events_share_one_run() -> None:
    record = record_of(ROLES, *[delta(content="a")] * 500, delta("stop"))
    assert record.stream == [
        (CHOICE | ROLE | EMPTY, 2 * MS),
        (CHOICE | CONTENT, 500),
        (CHOICE | FINISH, 503 * MS),
    ]


def test_stream_with_too_many_runs_is_unknown() -> None:
    record = record_of(delta(content="a") + ROLES * 70_000 + delta("stop"))
    assert record.stream is None
    assert orjson.loads(record_line(record, 0))["stream"] is None


def test_stream_round_trips_through_a_record_line() -> None:
    record = record_of(ROLES, delta(content="a"), delta(content="b"), delta("stop"), DONE_EVENT)
    record.due = MS
    written = orjson.loads(record_line(record, 0))["stream"]
    assert written == [
        ["choice+role+empty", MS],
        ["content+choice", 2],
        ["choice+finish", 4 * MS],
        ["done", 5 * MS],
    ]
    assert event_runs(written, MS) == record.stream


def test_restored_record_without_a_stream_has_none() -> None:
    record = Record()
    record.restore([MS, 2 * MS])
    assert events(record) is None
