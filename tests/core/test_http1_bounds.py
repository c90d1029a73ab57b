"""Bounds: no response grows without end, and a status stays the outcome whatever follows."""

import pytest

from loadgen.core.http1 import EVENTS_PER_TOKEN, MAX_EVENTS, MAX_RESPONSE, Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.sse import MAX_LINE
from tests.helpers.response_bytes import DONE, HEAD, answer, chunked, delta, read, streamed

MIB = 1 << 20
PING = (b":" + b"." * 1022 + b"\n") * 1024  # comments of a KiB, a MiB in all


def begun(head: bytes = HEAD + b"\r\n") -> tuple[Response, Record]:
    response, record = Response(), Record(due=1)
    response.begin(record)
    response.feed(head, 1)
    return response, record


def fed(response: Response, data: bytes) -> int:
    """Feed the same bytes until the response ends; returns how many it took."""
    taken = 0
    while not response.complete:
        response.feed(data, 2)
        taken += len(data)
    return taken


def test_endless_response_fails_at_its_bound() -> None:
    response, record = begun()
    response.feed(delta(content="a"), 1)
    assert MAX_RESPONSE - MIB <= fed(response, PING) <= MAX_RESPONSE + MIB
    assert (record.outcome, record.detail) == (
        Outcome.PROTOCOL_ERROR,
        "the response is larger than 1024 MiB",
    )
    assert not response.keep_alive
    assert record.events == 1


def test_answer_of_endless_events_fails_at_its_bound() -> None:
    response, record = Response(), Record(output_tokens=100, due=1)
    response.begin(record)
    response.feed(HEAD + b"\r\n", 1)
    fed(response, delta(content="a") * 1024)
    bound = MAX_EVENTS + 100 * EVENTS_PER_TOKEN
    assert bound < record.events <= bound + 1024
    assert (record.outcome, record.detail) == (
        Outcome.PROTOCOL_ERROR,
        f"more than {bound} events",
    )
    assert not response.keep_alive


def test_bound_is_per_response_not_per_connection() -> None:
    response, _ = begun()
    for _ in range(MAX_RESPONSE // len(PING) - 2):
        response.feed(PING, 2)
    record = Record(due=1)
    response.begin(record)
    response.feed(HEAD + b"\r\n" + PING * 4 + answer("a"), 3)
    response.eof(4)
    assert record.outcome is Outcome.OK


@pytest.mark.parametrize("lines", [b"data: more\n", b"data:\n"], ids=["of text", "empty"])
@pytest.mark.slow
def test_event_of_endless_lines_fails(lines: bytes) -> None:
    response, record = begun()
    block = lines * (MIB // len(lines))
    assert fed(response, block) <= 8 * MAX_LINE
    assert (record.outcome, record.detail) == (Outcome.PROTOCOL_ERROR, "an event without end")


def test_bytes_beyond_the_end_change_no_outcome() -> None:
    response, record = read([streamed(answer("a"))])
    for _ in range(MAX_RESPONSE // len(PING) + 2):
        response.feed(PING, 9)
    assert record.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "closed"),
    [(b"4\r\nbusy\r\nwrong\r\n", False), (b"4\r\nbusy\r\n", True), (b"4\r\nbusyX\r\n", False)],
    ids=["no chunk size", "cut off", "longer than its size"],
)
def test_status_is_the_outcome_however_its_body_ends(body: bytes, closed: bool) -> None:
    wire = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    response, record = read([wire], closed=closed)
    assert (record.outcome, record.status, record.detail) == (Outcome.STATUS, 503, "busy")
    assert not response.keep_alive


def test_status_is_the_outcome_if_its_body_times_out() -> None:
    response, record = begun(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nbusy")
    response.abandon(Outcome.TIMEOUT, "no end in time", 9)
    assert (record.outcome, record.detail) == (Outcome.STATUS, "busy")


def test_incomplete_head_has_no_status() -> None:
    response, record = begun(b"HTTP/1.1 503 Busy\r\n")
    response.abandon(Outcome.TIMEOUT, "no end in time", 9)
    assert record.outcome is Outcome.TIMEOUT


def test_broken_head_has_no_status() -> None:
    _, record = read([b"HTTP/1.1 503 Busy\r\nno colon here\r\n\r\n"])
    assert record.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("framing", ["until close", "length", "chunked"])
def test_stream_that_ends_inside_an_event_is_truncated(framing: str) -> None:
    cut = (delta(content="a") + delta(content="b"))[:-20]
    wire = {
        "until close": HEAD + b"\r\n" + cut,
        "length": HEAD + b"Content-Length: %d\r\n\r\n" % len(cut) + cut,
        "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(cut),
    }[framing]
    _, record = read([wire], closed=True)
    assert record.outcome is Outcome.TRUNCATED
    assert str(record.detail).startswith('the stream ended inside an event: {"id":')
    assert record.events == 1


def test_broken_event_before_the_end_is_a_protocol_error() -> None:
    _, record = read([HEAD + b"\r\n" + delta(content="a") + b"data: {\n\n" + DONE], closed=True)
    assert record.outcome is Outcome.PROTOCOL_ERROR
