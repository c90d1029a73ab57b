"""One connection of a test server: requests cut anywhere, one at a time, refusals that name the field."""

import asyncio
import json

import pytest

from loadgen.testing.ask import MAX_HEAD_BYTES, Ask
from loadgen.testing.exchange import Exchange

RAW = b"POST /path?query HTTP/1.1\r\nHost: x\r\nx-request-ID: run-12\r\nContent-length: 4\r\n\r\nbody"


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


class Asked(Exchange):
    """Keeps what is asked, and answers nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Ask] = []
        self.output = Transport()
        self.connection_made(self.output)  # type: ignore[arg-type]

    def asked(self, ask: Ask) -> None:
        self.requests.append(ask)


def test_a_request_is_read_wherever_its_bytes_are_cut() -> None:
    for cut in range(1, len(RAW)):
        exchange = Asked()
        exchange.data_received(RAW[:cut])
        assert not exchange.requests
        exchange.data_received(RAW[cut:])
        (request,) = exchange.requests
        assert (request.method, request.path, request.id, request.body) == ("POST", "/path", b"run-12", b"body")


def test_headers_may_be_missing() -> None:
    exchange = Asked()
    exchange.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert (exchange.requests[0].id, exchange.requests[0].body) == (b"", b"")


@pytest.mark.parametrize(
    ("sent", "index"),
    [(b"run-12", 12), (b"loadgen-4f2a-0", 0), (b"7", 7), (b"run-x", None), (b"", None), (b"a7", None)],
)
def test_the_number_after_the_last_hyphen_of_an_id_is_the_index(sent: bytes, index: int | None) -> None:
    ask = Ask.take(bytearray(b"GET / HTTP/1.1\r\nX-Request-Id: %b\r\n\r\n" % sent))
    assert ask is not None
    assert ask.index == index


async def test_what_is_sent_ahead_waits_for_the_answer() -> None:
    exchange = Asked()
    exchange.data_received(RAW)
    exchange.data_received(RAW)
    assert len(exchange.requests) == 1
    exchange.reply(b"{}")
    await asyncio.sleep(0)
    assert len(exchange.requests) == 2
    assert exchange.requests[1].arrival_ns >= exchange.requests[0].arrival_ns


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"HELO x\r\n\r\n", "request line"),
        (b"GET /\r\n\r\n", "request line"),
        (b"\x16\x03\x01", "request line"),
        (b"x" * (MAX_HEAD_BYTES + 1), "headers"),
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_closed(sent: bytes, named: str) -> None:
    exchange = Asked()
    exchange.data_received(sent)
    assert json.loads(exchange.output.written.partition(b"\r\n\r\n")[2])["error"]["param"] == named
    assert exchange.output.closed


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_refused_by_name(body: bytes) -> None:
    class Reads(Asked):
        def asked(self, ask: Ask) -> None:
            self.reply(str(ask.json).encode())

    exchange = Reads()
    exchange.data_received(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert exchange.output.written.startswith(b"HTTP/1.1 400 ")
    assert json.loads(exchange.output.written.partition(b"\r\n\r\n")[2])["error"]["param"] == "body"
