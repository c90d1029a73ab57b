"""TLS: bytes are decrypted when they are read, and a token has the stamp of the read that
completed its record.
"""

import asyncio
import ssl

import pytest
import trustme

from loadgen.client.connector import TlsStream
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing.replies import STREAM, delta
from loadgen.util.route import Route
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.tls_session import TlsSession

TOKEN = chunk(delta(content="x"))
REAL = 10**18  # CLOCK_REALTIME less CLOCK_MONOTONIC, ns
HOST = "server.test"


class Wire:
    """A transport that only remembers."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True


class Owner:
    """Remembers the outcomes of what has ended."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome | None] = []

    def ended(self, connection: Connection) -> None:
        self.outcomes.append(connection.record.outcome)

    def finished(self, connection: Connection, is_complete: bool) -> None: ...

    def dropped(self, connection: Connection, error: Exception | None) -> None: ...

    def reader(self, connection: Connection) -> None: ...


Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def contexts(request: pytest.FixtureRequest, authority: trustme.CA) -> Contexts:
    """The contexts of a client that trusts the authority, and of a server; of either version."""
    client, server = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(client)
    authority.issue_cert(HOST).configure_cert(server)
    client.maximum_version = request.param
    return client, server


async def with_tls(contexts: Contexts, host: str = HOST) -> tuple[TlsStream, TlsSession, Wire]:
    """Both ends of a session after the handshake."""
    wire, stream, server = Wire(), TlsStream(contexts[0], host), TlsSession(contexts[1])
    handshake = asyncio.ensure_future(stream.do_handshake(wire))  # type: ignore[arg-type]
    while not handshake.done():
        await asyncio.sleep(0)
        if reply := server.shake(b"".join(wire.written)):
            wire.written.clear()
            stream.data_received(reply)
        await asyncio.sleep(0)
    await handshake
    if rest := b"".join(wire.written):
        stream.data_received(server.shake(rest))
    wire.written.clear()
    return stream, server, wire


async def begun(contexts: Contexts) -> tuple[Connection, TlsSession, Record, Wire, Owner]:
    """A connection whose read loop can convert stamps, with a request that has got the head of
    its response.
    """
    stream, server, wire = await with_tls(contexts)
    read_loop, owner = ReadLoop(), Owner()
    read_loop.kernel_clock.observe(1000, REAL + 1000, 1000)
    connection = Connection(owner, wire, read_loop, stream)
    connection.send(b"request", record := Record())
    assert server.decrypt(b"".join(wire.written)) == b"request"
    wire.written.clear()
    read(connection, record, 5, server.encrypt(STREAM))
    return connection, server, record, wire, owner


def read(
    connection: Connection, record: Record, after_ns: int, *data: bytes, emptied: bool = True
) -> int:
    """Have a connection read bytes that came so long after the request was sent; returns their
    stamp.
    """
    at_ns = record.sent + after_ns
    connection.take(b"".join(data), at_ns + 3, REAL + at_ns, emptied)
    return at_ns


async def test_request_and_response_are_those_without_tls(contexts: Contexts) -> None:
    connection, server, record, _, owner = await begun(contexts)
    read(connection, record, 10, server.encrypt(streamed(answer("a", "b"))[len(STREAM) :]))
    assert owner.outcomes == [Outcome.OK]
    assert (record.events, record.user_stamped) == (2, 0)
    assert connection.keep_alive


async def test_record_split_over_reads_has_the_stamp_of_the_read_that_completed_it(
    contexts: Contexts,
) -> None:
    connection, server, record, _, _ = await begun(contexts)
    data = server.encrypt(TOKEN)
    for number, cut in enumerate(
        (data[:3], data[3:20], data[20:-1])
    ):  # inside the header, and inside the data
        read(connection, record, 10 + number, cut)
        assert record.events == 0
    at_ns = read(connection, record, 1000, data[-1:])
    assert (record.stamps, record.earliest, record.read_times) == ([at_ns], None, [at_ns + 3])


async def test_token_before_a_part_of_a_record_is_not_exact(contexts: Contexts) -> None:
    connection, server, record, _, _ = await begun(contexts)
    first = server.encrypt(TOKEN)
    second = server.encrypt(TOKEN)
    at_ns = read(connection, record, 1000, first, second[:10])
    assert (record.stamps, record.earliest) == ([at_ns], [record.sent + 5])
    later_ns = read(connection, record, 2000, second[10:])
    assert (record.stamps, record.earliest) == ([at_ns, later_ns], [record.sent + 5, later_ns])


async def test_records_of_one_read_lie_between_its_stamp_and_the_one_before(
    contexts: Contexts,
) -> None:
    connection, server, record, _, _ = await begun(contexts)
    at_ns = read(connection, record, 1000, *(server.encrypt(TOKEN) for _ in range(3)))
    assert record.stamps == [at_ns] * 3
    # The last one ends the read.
    assert record.earliest == [record.sent + 5, record.sent + 5, at_ns]


async def test_record_of_two_tokens_is_one_piece_of_the_read(contexts: Contexts) -> None:
    connection, server, record, _, _ = await begun(contexts)
    at_ns = read(connection, record, 1000, server.encrypt(TOKEN + TOKEN))
    assert record.stamps == [at_ns] * 2


async def test_read_that_left_bytes_is_not_exact(contexts: Contexts) -> None:
    connection, server, record, _, _ = await begun(contexts)
    read(connection, record, 1000, server.encrypt(TOKEN), emptied=False)
    assert record.earliest == [record.sent + 5]


async def test_read_without_a_stamp_is_user_stamped(contexts: Contexts) -> None:
    connection, server, record, _, _ = await begun(contexts)
    connection.read_loop.hook.late_ns = 400
    at_ns = record.sent + 1000
    connection.take(server.encrypt(TOKEN), at_ns, 0, True)
    assert (record.stamps, record.earliest, record.user_stamped) == ([at_ns], [at_ns - 400], 1)


async def test_body_larger_than_a_record_is_whole(contexts: Contexts) -> None:
    connection, server, record, _, owner = await begun(contexts)
    words = ["x" * 1000] * 50
    data = server.encrypt(streamed(answer(*words), 1 << 20)[len(STREAM) :])
    assert len(data) > 3 * 16384  # a record holds 16 KiB
    for number, start in enumerate(range(0, len(data), 5000)):
        read(connection, record, 1000 + number, data[start : start + 5000])
    assert owner.outcomes == [Outcome.OK]
    assert record.events == 50
    assert record.stamps == sorted(record.stamps)


async def test_request_larger_than_a_record_is_whole(contexts: Contexts) -> None:
    stream, server, _ = await with_tls(contexts)
    request = b"r" * 300_000
    assert server.decrypt(stream.encrypt(request)) == request


async def test_end_of_the_session_comes_after_the_data_before_it(contexts: Contexts) -> None:
    connection, server, record, wire, owner = await begun(contexts)
    at_ns = read(connection, record, 1000, server.encrypt(TOKEN), server.close())
    assert wire.closed
    assert record.stamps == [at_ns]
    connection.connection_lost(None)
    assert owner.outcomes == [Outcome.TRUNCATED]


async def test_end_of_the_session_ends_an_answer_without_a_length(contexts: Contexts) -> None:
    stream, server, wire = await with_tls(contexts)
    connection = Connection(owner := Owner(), wire, ReadLoop(), stream)
    connection.send(b"request", record := Record())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    read(connection, record, 10, server.encrypt(head + answer("a")))
    read(connection, record, 20, server.close())
    assert wire.closed
    connection.connection_lost(None)
    assert owner.outcomes == [Outcome.OK]


async def test_end_of_an_idle_session_ends_its_connection(contexts: Contexts) -> None:
    connection, server, record, wire, owner = await begun(contexts)
    read(connection, record, 10, server.encrypt(chunk(answer("a")) + LAST_CHUNK))
    assert (owner.outcomes, wire.closed) == ([Outcome.OK], False)
    read(connection, record, 20, server.close())
    assert wire.closed
    assert owner.outcomes == [Outcome.OK]


async def test_bytes_that_are_no_tls_are_an_error(contexts: Contexts) -> None:
    stream, server, _ = await with_tls(contexts)
    assert stream.decrypt(server.encrypt(b"x") + b"HTTP/1.1 200 OK\r\n\r\n") == b"x"
    assert stream.closed
    assert isinstance(stream.error, ssl.SSLError)


async def test_record_that_was_changed_is_an_error(contexts: Contexts) -> None:
    stream, server, _ = await with_tls(contexts)
    data = bytearray(server.encrypt(TOKEN))
    data[-1] ^= 1
    assert stream.decrypt(bytes(data)) == b""
    assert stream.closed
    assert isinstance(stream.error, ssl.SSLError)


async def test_certificate_of_another_host_is_refused(contexts: Contexts) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        await with_tls(contexts, "other.test")


async def test_certificate_of_an_unknown_authority_is_refused(contexts: Contexts) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="issuer"):
        await with_tls((Route().tls_context(), contexts[1]))


async def test_any_certificate_will_do_where_none_is_verified(contexts: Contexts) -> None:
    stream, server, _ = await with_tls(
        (Route(verify=False).tls_context(), contexts[1]), "other.test"
    )
    assert server.decrypt(stream.encrypt(b"x")) == b"x"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "closed inside the TLS handshake"),
        (ConnectionResetError("reset by peer"), "reset by peer"),
    ],
)
async def test_connection_that_ends_in_the_handshake_fails_it(
    error: Exception | None, said: str
) -> None:
    stream = TlsStream(Route(verify=False).tls_context(), HOST)
    handshake = asyncio.ensure_future(stream.do_handshake(Wire()))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    stream.connection_lost(error)
    with pytest.raises(ConnectionResetError, match=said):
        await handshake


async def test_server_without_tls_fails_the_handshake() -> None:
    stream, wire = TlsStream(Route(verify=False).tls_context(), HOST), Wire()
    handshake = asyncio.ensure_future(stream.do_handshake(wire))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    stream.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        await handshake
