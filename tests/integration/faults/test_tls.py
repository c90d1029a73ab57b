"""TLS: the kernel stamps what the read loop decrypts, and a failed handshake is a failed request
that says why.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import trustme

import loadgen
from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.connection import NO_LINGER
from loadgen.engines.sim.http1 import chunk
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.faulty import serving
from loadgen.testing.replies import STREAM, delta
from tests.helpers.command_line import TOKENIZER
from tests.helpers.fault_requests import TOKENS, UNVERIFIED, S, Sender, assert_good, until
from tests.helpers.timed_server import timed_server
from tests.helpers.tls_session import TlsSession

FLOOR_NS = 50_000  # between the clock that the server reads and the kernel's stamp
LOOPBACK = "127.0.0.1"
READ_BYTES = 1 << 16


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """The context of a server whose authority is not trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(LOOPBACK).configure_cert(context)
    return context


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The authority is trusted, as by users that have added it to those of OpenSSL."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


class TestStamps:
    async def test_every_token_and_every_send_has_a_kernel_stamp(
        self, tls: ssl.SSLContext, tmp_path: Path
    ) -> None:
        with timed_server(tls=tls) as server:
            settings = loadgen.RunSettings(
                base_url=server.url,
                insecure=True,
                backend="openai-chat",
                tokenizer=TOKENIZER,
                random_input_len=16,
                random_output_len=20,
                request_rate=100.0,
                num_prompts=40,
                records=str(tmp_path / "records"),
            )
            result = await loadgen.run(settings)
            records = list(RecordFile(tmp_path / "records"))
            tokens = server.compared(records)
        assert result.tokens.token_events == 40 * 20
        assert result.tokens.user_stamped_events == 0
        assert np.all(tokens.write <= tokens.arrival)
        assert np.all(tokens.arrival <= tokens.read)
        assert np.all(tokens.earliest <= tokens.written + FLOOR_NS)
        # How many depends on how soon the client reads.
        assert np.any(tokens.earliest == tokens.arrival)
        assert all(record.written == record.sent for record in records)

    @pytest.mark.parametrize(
        "fault", ["none", "length", "until-close", "cut-chunking", "byte-by-byte"]
    )
    async def test_each_framing_has_kernel_stamps(self, tls: ssl.SSLContext, fault: str) -> None:
        async with (
            serving(tls=tls) as faulty,
            Sender(faulty.url, route=UNVERIFIED) as sender,
        ):
            record = await sender.one(fault)
            assert (record.outcome, record.events) == (Outcome.OK, TOKENS)
            assert record.user_stamped == 0


class TestCertificate:
    @pytest.mark.usefixtures("trusted")
    async def test_trusted_one_is_accepted(self, tls: ssl.SSLContext) -> None:
        async with serving(tls=tls) as faulty, Sender(faulty.url) as sender:
            assert_good(await sender.one())

    async def test_one_of_an_unknown_authority_is_refused(self, tls: ssl.SSLContext) -> None:
        async with serving(tls=tls) as faulty, Sender(faulty.url) as sender:
            assert await sender.transport.warm(1) == 0
            record = await sender.one()
            assert (record.outcome, record.sent) == (Outcome.TLS_ERROR, 0)
            assert "the certificate is not trusted (unable to get local issuer" in (
                record.detail or ""
            )
            assert "see --ca-cert and --insecure" in (record.detail or "")
        assert faulty.requests == 0

    @pytest.mark.usefixtures("trusted")
    async def test_one_of_another_host_is_refused(self, authority: trustme.CA) -> None:
        other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("other.test").configure_cert(other)
        async with serving(tls=other) as faulty, Sender(faulty.url) as sender:
            record = await sender.one()
            assert record.outcome is Outcome.TLS_ERROR
            assert "the certificate is not trusted" in (record.detail or "")
            assert LOOPBACK in (record.detail or "")

    async def test_server_that_wants_one_of_the_client_fails_the_request(
        self, tls: ssl.SSLContext, authority: trustme.CA, caplog: pytest.LogCaptureFixture
    ) -> None:
        """From TLS 1.3 on the client learns it after the handshake, by an alert."""
        tls.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(tls)

        def refuse(peer: socket.socket) -> None:
            session = TlsSession(tls)
            with contextlib.suppress(ssl.SSLError):
                while not session.is_open:
                    peer.sendall(session.shake(peer.recv(READ_BYTES)))
            peer.sendall(session.pending())
            peer.shutdown(socket.SHUT_WR)
            drain(peer)

        async with one_connection(refuse) as url, Sender(url, route=UNVERIFIED) as sender:
            record = await sender.one()
        assert record.outcome in (Outcome.TLS_ERROR, Outcome.REFUSED)
        assert "certificate required" in (record.detail or "").replace("_", " ").lower()
        assert not [entry for entry in caplog.records if entry.exc_info]


@contextlib.asynccontextmanager
async def raw_server(*, reads: bool, closes: bool, sends: bytes = b"") -> AsyncIterator[str]:
    """A server of another protocol: whether it reads what comes first, what it sends, and
    whether it closes then.
    """
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        if reads:
            await reader.read(1 << 16)
        writer.write(sends)
        if closes:
            writer.close()

    server = await asyncio.start_server(connected, LOOPBACK, 0)
    try:
        yield f"https://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def one_connection(talk: Callable[[socket.socket], None]) -> AsyncIterator[str]:
    """A server of one connection, of which `talk` holds the socket, in a thread of its own."""
    with socket.create_server((LOOPBACK, 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as peer:
                talk(peer)

        talking = asyncio.create_task(asyncio.to_thread(serve))
        yield f"https://{LOOPBACK}:{listening.getsockname()[1]}"
        await talking


def drain(peer: socket.socket) -> None:
    """Read until the other side has closed."""
    with contextlib.suppress(ConnectionError):
        while peer.recv(READ_BYTES):
            pass


class TestHandshake:
    async def test_silent_server_is_a_connect_timeout(self) -> None:
        async with (
            raw_server(reads=True, closes=False) as url,
            Sender(url, Timeouts(connect=S // 5)) as sender,
        ):
            record = await sender.one()
            assert (record.outcome, record.sent) == (Outcome.CONNECT_TIMEOUT, 0)
            assert "TLS" in (record.detail or "")

    async def test_server_that_closes_is_refused(self) -> None:
        async with raw_server(reads=True, closes=True) as url, Sender(url) as sender:
            assert await sender.transport.warm(1) == 0
            record = await sender.one()
            assert (record.outcome, record.sent) == (Outcome.REFUSED, 0)
            assert record.detail == (
                "connection closed inside the TLS handshake; if it wants a client certificate, "
                "give --client-cert"
            )

    async def test_server_that_resets_is_refused(self) -> None:
        def reset(peer: socket.socket) -> None:
            peer.recv(1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)

        async with one_connection(reset) as url, Sender(url) as sender:
            record = await sender.one()
        assert (record.outcome, record.sent) == (Outcome.REFUSED, 0)
        assert "reset by peer" in (record.detail or "")
        assert "TLS" in (record.detail or "")

    async def test_server_without_tls_is_a_tls_error(self) -> None:
        async with (
            raw_server(reads=True, closes=False, sends=b"HTTP/1.1 400 Bad\r\n\r\n") as url,
            Sender(url) as sender,
        ):
            record = await sender.one()
            assert (record.outcome, record.sent) == (Outcome.TLS_ERROR, 0)
            assert f"no TLS with {LOOPBACK}" in (record.detail or "")
            assert "write http://" in (record.detail or "")

    async def test_request_is_given_up_in_the_handshake(self) -> None:
        async with raw_server(reads=True, closes=False) as url, Sender(url) as sender:
            (waiting,) = sender.start()
            await asyncio.sleep(0.01)
            sender.transport.abandon(Outcome.CANCELLED, "enough")
            assert ((await waiting).outcome, (await waiting).detail) == (
                Outcome.CANCELLED,
                "enough",
            )


class TestStream:
    async def test_tokens_of_one_segment_are_exact(self, tls: ssl.SSLContext) -> None:
        async with (
            serving(tls=tls) as server,
            Sender(server.url, route=UNVERIFIED) as sender,
        ):
            record = await sender.one("one-segment")
        assert (record.outcome, record.user_stamped, record.earliest) == (Outcome.OK, 0, None)

    async def test_bytes_that_are_no_tls_end_the_stream(
        self, tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture
    ) -> None:
        record = await broken_after_a_token(tls, apart=True)
        assert (record.outcome, record.events, record.user_stamped) == (Outcome.TRUNCATED, 1, 0)
        assert "SSL" in (record.detail or "")
        assert not [entry for entry in caplog.records if entry.exc_info]

    async def test_token_before_bytes_that_are_no_tls_counts(self, tls: ssl.SSLContext) -> None:
        record = await broken_after_a_token(tls, apart=False)
        assert (record.outcome, record.events, record.user_stamped) == (Outcome.TRUNCATED, 1, 0)


async def broken_after_a_token(tls: ssl.SSLContext, *, apart: bool) -> Record:
    """The record of a request whose session is broken after the first token; `apart`: once that
    has been read.
    """
    token_read = threading.Event()

    def answer(peer: socket.socket) -> None:
        session = TlsSession(tls)
        while not session.is_open:
            peer.sendall(session.shake(peer.recv(READ_BYTES)))
        token, no_tls = (
            session.encrypt(STREAM + chunk(delta(content="x"))),
            b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        )
        if apart:
            peer.sendall(token)
            token_read.wait()
            peer.sendall(no_tls)
        else:
            peer.sendall(token + no_tls)
        drain(peer)

    async with one_connection(answer) as url, Sender(url, route=UNVERIFIED) as sender:
        (waiting,) = sender.start()
        (record,) = sender._waiting
        await until(lambda: record.events or waiting.done())
        token_read.set()
        return await waiting
