"""HTTP framing: status, headers, length, chunks, close; whatever the slices."""

import pytest

from loadgen.core import event_flags
from loadgen.core.event_flags import CHOICE, CONTENT, EMPTY, FINISH, ROLE
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers.response_bytes import (
    HEAD,
    answer,
    chunked,
    delta,
    facts,
    read,
    slices,
    streamed,
)

TWO = answer("Hello", " world")
OPEN = delta(content="a") + delta("stop")  # neither usage nor [DONE]


@pytest.mark.parametrize(
    ("wire", "closed"),
    [
        (streamed(TWO), False),
        (HEAD + b"Content-Length: %d\r\n\r\n" % len(TWO) + TWO, False),
        (HEAD + b"\r\n" + TWO, True),
    ],
    ids=["chunked", "length", "until close"],
)
def test_response_reads_the_same_in_any_framing(wire: bytes, closed: bool) -> None:
    for step in (1, 2, 3, 7, 64, len(wire)):
        _, record = read(slices(wire, step), closed=closed)
        says = [
            CHOICE | ROLE | EMPTY,
            CHOICE | CONTENT,
            CHOICE | CONTENT,
            CHOICE | FINISH,
            event_flags.DONE,
        ]
        assert facts(record) == (Outcome.OK, 200, 2, 2, 0, 0, "stop", -1, -1, -1, True, says), step


def test_response_reads_the_same_cut_in_two_anywhere() -> None:
    wire = streamed(TWO, 33)
    for cut in range(1, len(wire)):
        response, record = read([wire[:cut], wire[cut:]])
        assert response.complete, cut
        assert response.keep_alive, cut
        assert facts(record)[:3] == (Outcome.OK, 200, 2), cut


def test_stamp_is_of_the_read_that_completed_the_event() -> None:
    wire = streamed(answer("a", "b"), 10_000)
    second = wire.index(b'"b"') + 10
    _, record = read([wire[: wire.index(b'"a"')], wire[wire.index(b'"a"') : second], wire[second:]])
    assert record.first_byte == 1_000_000
    assert record.stamps == [2_000_000, 3_000_000]
    assert (record.first_token, record.last_token, record.closed) == (
        2_000_000,
        3_000_000,
        3_000_000,
    )


def test_chunk_extensions_and_trailers_are_ignored() -> None:
    body = b"%X;name=value\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (len(TWO), TWO)
    response, record = read([HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + body])
    assert record.outcome is Outcome.OK
    assert response.keep_alive


@pytest.mark.parametrize(
    ("header", "reusable", "seconds"),
    [
        (b"", True, 0),
        (b"Connection: close\r\n", False, 0),
        (b"connection: Keep-Alive\r\nKeep-Alive: timeout=5, max=100\r\n", True, 5),
        (b"Keep-Alive: max=3, timeout=12\r\n", True, 12),
        (b"Keep-Alive: timeout=\r\n", True, 0),
        (b"Keep-Alive: timeout=0\r\n", False, 0),  # at once; not "no limit"
        (b"Keep-Alive: timeout=5, max=0\r\n", False, 5),  # no further request
    ],
)
def test_keep_alive_follows_the_fields(header: bytes, reusable: bool, seconds: int) -> None:
    response, _ = read([HEAD + header + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(TWO)])
    assert (response.keep_alive, response.keep_alive_ns) == (reusable, seconds * 10**9)


def test_http_1_0_closes_without_keep_alive() -> None:
    old = HEAD.replace(b"1.1", b"1.0") + b"Content-Length: %d\r\n" % len(TWO)
    assert not read([old + b"\r\n" + TWO])[0].keep_alive
    assert read([old + b"Connection: keep-alive\r\n\r\n" + TWO])[0].keep_alive


def test_surplus_bytes_spoil_only_the_connection() -> None:
    response, record = read([streamed(TWO) + b"HTTP/1.1 200 OK\r\n"])
    assert record.outcome is Outcome.OK
    assert not response.keep_alive


def test_interim_response_is_skipped() -> None:
    _, record = read([b"HTTP/1.1 100 Continue\r\n\r\n" + streamed(TWO)])
    assert facts(record)[:3] == (Outcome.OK, 200, 2)


def test_response_object_is_used_again() -> None:
    response, first = read([streamed(TWO)])
    second = type(first)(due=1)
    response.begin(second)
    response.feed(streamed(answer("x", finish="length")), 5_000_000)
    assert facts(first)[:3] == (Outcome.OK, 200, 2)
    assert facts(second)[:3] == (Outcome.OK, 200, 1)
    assert second.finish_reason == "length"


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503])
def test_status_but_200_is_the_outcome_with_a_sample(status: int) -> None:
    body = b'{"error": {"message": "no"}}' + b" " * 5000
    wire = (
        b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % (status, len(body))
        + body
    )
    for step in (1, len(wire)):
        response, record = read(slices(wire, step))
        assert (record.outcome, record.status) == (Outcome.STATUS, status)
        assert record.detail is not None
        assert record.detail.startswith('{"error"')
        assert len(record.detail) == 1024
        assert response.keep_alive


def test_status_stays_the_outcome_if_its_body_is_cut_off() -> None:
    _, record = read([b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nbusy"], closed=True)
    assert (record.outcome, record.status, record.detail) == (Outcome.STATUS, 503, "busy")


@pytest.mark.parametrize(
    ("wire", "outcome", "detail"),
    [
        (b"", Outcome.REFUSED, "without a response"),
        (HEAD, Outcome.PROTOCOL_ERROR, "inside the response head"),
        (streamed(OPEN)[:-5], Outcome.TRUNCATED, "mid-stream"),
        (HEAD + b"Content-Length: 9999\r\n\r\n" + OPEN, Outcome.TRUNCATED, "mid-stream"),
        (HEAD + b"\r\n" + delta(content="a"), Outcome.TRUNCATED, "without a finish reason"),
        (HEAD + b"\r\n", Outcome.EMPTY, "no token"),
    ],
)
def test_early_end_of_a_connection_has_its_outcome(
    wire: bytes, outcome: Outcome, detail: str
) -> None:
    response, record = read([wire] if wire else [], closed=True)
    assert record.outcome is outcome
    assert record.detail is not None
    assert detail in record.detail
    assert not response.keep_alive


def test_reset_is_no_clean_end_of_a_body() -> None:
    _, record = read([HEAD + b"\r\n" + OPEN], closed=True, error="Connection reset by peer")
    assert (record.outcome, record.detail) == (Outcome.TRUNCATED, "Connection reset by peer")


@pytest.mark.parametrize(
    ("wire", "detail"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not an HTTP/1 response"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "not an HTTP status"),
        (b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", "without a colon"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "head too long"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "hexadecimal"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n\r\n", "without a size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n", "out of range"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "longer than its size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000, "too long"),
    ],
)
def test_bytes_of_no_protocol_are_a_protocol_error(wire: bytes, detail: str) -> None:
    response, record = read([wire])
    assert record.outcome is Outcome.PROTOCOL_ERROR
    assert record.detail is not None
    assert detail in record.detail
    assert response.complete
    assert not response.keep_alive


@pytest.mark.parametrize("header", [b"Content-Encoding: gzip", b"Transfer-Encoding: gzip, chunked"])
@pytest.mark.parametrize(
    ("status", "outcome"), [(b"200 OK", Outcome.PROTOCOL_ERROR), (b"503 No", Outcome.STATUS)]
)
def test_encoded_body_fails_and_names_the_transport_that_reads_it(
    header: bytes, status: bytes, outcome: Outcome
) -> None:
    wire = b"HTTP/1.1 %b\r\n%b\r\n\r\nzipped bytes" % (status, header)
    for step in (1, len(wire)):
        response, record = read(slices(wire, step))
        assert (record.outcome, record.status) == (outcome, int(status[:3]))
        assert "--transport aiohttp" in (record.detail or "")
        assert (response.complete, response.keep_alive) == (True, False)


def test_bytes_without_a_stamp_lie_between_two_times() -> None:
    response, record = Response(), Record(due=1)
    response.begin(record)
    response.feed_unstamped(HEAD + b"\r\n", 2, 3)
    response.feed_unstamped(TWO, 4, 5)
    response.feed_unstamped(None, 6, 7)
    assert facts(record)[:3] == (Outcome.OK, 200, 2)
    assert (record.stamps, record.read_times) == ([5, 5], [5, 5])
    assert (record.earliest, record.user_stamped) == ([4, 4], 2)


def test_an_answer_in_one_piece_without_a_stamp_came_before_its_end() -> None:
    response, record = Response(), Record(due=1)
    record.is_whole = True
    response.begin(record)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    body = b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}'
    response.feed_unstamped(head + body, 2, 3)
    response.feed_unstamped(None, 2, 3)
    assert (record.outcome, record.stamps, record.earliest) == (Outcome.OK, [3], [2])


def test_a_response_head_is_kept_only_where_it_is_asked_for() -> None:
    for keeps in (False, True):
        response, record = Response(), Record()
        record.keeps_head = keeps
        response.begin(record)
        response.feed(b"HTTP/1.1 200 OK\r\nX-Session-Token: 7\r\nContent-Length: 5\r\n\r\n", 1)
        assert record.response_head == (
            b"HTTP/1.1 200 OK\r\nX-Session-Token: 7\r\nContent-Length: 5\r" if keeps else None
        )
