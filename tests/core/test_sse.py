"""Server-sent events: lines, data, and what counts as a token."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import (
    DONE,
    answer,
    chunked,
    delta,
    event,
    facts,
    read,
    slices,
    streamed,
    usage,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def record_of(body: bytes, step: int = 10_000_000) -> Record:
    response, record = read(slices(HEAD + chunked(body), step))
    assert response.complete
    return record


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_lines_end_with_lf_cr_or_crlf(end: bytes) -> None:
    body = answer("Hello", " world").replace(b"\n", end)
    for step in (1, 2, 5, 10_000):
        assert facts(record_of(body, step))[:3] == (Outcome.OK, 200, 2), step


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + answer("a"),
        b": a comment\n\n" + answer("a"),
        b"event: message\nid: 7\nretry: 10\n" + answer("a"),
        answer("a").replace(b"data: ", b"data:"),
        answer("a").removesuffix(b"\n"),
        answer("a").removesuffix(DONE).removesuffix(b"\n\n"),
        b"data\n\n" + answer("a"),
        b"data:\n\n" + answer("a"),
        answer("a").replace(b',"choices"', b'\ndata: ,"choices"'),
        b"\n\n\n" + answer("a"),
        answer("a") + b"data: anything at all\n\n",
    ],
    ids=[
        "byte order mark",
        "comment",
        "other fields",
        "no space",
        "no last blank line",
        "no last line end",
        "field without colon",
        "empty data",
        "several data lines",
        "blank lines",
        "after [DONE]",
    ],
)
def test_event_stream_follows_the_standard(body: bytes) -> None:
    for step in (1, 10_000):
        record = record_of(body, step)
        assert (record.outcome, record.events, record.finish_reason) == (Outcome.OK, 1, "stop")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"content": "x"}, "content"),
        ({"role": None, "content": "x", "tool_calls": None}, "content"),
        ({"reasoning": "x"}, "reasoning"),
        ({"reasoning_content": "x"}, "reasoning"),
        ({"reasoning": "x", "reasoning_content": "x"}, "reasoning"),
        ({"refusal": "x"}, "other"),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, "other"),
        ({"content": '\\"content":"'}, "content"),
        ({"content": "a\nb \u2028 é 😀"}, "content"),
    ],
)
def test_delta_with_text_of_any_kind_is_a_token(fields: dict[str, object], kind: str) -> None:
    record = record_of(delta(**fields) + delta("stop"))
    assert record.events == 1
    assert getattr(record, f"{kind}_events") == 1
    assert (record.first_answer > 0) == (kind == "content")


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {},
        {"reasoning": ""},
        {"tool_calls": []},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": ""}}]},
        {"extra": {"deep": [{"content": "}]"}]}},
    ],
)
def test_delta_without_text_is_no_token(fields: dict[str, object]) -> None:
    record = record_of(delta(**fields) + delta(content="x") + delta("stop"))
    assert record.events == 1
    assert record.outcome is Outcome.OK


def test_completions_bear_text_without_a_delta() -> None:
    body = event(choices=[{"text": "a"}]) + event(choices=[{"text": "", "finish_reason": "length"}])
    record = record_of(body)
    assert (record.events, record.finish_reason, record.outcome) == (1, "length", Outcome.OK)


def test_usage_is_read_in_any_event() -> None:
    counts = {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    at_the_end = answer("a").removesuffix(DONE) + usage(**counts) + DONE
    on_the_finish = delta(content="a") + event(
        choices=[{"delta": {}, "finish_reason": "stop"}], usage=counts
    )
    on_each = (
        event(
            choices=[{"delta": {"content": "a"}}],
            usage={"prompt_tokens": 7, "completion_tokens": 1},
        )
        + at_the_end
    )
    for body in (at_the_end, on_the_finish, on_each):
        record = record_of(body)
        assert record.outcome is Outcome.OK
        assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (7, 3, 4)
    assert record_of(answer("a")).completion_tokens == -1


def test_null_usage_is_ignored() -> None:
    record = record_of(
        event(choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}], usage=None)
    )
    assert (record.outcome, record.completion_tokens) == (Outcome.OK, -1)


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "out of memory", "code": 500}},
        {"object": "error", "message": "out of memory"},
    ],
)
def test_error_in_the_stream_is_a_stream_error(error: dict[str, object]) -> None:
    for rest in (b"", DONE, delta("stop") + DONE):
        record = record_of(delta(content="a") + event(**error) + rest)
        assert record.outcome is Outcome.STREAM_ERROR
        assert record.detail is not None
        assert "out of memory" in record.detail


def test_null_error_is_ignored() -> None:
    body = event(error=None, choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}])
    assert record_of(body).outcome is Outcome.OK


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b'{"choices": [}',
        b"null",
        b"[1]",
        b"word",
        b'{"choices": 3}',
        b'{"choices": [3]}',
        b'{"usage": 1}',
    ],
)
def test_event_of_another_type_is_a_protocol_error(payload: bytes) -> None:
    record = record_of(delta(content="a") + b"data: " + payload + b"\n\n")
    assert record.outcome is Outcome.PROTOCOL_ERROR
    assert record.events == 1


@pytest.mark.parametrize(
    "body",
    [DONE, delta(role="assistant") + delta("stop") + DONE, usage(completion_tokens=0) + DONE],
)
def test_response_without_a_token_is_empty(body: bytes) -> None:
    assert record_of(body).outcome is Outcome.EMPTY


def test_events_of_one_read_share_its_stamp() -> None:
    _, record = read([streamed(answer(*"abcdefghij"), 1_000_000)])
    assert record.events == 10
    assert set(record.stamps) == {1_000_000}


def test_long_lines_and_many_events_are_read() -> None:
    record = record_of(answer("x" * 1_000_000), 65536)
    assert (record.outcome, record.events) == (Outcome.OK, 1)
    record = record_of(answer(*["x"] * 100_000), 65536)
    assert (record.outcome, record.events) == (Outcome.OK, 100_000)


def test_answer_in_one_piece_is_a_protocol_error() -> None:
    choices = b'[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]'
    body = b'{"choices":%s,"usage":{"completion_tokens":2}}' % choices
    wire = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
        + body
    )
    _, record = read(slices(wire, 50))
    assert (record.outcome, record.events) == (Outcome.PROTOCOL_ERROR, 0)
    assert "in one piece" in (record.detail or "")


def test_json_error_with_status_200_is_a_stream_error() -> None:
    body = b'{"error": {"message": "no such model"}}'
    wire = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
        + body
    )
    _, record = read([wire])
    assert record.outcome is Outcome.STREAM_ERROR


STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
CHOICES = b'"choices":[{"delta":{"content":"a"}}]'


@pytest.mark.parametrize(
    ("second", "tokens"),
    [
        (b'{"id":"1111",' + CHOICES + b"}", 2),
        (b'{"id":"2222",' + CHOICES + b"}", 2),
        (b'{"id":"1111", ' + CHOICES + b"}", 2),
        (b'{"id":"1111","choices": [{"delta":{"content":"a"}}]}', 2),
        (b'{"id":"1111","choices":[],"usage":{"completion_tokens":7}}', 7),
        (b'{"id":"1111","choices":[],' + CHOICES + b"}", 2),  # the last of two equal keys counts
        (b'{"id":"1111",' + CHOICES + b',"choices":[]}', 1),
    ],
)
def test_an_event_is_read_alike_whatever_came_before_it(second: bytes, tokens: int) -> None:
    first = b'{"id":"1111",' + CHOICES + b"}"
    record = record_of(b"data: " + first + b"\n\ndata: " + second + b"\n\n" + STOP + DONE)
    assert (record.outcome, record.answer_tokens) == (Outcome.OK, tokens)


@pytest.mark.parametrize("name", ["error", "etype"])  # as long as the id before it
def test_an_error_behind_an_event_of_as_many_bytes_is_an_error(name: str) -> None:
    first = b'{"id":"1111",' + CHOICES + b"}"
    second = b'{"%b":"1",' % name.encode() + CHOICES + b"}"
    record = record_of(b"data: " + first + b"\n\ndata: " + second + b"\n\n" + STOP + DONE)
    assert (record.outcome is Outcome.STREAM_ERROR) == (name == "error")
