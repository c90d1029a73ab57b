"""Corners of the standards that no good server is seen in; a random response found each."""

import pytest

from loadgen.core.http1 import MAX_HEAD
from loadgen.core.outcome import Outcome
from tests.helpers.response_bytes import (
    DONE,
    HEAD,
    answer,
    chunked,
    delta,
    event,
    facts,
    read,
    slices,
    streamed,
)

BODY = answer("Hello", " world")
SIZED = HEAD + b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
GOOD = (Outcome.OK, 200, 2)


def outcome(wire: bytes) -> tuple[object, ...]:
    return facts(read([wire], closed=True)[1])[:3]


# -- heads (RFC 9112)


@pytest.mark.parametrize(
    "line", [b"http/1.1 200 OK", b"HTTP/1.x 200 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 200OK"]
)
def test_malformed_status_line_is_a_protocol_error(line: bytes) -> None:
    assert outcome(line + b"\r\n\r\n" + BODY)[0] is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("value", [b" chunked \t", b"chunked", b"\r\n chunked", b" \r\n\tchunked"])
def test_space_around_field_values_is_ignored(value: bytes) -> None:
    assert outcome(HEAD + b"Transfer-Encoding:" + value + b"\r\n\r\n" + chunked(BODY)) == GOOD


def test_folded_line_is_no_field_of_its_own() -> None:
    assert (
        outcome(HEAD + b"X-Folded: a\r\n no colon here\r\n Content-Length: 3\r\n\r\n" + BODY)
        == GOOD
    )


@pytest.mark.parametrize(
    "second", [b"Content-Length: 5", b"Content-Length:", b"Content-Length: 9999999999999999"]
)
def test_bad_content_lengths_are_a_protocol_error(second: bytes) -> None:
    assert outcome(SIZED + second + b"\r\n\r\n" + BODY)[0] is Outcome.PROTOCOL_ERROR


def test_repeated_equal_lengths_are_one_length() -> None:
    assert outcome(SIZED + b"Content-Length: %040d\r\n\r\n" % len(BODY) + BODY) == GOOD


def test_chunked_wins_over_content_length() -> None:
    for lines in (
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0",
    ):
        assert outcome(HEAD + lines + b"\r\n\r\n" + chunked(BODY)) == GOOD


def test_interim_fields_do_not_reach_the_final_response() -> None:
    interim = (
        b"HTTP/1.0 103 Early\r\nContent-Type: application/json\r\nContent-Length: "
        b"7\r\nContent-Encoding: gzip\r\n\r\n"
    )
    response, record = read([interim + streamed(BODY)])
    assert facts(record)[:3] == GOOD
    assert response.keep_alive
    _, record = read([interim], closed=True)
    assert (record.outcome, record.status) == (Outcome.PROTOCOL_ERROR, 0)


def test_malformed_head_has_no_status() -> None:
    _, record = read([b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"])
    assert (record.outcome, record.status) == (Outcome.PROTOCOL_ERROR, 0)


@pytest.mark.parametrize("status", [204, 304])
def test_status_without_body_needs_no_decoding(status: int) -> None:
    response, record = read([b"HTTP/1.1 %d No\r\nContent-Encoding: gzip\r\n\r\n" % status])
    assert response.complete
    assert (record.outcome, record.status) == (Outcome.STATUS, status)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"Connection: closest", True),
        (b"Connection: upgrade , Close", False),
        (b"Connection: close\r\nConnection: keep-alive", False),
        (b"Connection: keep-alive, close", False),
    ],
)
def test_connection_field_is_a_list_where_close_wins(line: bytes, kept: bool) -> None:
    assert read([SIZED + line + b"\r\n\r\n" + BODY])[0].keep_alive is kept


def test_chunks_from_http_1_0_end_the_connection() -> None:
    wire = CHUNKED.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n\r\n" + chunked(BODY)
    response, record = read([wire])
    assert facts(record)[:3] == GOOD
    assert not response.keep_alive


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"timeout=99999999", 10**6),
        (b"xtimeout=5", 0),
        (b"x timeout=5", 0),
        (b"timeout=5, timeout=7", 7),
    ],
)
def test_keep_alive_timeout_is_a_list_item(value: bytes, seconds: int) -> None:
    response, _ = read([SIZED + b"Keep-Alive: " + value + b"\r\n\r\n" + BODY])
    assert response.keep_alive_ns == seconds * 10**9


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_head_too_long_fails_in_any_slices(step: int) -> None:
    for surplus, expected in ((0, GOOD), (1, (Outcome.PROTOCOL_ERROR, 0, 0))):
        room = MAX_HEAD + surplus - len(CHUNKED) - len(b"X: \r\n\r\n")
        wire = CHUNKED + b"X: " + b"x" * room + b"\r\n\r\n" + chunked(BODY)
        assert facts(read(slices(wire, step))[1])[:3] == expected


# -- chunks


@pytest.mark.parametrize("size", [b"5 5", b"5\tx", b"5 x;y", b"5\r"])
def test_chunk_size_is_followed_by_extensions_only(size: bytes) -> None:
    assert (
        outcome(CHUNKED + b"\r\n" + size + b"\r\ndata:\r\n0\r\n\r\n")[0] is Outcome.PROTOCOL_ERROR
    )


def test_tab_before_a_chunk_extension_is_allowed() -> None:
    assert outcome(CHUNKED + b"\r\n%x\t;a=b\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)) == GOOD


def test_status_stays_the_outcome_if_framing_breaks() -> None:
    response, record = read(
        [b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusyxyz\r\n"]
    )
    assert (record.outcome, record.status, record.detail) == (Outcome.STATUS, 503, "busy")
    assert not response.keep_alive


# -- events (the event stream format, and JSON)


def test_data_field_without_colon_is_an_empty_line() -> None:
    assert outcome(CHUNKED + b"\r\n" + chunked(BODY.replace(b"data: {", b"data\ndata: {"))) == GOOD
    assert not read([CHUNKED + b"\r\n" + chunked(b"data\n" + DONE)])[1].done_seen


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "\x7fx"},
        {"tool_calls": [{"function": {"arguments": "\x7fx"}}]},
        {"refusal": "\x7fx"},
    ],
)
def test_invalid_utf8_is_replaced(fields: dict[str, object]) -> None:
    body = (delta(**fields) + delta("stop")).replace(b"\x7f", b"\xc3")
    assert outcome(CHUNKED + b"\r\n" + chunked(body)) == (Outcome.OK, 200, 1)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"id": word, "choices": []}',
        b'{"id": 01, "choices": []}',
        b'{"id": 1., "choices": []}',
        b'{"id": [1 2], "choices": []}',
        b'{"id": [}, "choices": []}',
        b'{"id": {"a" 1}, "choices": []}',
        b'{"id": "\\x", "choices": []}',
        b'{"id": "\\u12g4", "choices": []}',
        b'{"id": "\x00", "choices": []}',
        b'{"\x01": 1, "choices": []}',
        b'{"id": 1, "choices": [],}',
        b'{"id": ' + b"[" * 2000 + b"]" * 2000 + b', "choices": []}',
        b'{"usage": {"prompt_tokens": 007}}',
        b'{"object": "error", "id": 1,}',
    ],
)
def test_invalid_json_is_a_protocol_error_anywhere(payload: bytes) -> None:
    assert outcome(
        streamed(delta(content="a") + b"data: " + payload + b"\n\n" + delta("stop"))
    ) == (Outcome.PROTOCOL_ERROR, 200, 1)


@pytest.mark.parametrize(
    "key", [b'"content"', b'"refusal"', b'"tool_calls":[],"content"', b'"\\u0063ontent"']
)
def test_half_a_surrogate_pair_is_accepted(key: bytes) -> None:
    body = b'data: {"choices":[{"delta":{%s:"\\ud83d"},"finish_reason":"\\udc00top"}]}\n\n' % key
    refused = key == b'"refusal"'
    _, record = read([streamed(body)])
    assert (record.outcome, record.finish_reason) == (Outcome.OK, "?top")
    assert (record.content_events, record.other_events) == (not refused, refused)
    error = b'data: {"error":"\\ud83d"}\n\n'
    assert read([streamed(error)])[1].detail == '"\\ud83d"'


def test_error_is_found_in_any_spelling() -> None:
    body = (
        delta(content="a") + b'data: {"object": "\\u0065rror", "message": "no"}\n\n' + delta("stop")
    )
    assert outcome(streamed(body))[0] is Outcome.STREAM_ERROR


@pytest.mark.parametrize(
    ("payload", "tokens"),
    [
        (b'{"choices": [{"delta": {"content": "a"}}], "choices": []}', 0),
        (b'{"choices": [{"delta": {"content": "a", "content": ""}}]}', 0),
        (b'{"choices": [{"delta": {"reasoning": "a", "reasoning": ""}}]}', 0),
        (b'{"choices": [{"text": "a", "text": ""}]}', 0),
        (b'{"choices": [{"delta": {"content": "a"}, "delta": {}}]}', 0),
        (b'{"choices": [{"delta": {"content": "", "content": "a"}}]}', 1),
    ],
)
def test_last_of_two_equal_keys_counts(payload: bytes, tokens: int) -> None:
    assert read([streamed(b"data: " + payload + b"\n\n" + DONE)])[1].events == tokens


def test_last_of_two_equal_counts_counts() -> None:
    counts = (
        b'{"choices": [], "usage": {"completion_tokens": 5, "completion_tokens": 7}, '
        b'"usage": {"prompt_tokens": 3}}'
    )
    _, record = read([streamed(b"data: " + counts + b"\n\n")])
    assert (record.prompt_tokens, record.completion_tokens) == (3, -1)


def test_json_of_every_type_is_skipped() -> None:
    extra = {
        "a": [1, -2.5, 1e-7, True, False, None, '\\"/\b\f\n\r\té😀', {"b": [], "c": {}}],
        "d": 2**60,
    }
    _, record = read(
        [
            streamed(
                event(extra=extra, choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}])
            )
        ]
    )
    assert facts(record)[:3] == (Outcome.OK, 200, 1)
