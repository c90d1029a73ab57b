"""Server-sent events: lines, data, and what counts as a token."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import DONE, answer, chunked, delta, event, facts, read, slices, streamed, usage

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def record_of(body: bytes, step: int = 10_000_000) -> Record:
    response, record = read(slices(HEAD + chunked(body), step))
    assert response.complete
    return record


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_lines_may_end_in_any_of_three_ways(end: bytes) -> None:
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
def test_the_event_stream_format_is_read_as_the_standard_says(body: bytes) -> None:
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
def test_a_delta_with_text_of_any_kind_is_a_token(fields: dict[str, object], kind: str) -> None:
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
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]},
        {"extra": {"content": "x", "deep": [{"content": "}]"}]}},
    ],
)
def test_a_delta_without_text_is_none(fields: dict[str, object]) -> None:
    record = record_of(delta(**fields) + delta(content="x") + delta("stop"))
    assert record.events == 1
    assert record.outcome is Outcome.OK


def test_completions_bear_their_text_without_a_delta() -> None:
    body = event(choices=[{"text": "a"}]) + event(choices=[{"text": "", "finish_reason": "length"}])
    record = record_of(body)
    assert (record.events, record.finish_reason, record.outcome) == (1, "length", Outcome.OK)


def test_usage_is_read_wherever_it_stands() -> None:
    counts = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    at_the_end = answer("a").removesuffix(DONE) + usage(**counts) + DONE
    on_the_finish = delta(content="a") + event(choices=[{"delta": {}, "finish_reason": "stop"}], usage=counts)
    on_each = (
        event(choices=[{"delta": {"content": "a"}}], usage={"prompt_tokens": 7, "completion_tokens": 1}) + at_the_end
    )
    for body in (at_the_end, on_the_finish, on_each):
        record = record_of(body)
        assert record.outcome is Outcome.OK
        assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (7, 3, 4)
    assert record_of(answer("a")).completion_tokens == -1


def test_a_null_usage_says_nothing() -> None:
    record = record_of(event(choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}], usage=None))
    assert (record.outcome, record.completion_tokens) == (Outcome.OK, -1)


@pytest.mark.parametrize(
    "error", [{"error": {"message": "out of memory", "code": 500}}, {"object": "error", "message": "out of memory"}]
)
def test_an_error_inside_the_stream_is_no_success_whatever_follows(error: dict[str, object]) -> None:
    for rest in (b"", DONE, delta("stop") + DONE):
        record = record_of(delta(content="a") + event(**error) + rest)
        assert record.outcome is Outcome.STREAM_ERROR
        assert record.detail is not None
        assert "out of memory" in record.detail


def test_a_null_error_is_none() -> None:
    body = event(error=None, choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}])
    assert record_of(body).outcome is Outcome.OK


@pytest.mark.parametrize(
    "payload",
    [b"{", b'{"choices": [}', b"null", b"[1]", b"word", b'{"choices": 3}', b'{"choices": [3]}', b'{"usage": 1}'],
)
def test_events_that_are_no_chunk_of_an_answer_are_a_protocol_error(payload: bytes) -> None:
    record = record_of(delta(content="a") + b"data: " + payload + b"\n\n")
    assert record.outcome is Outcome.PROTOCOL_ERROR
    assert record.events == 1


@pytest.mark.parametrize(
    "body", [DONE, delta(role="assistant") + delta("stop") + DONE, usage(completion_tokens=0) + DONE]
)
def test_a_whole_response_without_a_token_is_empty(body: bytes) -> None:
    assert record_of(body).outcome is Outcome.EMPTY


def test_many_events_in_one_segment_share_its_stamp_and_are_all_counted() -> None:
    _, record = read([streamed(answer(*"abcdefghij"), 1_000_000)])
    assert record.events == 10
    assert set(record.stamps) == {1_000_000}


def test_a_line_of_a_megabyte_and_a_hundred_thousand_events_are_read() -> None:
    record = record_of(answer("x" * 1_000_000), 65536)
    assert (record.outcome, record.events) == (Outcome.OK, 1)
    record = record_of(answer(*["x"] * 100_000), 65536)
    assert (record.outcome, record.events) == (Outcome.OK, 100_000)


def test_an_answer_in_one_piece_although_a_stream_was_asked_is_no_measurement() -> None:
    choices = b'[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]'
    body = b'{"choices":%s,"usage":{"completion_tokens":2}}' % choices
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    _, record = read(slices(wire, 50))
    assert (record.outcome, record.events) == (Outcome.PROTOCOL_ERROR, 0)
    assert "in one piece" in (record.detail or "")


def test_an_error_as_json_with_status_200_is_no_success() -> None:
    body = b'{"error": {"message": "no such model"}}'
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    _, record = read([wire])
    assert record.outcome is Outcome.STREAM_ERROR
