"""One connection of a test server: split requests, one at a time, refusals that name the field."""

import asyncio
import json

import pytest

from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import MAX_HEAD_BYTES, Request, RequestReader

RAW = (
    b"POST /path?query HTTP/1.1\r\nHost: x\r\nx-request-ID: run-12\r\nContent-length: 4\r\n\r\nbody"
)


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written, self.closed = b"", False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


class Collecting(ServerConnection):
    """Keeps the requests, and does not answer them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.output = Transport()
        self.connection_made(self.output)  # type: ignore[arg-type]

    def handle(self, request: Request) -> None:
        self.requests.append(request)


def test_a_request_is_read_wherever_its_bytes_are_cut() -> None:
    for cut in range(1, len(RAW)):
        connection = Collecting()
        connection.data_received(RAW[:cut])
        assert not connection.requests
        connection.data_received(RAW[cut:])
        (request,) = connection.requests
        assert (request.method, request.path, request.id, request.body) == (
            "POST",
            "/path",
            b"run-12",
            b"body",
        )


def test_headers_may_be_missing() -> None:
    connection = Collecting()
    connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert (connection.requests[0].id, connection.requests[0].body) == (b"", b"")


@pytest.mark.parametrize(
    ("sent", "index"),
    [
        (b"run-12", 12),
        (b"loadgen-4f2a-0", 0),
        (b"7", 7),
        (b"run-x", None),
        (b"", None),
        (b"a7", None),
    ],
)
def test_the_number_after_the_last_hyphen_of_an_id_is_the_index(
    sent: bytes, index: int | None
) -> None:
    reader = RequestReader()
    reader.feed(b"GET / HTTP/1.1\r\nX-Request-Id: %b\r\n\r\n" % sent)
    request = reader.next_request()
    assert request is not None
    assert request.index == index


async def test_pipelined_request_waits_for_the_answer() -> None:
    connection = Collecting()
    connection.data_received(RAW)
    connection.data_received(RAW)
    assert len(connection.requests) == 1
    connection.reply(b"{}")
    await asyncio.sleep(0)
    assert len(connection.requests) == 2
    assert connection.requests[1].arrival_ns >= connection.requests[0].arrival_ns


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"HELO x\r\n\r\n", "request line"),
        (b"GET /\r\n\r\n", "request line"),
        (b"\x16\x03\x01", "request line"),
        (b"x" * (MAX_HEAD_BYTES + 1), "headers"),
    ],
)
async def test_invalid_request_is_refused_and_closes_the_connection(
    sent: bytes, named: str
) -> None:
    connection = Collecting()
    connection.data_received(sent)
    assert (
        json.loads(connection.output.written.partition(b"\r\n\r\n")[2])["error"]["param"] == named
    )
    assert connection.output.closed


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_refused_by_name(body: bytes) -> None:
    class Reads(Collecting):
        def handle(self, request: Request) -> None:
            self.reply(str(request.json).encode())

    connection = Reads()
    connection.data_received(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert connection.output.written.startswith(b"HTTP/1.1 400 ")
    assert (
        json.loads(connection.output.written.partition(b"\r\n\r\n")[2])["error"]["param"] == "body"
    )
