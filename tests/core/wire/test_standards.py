"""Corners of the standards that no good server is seen in; a random response found each."""

import pytest

from loadgen.core.http1 import MAX_HEAD
from loadgen.core.outcome import Outcome
from tests.helpers.response_bytes import DONE, HEAD, answer, chunked, delta, event, facts, read, slices, streamed

BODY = answer("Hello", " world")
SIZED = HEAD + b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
GOOD = (Outcome.OK, 200, 2)


def outcome(wire: bytes) -> tuple[object, ...]:
    return facts(read([wire], closed=True)[1])[:3]


# -- heads (RFC 9112)


@pytest.mark.parametrize("line", [b"http/1.1 200 OK", b"HTTP/1.x 200 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 200OK"])
def test_a_status_line_is_exact(line: bytes) -> None:
    assert outcome(line + b"\r\n\r\n" + BODY)[0] is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("value", [b" chunked \t", b"chunked", b"\r\n chunked", b" \r\n\tchunked"])
def test_space_around_a_headers_value_is_none_of_it_even_across_lines(value: bytes) -> None:
    assert outcome(HEAD + b"Transfer-Encoding:" + value + b"\r\n\r\n" + chunked(BODY)) == GOOD


def test_a_folded_header_is_not_one_of_its_own() -> None:
    assert outcome(HEAD + b"X-Folded: a\r\n no colon here\r\n Content-Length: 3\r\n\r\n" + BODY) == GOOD


@pytest.mark.parametrize("second", [b"Content-Length: 5", b"Content-Length:", b"Content-Length: 9999999999999999"])
def test_two_lengths_or_none_at_all_or_one_out_of_range_are_no_length(second: bytes) -> None:
    assert outcome(SIZED + second + b"\r\n\r\n" + BODY)[0] is Outcome.PROTOCOL_ERROR


def test_the_same_length_twice_and_leading_zeros_are_one_length() -> None:
    assert outcome(SIZED + b"Content-Length: %040d\r\n\r\n" % len(BODY) + BODY) == GOOD


def test_chunks_win_over_a_length_wherever_it_stands() -> None:
    for lines in (
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0",
    ):
        assert outcome(HEAD + lines + b"\r\n\r\n" + chunked(BODY)) == GOOD


def test_nothing_of_an_interim_response_is_said_of_the_final_one() -> None:
    interim = (
        b"HTTP/1.0 103 Early\r\nContent-Type: application/json\r\nContent-Length: 7\r\nContent-Encoding: gzip\r\n\r\n"
    )
    response, record = read([interim + streamed(BODY)])
    assert facts(record)[:3] == GOOD
    assert response.keep_alive
    _, record = read([interim], closed=True)
    assert (record.outcome, record.status) == (Outcome.PROTOCOL_ERROR, 0)


def test_a_head_that_is_none_has_no_status() -> None:
    _, record = read([b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"])
    assert (record.outcome, record.status) == (Outcome.PROTOCOL_ERROR, 0)


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_that_has_no_body_needs_no_decoding(status: int) -> None:
    response, record = read([b"HTTP/1.1 %d No\r\nContent-Encoding: gzip\r\n\r\n" % status])
    assert (response.complete, response.wants_reader) == (True, False)
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
def test_the_connection_header_is_a_list_in_which_close_wins(line: bytes, kept: bool) -> None:
    assert read([SIZED + line + b"\r\n\r\n" + BODY])[0].keep_alive is kept


def test_chunks_from_http_1_0_are_read_and_the_connection_is_not_used_again() -> None:
    wire = CHUNKED.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n\r\n" + chunked(BODY)
    response, record = read([wire])
    assert facts(record)[:3] == GOOD
    assert not response.keep_alive


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"timeout=99999999", 10**6), (b"xtimeout=5", 0), (b"x timeout=5", 0), (b"timeout=5, timeout=7", 7)],
)
def test_how_long_a_connection_may_rest_is_an_option_of_its_own(value: bytes, seconds: int) -> None:
    response, _ = read([SIZED + b"Keep-Alive: " + value + b"\r\n\r\n" + BODY])
    assert response.keep_alive_ns == seconds * 10**9


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_a_head_is_too_long_in_one_piece_as_in_many(step: int) -> None:
    for surplus, expected in ((0, GOOD), (1, (Outcome.PROTOCOL_ERROR, 0, 0))):
        room = MAX_HEAD + surplus - len(CHUNKED) - len(b"X: \r\n\r\n")
        wire = CHUNKED + b"X: " + b"x" * room + b"\r\n\r\n" + chunked(BODY)
        assert facts(read(slices(wire, step))[1])[:3] == expected


# -- chunks


@pytest.mark.parametrize("size", [b"5 5", b"5\tx", b"5 x;y", b"5\r"])
def test_nothing_but_an_extension_follows_the_size_of_a_chunk(size: bytes) -> None:
    assert outcome(CHUNKED + b"\r\n" + size + b"\r\ndata:\r\n0\r\n\r\n")[0] is Outcome.PROTOCOL_ERROR


def test_a_tab_may_stand_before_the_extension_of_a_chunk() -> None:
    assert outcome(CHUNKED + b"\r\n%x\t;a=b\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)) == GOOD


def test_a_status_stays_the_outcome_when_its_framing_breaks() -> None:
    response, record = read([b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusyxyz\r\n"])
    assert (record.outcome, record.status, record.detail) == (Outcome.STATUS, 503, "busy")
    assert not response.keep_alive


# -- events (the event stream format, and JSON)


def test_a_field_that_is_only_the_word_data_is_an_empty_line_of_data() -> None:
    assert outcome(CHUNKED + b"\r\n" + chunked(BODY.replace(b"data: {", b"data\ndata: {"))) == GOOD
    assert not read([CHUNKED + b"\r\n" + chunked(b"data\n" + DONE)])[1].done_seen


@pytest.mark.parametrize(
    "fields", [{"content": "\x7fx"}, {"tool_calls": [{"function": {"arguments": "\x7fx"}}]}, {"refusal": "\x7fx"}]
)
def test_bytes_that_are_no_utf8_are_read_as_replaced_whoever_reads_them(fields: dict[str, object]) -> None:
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
def test_what_is_no_json_is_no_event_even_where_nobody_looks(payload: bytes) -> None:
    assert outcome(streamed(delta(content="a") + b"data: " + payload + b"\n\n" + delta("stop"))) == (
        Outcome.PROTOCOL_ERROR,
        200,
        1,
    )


@pytest.mark.parametrize("key", [b'"content"', b'"refusal"', b'"tool_calls":[],"content"', b'"\\u0063ontent"'])
def test_half_a_surrogate_pair_is_json_whoever_reads_it(key: bytes) -> None:
    body = b'data: {"choices":[{"delta":{%s:"\\ud83d"},"finish_reason":"\\udc00top"}]}\n\n' % key
    refused = key == b'"refusal"'
    _, record = read([streamed(body)])
    assert (record.outcome, record.finish_reason) == (Outcome.OK, "?top")
    assert (record.content_events, record.other_events) == (not refused, refused)
    error = b'data: {"error":"\\ud83d"}\n\n'
    assert read([streamed(error)])[1].detail == '"\\ud83d"'


def test_an_error_is_one_however_it_is_spelled() -> None:
    body = delta(content="a") + b'data: {"object": "\\u0065rror", "message": "no"}\n\n' + delta("stop")
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
def test_of_a_key_that_is_given_twice_the_last_counts(payload: bytes, tokens: int) -> None:
    assert read([streamed(b"data: " + payload + b"\n\n" + DONE)])[1].events == tokens


def test_of_two_counts_the_last_counts() -> None:
    counts = (
        b'{"choices": [], "usage": {"completion_tokens": 5, "completion_tokens": 7}, "usage": {"prompt_tokens": 3}}'
    )
    _, record = read([streamed(b"data: " + counts + b"\n\n")])
    assert (record.prompt_tokens, record.completion_tokens) == (3, -1)


def test_plain_json_of_every_kind_is_passed_over() -> None:
    extra = {"a": [1, -2.5, 1e-7, True, False, None, '\\"/\b\f\n\r\té😀', {"b": [], "c": {}}], "d": 2**60}
    _, record = read([streamed(event(extra=extra, choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}]))])
    assert facts(record)[:3] == (Outcome.OK, 200, 1)
