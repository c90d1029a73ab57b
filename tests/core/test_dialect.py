"""Events of an API with a dialect of its own: their tokens, counts and end."""

from typing import Any

import pytest

from loadgen.core.dialect import Delta, Dialect
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.event_flags import CHOICE, CONTENT, EMPTY, FINISH, OTHER, REASONING, TOOL
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.dialect_events import ANSWERS, DIALECTS, event
from tests.helpers.response_bytes import DONE, slices, streamed
from tests.helpers.stream_events import events

END = event("end", why="done")


def read(event: dict[str, Any]) -> Delta:
    if event.get("type") == "fault":
        return Delta(error='"no"')
    return Delta(says=FINISH, finish_reason="done") if event.get("type") == "end" else Delta()


def dialect(**changes: Any) -> Dialect:
    fields: dict[str, Any] = {
        "texts": {
            "text": {"delta.text": CONTENT, "delta.thought": REASONING, "delta.call": OTHER | TOOL},
            "flat": {"delta": CONTENT},
        },
        "silent": ("begin", "ping"),
        "read": read,
    }
    return Dialect(**fields | changes)


def record_of(body: bytes, dialect: Dialect) -> Record:
    """One event arrives each ms."""
    response, record = Response(DialectScanner(dialect)), Record(due=1)
    record.keeps_text = record.keeps_answer = True
    response.begin(record)
    for number, part in enumerate(slices(streamed(body, 10_000), 10_000), 1):
        response.feed(part, number * 1_000_000)
    assert response.complete
    return record


def says(record: Record) -> list[int]:
    return [event.says for event in events(record) or ()]


def test_texts_are_tokens_of_their_kinds() -> None:
    body = event("text", delta={"type": "x", "thought": "hm"}) + event("text", delta={"text": "a"})
    record = record_of(
        body + event("flat", delta=" b") + event("text", delta={"call": "{}"}) + END, dialect()
    )
    assert (record.outcome, record.events, record.finish_reason) == (Outcome.OK, 4, "done")
    assert (record.content_events, record.reasoning_events, record.other_events) == (2, 1, 1)
    assert (record.text, record.answer_text) == ("hma b{}", "a b")
    assert says(record)[:4] == [
        CHOICE | REASONING,
        CHOICE | CONTENT,
        CHOICE | CONTENT,
        CHOICE | OTHER | TOOL,
    ]


def test_two_texts_of_one_event_are_joined() -> None:
    record = record_of(event("text", delta={"text": "a", "thought": "hm"}) + END, dialect())
    assert (record.events, record.text, record.answer_text) == (1, "ahm", "a")


@pytest.mark.parametrize("delta", [None, {}, {"text": None}, {"text": ""}, {"other": "x"}])
def test_an_event_without_text_bears_no_token(delta: object) -> None:
    record = record_of(event("text", delta=delta) + event("flat", delta="a") + END, dialect())
    assert record.events == 1
    assert says(record)[0] == CHOICE | EMPTY * (delta == {"text": ""})


def test_only_events_that_the_description_does_not_cover_are_read_in_python() -> None:
    seen: list[object] = []

    def read_and_count(event: dict[str, Any]) -> Delta:
        seen.append(event.get("type"))
        return read(event)

    body = (
        event("begin")
        + event("flat", delta="a")
        + event("ping", delta="b")
        + event("unknown")
        + END
    )
    record = record_of(body + DONE, dialect(read=read_and_count))
    assert (record.outcome, record.events) == (Outcome.OK, 1)
    assert seen == ["unknown", "end"]


def test_a_decisive_member_leaves_the_event_to_read() -> None:
    def ending(event: dict[str, Any]) -> Delta:
        return Delta(CONTENT, CHOICE | FINISH, text="b", answer="b", finish_reason=event["last"])

    untyped = dialect(texts={"": {"text": CONTENT}}, decisive=("last",), read=ending)
    body = (
        b'data: {"text":"a","last":null}\n\ndata: {"text":"a","last":false}\n\ndata: '
        b'{"text":"","last":"why"}\n\n'
    )
    record = record_of(body, untyped)
    assert (record.outcome, record.events, record.finish_reason, record.text) == (
        Outcome.OK,
        3,
        "why",
        "aab",
    )


@pytest.mark.parametrize(
    "fault",
    [event("fault"), event("flat", delta="a", error="no"), event("begin", error="no")],
    ids=["read", "text", "silent"],
)
def test_an_error_ends_the_stream(fault: bytes) -> None:
    record = record_of(event("flat", delta="a") + fault + event("flat", delta="b") + END, dialect())
    assert (record.outcome, record.detail, record.events) == (Outcome.STREAM_ERROR, '"no"', 1)


@pytest.mark.parametrize(
    "wrong",
    [
        event("flat", delta=1),
        event("text", delta="a"),
        b'data: {"type":"begin"\n\n',
        b"data: [1]\n\n",
    ],
)
def test_an_event_of_a_wrong_shape_breaks_the_protocol(wrong: bytes) -> None:
    assert (
        record_of(event("flat", delta="a") + wrong + END, dialect()).outcome
        is Outcome.PROTOCOL_ERROR
    )


def test_a_stream_without_an_end_is_truncated() -> None:
    assert record_of(event("flat", delta="a"), dialect()).outcome is Outcome.TRUNCATED


def test_a_stream_of_chat_bears_no_token_in_a_dialect() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
    assert record_of(body + DONE, dialect()).outcome is Outcome.EMPTY


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"texts": {"a": {"error.text": CONTENT}}}, "error cannot be text"),
        ({"texts": {"a": {"type": CONTENT}}}, "type cannot be text"),
        ({"texts": {"a": {"b": TOOL}}}, "one of the flags"),
        ({"texts": {"a": {"b": CONTENT | OTHER}}}, "one of the flags"),
        ({"texts": {"a": {"b..c": CONTENT}}}, "1 to 4 keys"),
        ({"texts": {"a": {"b.c.d.e.f": CONTENT}}}, "1 to 4 keys"),
        ({"silent": tuple(map(str, range(200)))}, "more than 128 types"),
    ],
)
def test_a_description_that_cannot_be_followed_is_refused(
    changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        dialect(**changes)


@pytest.mark.parametrize(
    ("name", "kinds", "counts", "reason"),
    [
        ("responses", (2, 2, 1), (7, 5, 4, 2), "completed"),
        ("messages", (2, 1, 1), (7, 4, 4, -1), "end_turn"),
        ("untyped", (1, 1, 0), (-1, 3, -1, -1), "length"),
    ],
)
def test_answers_of_servers_are_read(
    name: str, kinds: tuple[int, ...], counts: tuple[int, ...], reason: str
) -> None:
    record = record_of(ANSWERS[name], DIALECTS[name])
    assert (record.outcome, record.finish_reason) == (Outcome.OK, reason)
    assert (record.content_events, record.reasoning_events, record.other_events) == kinds
    assert (
        record.prompt_tokens,
        record.completion_tokens,
        record.cached_tokens,
        record.reasoning_tokens,
    ) == counts
