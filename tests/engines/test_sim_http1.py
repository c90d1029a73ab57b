"""The simulator's request reader turns bytes into requests."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.sim import http1
from loadgen.engines.sim.http1 import RequestError, RequestReader

BYTES = (
    b"POST /a?q=1 HTTP/1.1\r\nHost: x\r\nCONTENT-LENGTH: 5\r\n\r\nab\r\n\n"
    b"GET /b HTTP/1.1\r\nConnection: Close\r\n\r\n"
    b"POST /c HTTP/1.1\r\ncontent-length:0\r\n\r\n"
)
REQUESTS = [("POST", "/a", True, b"ab\r\n\n"), ("GET", "/b", False, b""), ("POST", "/c", True, b"")]


@given(st.lists(st.integers(0, len(BYTES)), max_size=8))
def test_requests_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    reader, found = RequestReader(), []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(BYTES)]):
        reader.feed(BYTES[start:end])
        while (request := reader.next_request()) is not None:
            found.append((request.method, request.path, request.keep_alive, request.body))
    assert found == REQUESTS


@pytest.mark.parametrize(
    ("data", "status", "field"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400, "request line"),
        (b"\x16\x03\x01", 400, "request line"),
        (b"GET /\r\n\r\n", 400, "request line"),
        (b"GET / HTTP/1.0\r\n\r\n", 505, "request line"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, "headers"),
        (b"GET / HTTP/1.1\r\nspace : 1\r\n\r\n", 400, "headers"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "headers"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413, "body"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411, "headers"),
        (b"x" * (http1.MAX_HEAD_BYTES + 1), 431, "headers"),
    ],
)
def test_invalid_request_is_refused(data: bytes, status: int, field: str) -> None:
    reader = RequestReader()
    reader.feed(data)
    with pytest.raises(RequestError) as refused:
        reader.next_request()
    assert (refused.value.status, refused.value.param) == (status, field)
    assert http1.PHRASES[status]


def test_buffered_bytes_are_limited() -> None:
    reader = RequestReader()
    reader.feed(bytes(http1.MAX_HEAD_BYTES + http1.MAX_BODY_BYTES))
    with pytest.raises(RequestError):
        reader.feed(b"x")
