"""The client holds only a limited amount of what a server sends."""

import asyncio
import contextlib

import pytest

from loadgen.core.http1 import MAX_HEAD, Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.sse import MAX_LINE, MAX_SAMPLE
from loadgen.errors import Unreachable
from loadgen.util import http_client
from tests.helpers.response_bytes import HEAD, delta, event, streamed
from tests.helpers.scripted_server import read_request, serving

MIB = 1 << 20
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more", "limit"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 1021 + b"\r\n", MAX_HEAD),
        (HEAD + b"\r\n", b"x" * MIB, MAX_LINE),
        (HEAD + b"\r\n", b"data: " + b"x" * MIB + b"\n", MAX_LINE),
        (JSON, b"x" * MIB, MAX_LINE),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 1024, MAX_HEAD),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx", b" " * 1024, MAX_HEAD),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x" * 1024, MAX_HEAD),
    ],
    ids=["head", "line", "event of many lines", "JSON", "chunk size", "chunk end", "trailer"],
)
def test_endless_responses_are_protocol_errors(begin: bytes, more: bytes, limit: int) -> None:
    response, record = Response(), Record(due=1)
    response.begin(record)
    response.feed(begin, 1)
    for _ in range(limit // len(more) + 2):
        response.feed(more, 2)
    assert response.complete
    assert record.outcome is Outcome.PROTOCOL_ERROR


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n" + LONG.encode(),
        streamed(delta(content="a") + event(error={"message": LONG}), 5000),
        streamed(delta(content="a") + b"data: " + LONG.encode() + b"\n\n", 5000),
    ],
)
def test_long_error_is_kept_as_a_sample(wire: bytes) -> None:
    response, record = Response(), Record(due=1)
    response.begin(record)
    response.feed(wire, 1)
    assert len(record.detail or "") in range(100, MAX_SAMPLE + 1)


async def test_a_probe_takes_no_answer_without_end() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * MIB)
                await writer.drain()

    async with serving(endless) as url:
        with pytest.raises(Unreachable, match="MiB"):
            await http_client.get(url, timeout_s=60)
