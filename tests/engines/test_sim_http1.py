"""The request reader: bytes in, requests out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.sim import http1
from loadgen.engines.sim.http1 import HttpError, Request, RequestReader

BYTES = (
    b"POST /a?q=1 HTTP/1.1\r\nHost: x\r\nCONTENT-LENGTH: 5\r\n\r\nab\r\n\n"
    b"GET /b HTTP/1.1\r\nConnection: Close\r\n\r\n"
    b"POST /c HTTP/1.1\r\ncontent-length:0\r\n\r\n"
)
REQUESTS = [
    Request("POST", "/a", True, b"ab\r\n\n"),
    Request("GET", "/b", False, b""),
    Request("POST", "/c", True, b""),
]


@given(st.lists(st.integers(0, len(BYTES)), max_size=8))
def test_requests_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    reader, found = RequestReader(), []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(BYTES)]):
        reader.feed(BYTES[start:end])
        while (request := reader.next_request()) is not None:
            found.append(request)
    assert found == REQUESTS


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nspace : 1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"x" * (http1.MAX_HEAD_BYTES + 1), 431),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: int) -> None:
    reader = RequestReader()
    reader.feed(data)
    with pytest.raises(HttpError) as refused:
        reader.next_request()
    assert refused.value.status == status
    assert http1.PHRASES[status]


def test_what_waits_is_bounded() -> None:
    reader = RequestReader()
    reader.feed(bytes(http1.MAX_HEAD_BYTES + http1.MAX_BODY_BYTES))
    with pytest.raises(HttpError):
        reader.feed(b"x")
