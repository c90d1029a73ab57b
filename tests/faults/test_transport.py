"""The transport: one Record with the right Outcome for whatever a server does; neighbours stay unaffected."""

import asyncio
import errno
import gzip
import socket
import ssl
import struct

import pytest
import trustme

from loadgen.outcomes import Outcome
from loadgen.transport import Timeouts
from tests.faults.sending import S, Sender
from tests.faults.servers import GOOD, answering, read_request, serving
from tests.wire.bytes_of import HEAD, answer, chunked, delta


@pytest.fixture
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections may be used again at once."""
    monkeypatch.setattr("loadgen.transport.REST_NS", 0)


@pytest.mark.usefixtures("no_rest")
async def test_connections_are_opened_ahead_and_used_again() -> None:
    async with serving(answering(GOOD)) as url, Sender(url) as sender:
        assert await sender.transport.warm(3) == 3
        for _ in range(5):
            record = await sender.one()
            assert record.outcome is Outcome.OK
            assert record.reused
            assert record.connect_ns == 0
        assert sender.transport.opened == 3


async def test_a_connection_opened_late_has_its_time_measured() -> None:
    async with serving(answering(GOOD)) as url, Sender(url) as sender:
        record = await sender.one()
        assert record.outcome is Outcome.OK
        assert not record.reused
        assert 0 < record.connect_ns <= record.sent - record.due
        assert (
            record.due <= record.sent <= record.first_byte <= record.first_token <= record.last_token <= record.closed
        )
        assert sender.transport.opened == 1


async def test_a_hundred_and_fifty_requests_are_in_flight_at_once() -> None:
    """aiohttp's own default of 100 connections would hold the rest back."""
    waiting, everybody = [0], asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        waiting[0] += 1
        if waiting[0] == 150:
            everybody.set()
        await everybody.wait()
        writer.write(GOOD)
        await writer.drain()

    async with serving(script) as url, Sender(url) as sender:
        sender.start(150)
        records = await sender.ended(150)
        assert {record.outcome for record in records} == {Outcome.OK}


async def test_the_request_is_what_the_api_expects() -> None:
    seen = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await read_request(reader):
            seen.append(request)
            writer.write(GOOD)

    async with serving(script) as url, Sender(url) as sender:
        await sender.one()
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Accept-Encoding: identity" in head
    assert b'"stream":true' in body
    assert b'"include_usage":true' in body


async def test_nobody_listening_is_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with Sender(f"http://127.0.0.1:{unused.getsockname()[1]}") as sender:
            assert await sender.transport.warm(2) == 0
            record = await sender.one()
            assert record.outcome is Outcome.REFUSED
            assert record.sent == 0
            assert record.closed >= record.due


async def test_a_name_that_does_not_resolve_is_a_dns_error() -> None:
    async with Sender("http://no-such-host.invalid:8000") as sender:
        assert (await sender.one()).outcome is Outcome.DNS_ERROR


async def test_plain_http_behind_https_is_a_tls_error() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(script) as url, Sender(url.replace("http:", "https:")) as sender:
        assert (await sender.one()).outcome is Outcome.TLS_ERROR


@pytest.mark.usefixtures("no_rest")
async def test_tls_is_verified_unless_told_otherwise() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    async with serving(answering(GOOD), tls) as url:
        async with Sender(url) as sender:
            assert (await sender.one()).outcome is Outcome.TLS_ERROR
        async with Sender(url, verify_tls=False) as sender:
            await sender.transport.warm(1)
            for _ in range(3):
                record = await sender.one()
                assert (record.outcome, record.reused) == (Outcome.OK, True)


async def test_a_server_that_accepts_nobody_is_a_connect_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with socket.socket() as first, socket.socket() as second:
            for waiting in (first, second):  # the backlog is full with these
                waiting.setblocking(False)
                waiting.connect_ex(address)
            async with Sender(f"http://127.0.0.1:{address[1]}", Timeouts(connect=S // 10)) as sender:
                assert (await sender.one()).outcome is Outcome.CONNECT_TIMEOUT


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes = b"") -> None:
    await read_request(reader)
    writer.write(first)
    await writer.drain()
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [(b"", Outcome.REFUSED), (HEAD + b"\r\n" + delta(content="a"), Outcome.TRUNCATED)],
    ids=["before headers", "in mid-stream"],
)
async def test_a_reset_is_told_by_where_it_happened(sent: bytes, outcome: Outcome) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _reset(reader, writer, sent)

    async with serving(script) as url, Sender(url) as sender:
        await sender.transport.warm(1)
        assert (await sender.one()).outcome is outcome


async def test_an_end_before_the_finish_reason_is_truncated() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(GOOD[:-5])
        await writer.drain()

    async with serving(script) as url, Sender(url) as sender:
        assert (await sender.one()).outcome is Outcome.TRUNCATED


@pytest.mark.parametrize(
    ("sent", "timeouts", "outcome"),
    [
        (b"", Timeouts(connect=S, first_token=S // 10), Outcome.TIMEOUT_FIRST_TOKEN),
        (HEAD + b"\r\n", Timeouts(connect=S, first_token=S // 10), Outcome.TIMEOUT_FIRST_TOKEN),
        (HEAD + b"\r\n" + delta(content="a"), Timeouts(connect=S, stall=S // 10), Outcome.STALLED),
        (HEAD + b"\r\n" + delta(content="a"), Timeouts(connect=S, whole=S // 10), Outcome.TIMEOUT),
    ],
    ids=["no byte", "headers only", "silence after a token", "too long in all"],
)
async def test_silence_ends_with_the_limit_that_it_passed(sent: bytes, timeouts: Timeouts, outcome: Outcome) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(sent)
        await reader.read()

    async with serving(script) as url, Sender(url, timeouts) as sender:
        record = await sender.one()
        assert record.outcome is outcome
        assert record.closed - record.sent >= S // 10


async def test_a_compressed_body_is_read_by_aiohttp_and_said_to_be() -> None:
    zipped = gzip.compress(answer("Hello", " world"))
    reply = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(zipped, 20)
    async with serving(answering(reply)) as url, Sender(url) as sender:
        for _ in range(2):
            record = await sender.one()
            assert (record.outcome, record.events) == (Outcome.OK, 2)
            assert record.by_reader


async def test_a_broken_compressed_body_is_truncated() -> None:
    reply = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"this is no gzip")
    async with serving(answering(reply)) as url, Sender(url) as sender:
        record = await sender.one()
        assert record.outcome is Outcome.TRUNCATED
        assert record.by_reader


async def test_a_connection_rests_before_it_is_used_again() -> None:
    async with serving(answering(GOOD)) as url, Sender(url) as sender:
        for _ in range(2):
            await sender.one()
        assert sender.transport.opened == 2


@pytest.mark.usefixtures("no_rest")
async def test_a_server_that_closes_soon_after_its_response_gets_a_new_connection_for_each_request() -> None:
    closed = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(GOOD)
        await writer.drain()
        writer.close()
        closed.set()

    async with serving(script) as url, Sender(url) as sender:
        assert (await sender.one()).outcome is Outcome.OK
        await closed.wait()
        while sender.transport.reuses:
            await asyncio.sleep(0)
        for _ in range(3):
            assert (await sender.one()).outcome is Outcome.OK
        assert sender.transport.opened == 4


@pytest.mark.usefixtures("no_rest")
@pytest.mark.parametrize("header", [b"Connection: close\r\n", b"Keep-Alive: timeout=1\r\n"])
async def test_a_connection_is_not_used_beyond_what_the_server_allows(header: bytes) -> None:
    async with (
        serving(answering(GOOD.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n", 1))) as url,
        Sender(url) as sender,
    ):
        for _ in range(3):
            assert (await sender.one()).outcome is Outcome.OK
        assert sender.transport.opened == 3


@pytest.mark.usefixtures("no_rest")
async def test_bytes_after_a_response_keep_its_connection_from_the_next_request() -> None:
    async with serving(answering(GOOD + b"surprise")) as url, Sender(url) as sender:
        for _ in range(2):
            assert (await sender.one()).outcome is Outcome.OK
        assert sender.transport.opened == 2


async def test_abandoning_ends_every_stream_in_flight_once() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + b"\r\n" + delta(content="a"))
        await reader.read()

    async with serving(script) as url, Sender(url) as sender:
        await sender.transport.warm(5)
        sender.start(5)
        sender.transport.abandon(Outcome.CANCELLED, "enough")
        records = await sender.ended(5)
        assert [record.outcome for record in records] == [Outcome.CANCELLED] * 5


async def test_a_request_still_connecting_when_the_run_ends_is_cancelled() -> None:
    async with serving(answering(GOOD)) as url, Sender(url) as sender:
        sender.start(2)
        sender.transport.abandon(Outcome.CANCELLED, "enough")
        records = await sender.ended(2)
        assert [record.outcome for record in records] == [Outcome.CANCELLED] * 2


async def test_a_broken_stream_leaves_its_neighbours_alone() -> None:
    number = [0]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number[0] += 1
        if number[0] % 3 == 0:
            await _reset(reader, writer, HEAD + b"\r\n" + delta(content="a"))
        else:
            await answering(GOOD)(reader, writer)

    async with serving(script) as url, Sender(url) as sender:
        await sender.transport.warm(30)
        sender.start(30)
        outcomes = [record.outcome for record in await sender.ended(30)]
        assert outcomes.count(Outcome.OK) == 20
        assert outcomes.count(Outcome.TRUNCATED) == 10


async def test_a_request_abandoned_in_the_turn_it_was_sent_still_ends_once() -> None:
    async with Sender("http://127.0.0.1:9") as sender:
        sender.start(3)
        sender.transport.abandon(Outcome.CANCELLED, "enough")
        records = await sender.ended(3)
        assert [(record.outcome, record.detail) for record in records] == [(Outcome.CANCELLED, "enough")] * 3


@pytest.mark.usefixtures("no_rest")
async def test_a_stream_that_breaks_says_nothing_about_keep_alive() -> None:
    number = [0]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(GOOD)
        await read_request(reader)
        writer.write(GOOD[:200])
        number[0] += 1

    async with serving(script) as url, Sender(url) as sender:
        assert (await sender.one()).outcome is Outcome.OK
        assert (await sender.one()).outcome is Outcome.TRUNCATED
        assert sender.transport.reuses


async def test_running_out_of_file_descriptors_is_our_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answering(GOOD)) as url, Sender(url) as sender:

        async def none_left(*_: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(sender.transport._connector, "connect", none_left)
        record = await sender.one()
        assert record.outcome is Outcome.CLIENT_ERROR
        assert "Too many open files" in (record.detail or "")
