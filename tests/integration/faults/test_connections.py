"""Connections: opened ahead, reused or not, refused, encrypted, and whose fault a failure is."""

import asyncio
import contextlib
import itertools
import resource
import socket
import ssl
import time

import pytest
import trustme

from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import REFUSED_PAUSE_S
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.engines.sim.http1 import Request
from loadgen.testing.faulty import Faulty, serving
from loadgen.testing.process import started
from loadgen.util import machine
from loadgen.util.clock import now_ns
from tests.helpers.fault_requests import (
    NEIGHBOURS,
    UNVERIFIED,
    S,
    Sender,
    assert_good,
    neighbours,
    until,
)
from tests.helpers.scripted_server import closing_at_once

PAUSE_NS = int(REFUSED_PAUSE_S * S)


@pytest.fixture
def tls() -> ssl.SSLContext:
    """A certificate that nobody has reason to trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


class TestReuse:
    @pytest.mark.usefixtures("no_rest")
    async def test_connections_are_opened_ahead_and_used_again(self, faulty: Faulty) -> None:
        async with Sender(faulty.url) as sender:
            assert await sender.transport.warm(3) == 3
            for number in range(5):
                record = await sender.one()
                assert_good(record)
                assert record.reused == (number > 0)
                assert record.connect_ns == 0
            assert sender.transport.opened == faulty.connections == 3

    async def test_late_connection_has_its_connect_time_measured(self, faulty: Faulty) -> None:
        async with Sender(faulty.url) as sender:
            record = await sender.one()
            assert_good(record)
            assert not record.reused
            assert 0 < record.connect_ns <= record.sent - record.due
            assert sender.transport.opened == 1

    async def test_connection_is_reused_after_it_has_rested(self, faulty: Faulty) -> None:
        async with Sender(faulty.url) as sender:
            for _ in range(3):
                await sender.one()
            assert sender.transport.opened == 3
            assert await sender.transport.warm(2) == 2  # which waits until they have rested
            assert (await sender.one()).reused
            assert sender.transport.opened == 3

    @pytest.mark.usefixtures("no_rest")
    @pytest.mark.parametrize(
        "fault", ["connection-close", "keep-alive:0", "after-end", "until-close"]
    )
    async def test_connection_is_not_reused_after_a_close_or_bad_end(
        self, faulty: Faulty, fault: str
    ) -> None:
        async with Sender(faulty.url) as sender:
            for _ in range(3):
                assert (await sender.one(fault)).outcome is Outcome.OK
            assert sender.transport.opened == 3

    @pytest.mark.usefixtures("no_rest")
    async def test_connection_is_reused_within_the_announced_keep_alive(
        self, faulty: Faulty
    ) -> None:
        async with Sender(faulty.url) as sender:
            for _ in range(3):
                assert (await sender.one("keep-alive:3600")).outcome is Outcome.OK
            assert sender.transport.opened == 1

    @pytest.mark.usefixtures("no_rest")
    async def test_an_idle_one_that_the_server_closed_costs_one_counted_reconnect(
        self, faulty: Faulty
    ) -> None:
        async with Sender(faulty.url) as sender:
            await sender.one("close-after")
            await until(lambda: not faulty.open)
            await until(lambda: not list(sender.transport.pool))
            record = await sender.one()
            assert_good(record)
            assert not record.reused
            assert record.connect_ns > 0
            assert sender.transport.opened == 2
        assert faulty.requests == sender.sent == 2

    @pytest.mark.usefixtures("no_rest")
    async def test_open_connections_stay_when_others_are_given_up(
        self, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with Sender(faulty.url) as sender:
            transport, connect, asked = (
                sender.transport,
                sender.transport._connect,
                itertools.count(),
            )

            async def none_but_the_first() -> Connection:
                return await (connect() if next(asked) == 0 else asyncio.Event().wait())  # type: ignore[return-value]

            monkeypatch.setattr(transport, "_connect", none_but_the_first)
            ahead = asyncio.create_task(transport.warm(3))
            await until(lambda: transport.opened == 1)
            ahead.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ahead
            monkeypatch.setattr(transport, "_connect", connect)
            assert await transport.warm(2) == 2
            assert transport.opened == 2

    @pytest.mark.timeout(10)
    async def test_opening_ahead_ends_at_a_peer_that_closes_at_once(self) -> None:
        async with closing_at_once() as url, Sender(url) as sender:
            assert await sender.transport.warm(200) < 200

    @pytest.mark.usefixtures("no_rest")
    async def test_request_lost_to_a_close_is_refused_and_not_repeated(
        self, faulty: Faulty
    ) -> None:
        async with Sender(faulty.url) as sender:
            assert_good(await sender.one("close-on-reuse"))
            record = await sender.one()
            assert (record.outcome, record.reused, record.first_byte) == (Outcome.REFUSED, True, 0)
            assert_good(await sender.one())
            assert sender.transport.opened == 2
        assert faulty.requests == sender.sent == 3

    async def test_none_is_reused_before_it_has_rested_after_an_early_close(
        self, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("loadgen.core.keep_alive.LONG_REST_NS", 3600 * S)
        async with Sender(faulty.url) as sender:
            assert_good(await sender.one("close-after"))
            await until(lambda: not sender.transport.reuses)
            for _ in range(3):
                assert_good(await sender.one())
            assert sender.transport.opened == 4

    @pytest.mark.usefixtures("no_rest")
    async def test_broken_stream_does_not_end_reuse(self, faulty: Faulty) -> None:
        async with Sender(faulty.url) as sender:
            assert_good(await sender.one())
            record = await sender.one("eof:1")
            assert (record.outcome, record.reused) == (Outcome.TRUNCATED, True)
            assert sender.transport.reuses


class TestRefused:
    async def test_closed_port_is_refused(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            async with Sender(f"http://127.0.0.1:{unused.getsockname()[1]}") as sender:
                assert await sender.transport.warm(2) == 0
                record = await sender.one()
                assert (record.outcome, record.sent) == (Outcome.REFUSED, 0)
                assert (
                    record.detail
                    == f"no connection to 127.0.0.1:{unused.getsockname()[1]} (Connection refused)"
                )
                assert record.closed >= record.due

    async def test_a_name_that_does_not_resolve(self) -> None:
        async with Sender("http://no-such-host.invalid:8000") as sender:
            assert (await sender.one()).outcome is Outcome.DNS_ERROR

    async def test_full_backlog_ends_in_a_connect_timeout(self) -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = full.getsockname()
            with socket.socket() as first, socket.socket() as second:
                for waiting in (first, second):  # the backlog is full with these
                    waiting.setblocking(False)
                    waiting.connect_ex(address)
                async with Sender(
                    f"http://127.0.0.1:{address[1]}", Timeouts(connect=S // 10)
                ) as sender:
                    assert (await sender.one()).outcome is Outcome.CONNECT_TIMEOUT

    @pytest.mark.parametrize("fault", ["close", "reset"])
    async def test_a_close_before_a_byte_is_told_after_a_pause(
        self, faulty: Faulty, fault: str
    ) -> None:
        async with Sender(faulty.url) as sender:
            record = await sender.one(fault)
            assert record.outcome is Outcome.REFUSED
            assert now_ns() - record.closed >= PAUSE_NS // 2

    async def test_failed_resolution_is_reported_after_a_pause(self) -> None:
        async with Sender("http://no-such-host.invalid:8000") as sender:
            record = await sender.one()
            assert record.outcome is Outcome.DNS_ERROR
            assert now_ns() - record.closed >= PAUSE_NS // 2

    async def test_pending_refusals_are_reported_on_abandon(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("loadgen.client.transport.REFUSED_PAUSE_S", 3600)
        async with closing_at_once() as url, Sender(url) as sender:
            waiting = sender.start(3)
            await until(lambda: not sender.transport.active and not sender.transport.pool.waiting)
            assert not sender.records
            sender.transport.abandon(Outcome.CANCELLED, "enough")
            assert [(await each).outcome for each in waiting] == [Outcome.REFUSED] * 3

    async def test_a_port_that_accepts_and_closes_gives_no_sign_of_life(self) -> None:
        async with closing_at_once() as url, Sender(url) as sender:
            await sender.several(3)
            contact = sender.transport.reachability(0)
            assert (contact.answered_s, contact.refused_s is None) == (0, False)

    async def test_a_request_that_is_held_is_a_sign_of_life(
        self, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("loadgen.client.transport.HELD_NS", 0)
        async with Sender(faulty.url) as sender:
            sender.start(1, "silence")
            await until(lambda: faulty.requests)
            assert sender.transport.reachability(0).answered_s > 0

    async def test_neither_a_name_nor_a_timeout_is_a_sign_of_life(self) -> None:
        async with Sender("http://no-such-host.invalid:8000") as sender:
            await sender.one()
            contact = sender.transport.reachability(0)
            assert (contact.answered_s, contact.refused_s) == (0, None)


class TestTls:
    async def test_a_certificate_that_cannot_be_verified_is_a_tls_error(
        self, tls: ssl.SSLContext
    ) -> None:
        async with serving(tls=tls) as faulty, Sender(faulty.url) as sender:
            record = await sender.one()
            assert record.outcome is Outcome.TLS_ERROR
            assert "certificate" in (record.detail or "")
        assert faulty.requests == 0

    async def test_plain_http_behind_https_is_a_tls_error(self, faulty: Faulty) -> None:
        async with Sender(faulty.url.replace("http:", "https:")) as sender:
            assert (await sender.one()).outcome is Outcome.TLS_ERROR
        assert faulty.requests == 0

    async def test_https_behind_plain_http_is_no_answer(self, tls: ssl.SSLContext) -> None:
        async with (
            serving(tls=tls) as faulty,
            Sender(faulty.url.replace("https:", "http:")) as sender,
        ):
            assert (await sender.one()).outcome in (Outcome.REFUSED, Outcome.PROTOCOL_ERROR)

    @pytest.mark.usefixtures("no_rest")
    async def test_tls_need_not_be_verified(self, tls: ssl.SSLContext) -> None:
        async with (
            serving(tls=tls) as faulty,
            Sender(faulty.url, route=UNVERIFIED) as sender,
        ):
            await sender.transport.warm(1)
            for number in range(3):
                record = await sender.one()
                assert_good(record)
                assert record.reused == (number > 0)

    @pytest.mark.parametrize(
        ("fault", "outcome"),
        [
            ("reset", Outcome.REFUSED),
            ("close", Outcome.REFUSED),
            ("eof:2", Outcome.TRUNCATED),
            ("rst:2", Outcome.TRUNCATED),
            ("until-close", Outcome.OK),
            ("byte-by-byte", Outcome.OK),
            ("endless-line", Outcome.PROTOCOL_ERROR),
        ],
    )
    async def test_faults_have_the_same_outcome_over_tls(
        self, tls: ssl.SSLContext, fault: str, outcome: Outcome
    ) -> None:
        async with (
            serving(tls=tls) as faulty,
            Sender(faulty.url, route=UNVERIFIED) as sender,
        ):
            async with neighbours(sender):
                assert (await sender.one(fault)).outcome is outcome
            assert faulty.requests == sender.sent


class TestAbandon:
    async def test_everything_in_flight_ends_once_when_it_is_abandoned(
        self, faulty: Faulty
    ) -> None:
        async with Sender(faulty.url) as sender:
            await sender.transport.warm(5)
            waiting = sender.start(5, "stall:1")
            await until(lambda: faulty.requests == 5)
            sender.transport.abandon(Outcome.CANCELLED, "enough")
            assert [(await each).outcome for each in waiting] == [Outcome.CANCELLED] * 5

    async def test_connecting_requests_are_cancelled(self, faulty: Faulty) -> None:
        async with Sender(faulty.url) as sender:
            waiting = sender.start(3)
            sender.transport.abandon(Outcome.CANCELLED, "enough")
            records = [await each for each in waiting]
            assert [(record.outcome, record.detail) for record in records] == [
                (Outcome.CANCELLED, "enough")
            ] * 3

    async def test_thousands_of_disconnects_at_once(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        machine.raise_open_files_limit()
        try:
            count = min(3000, machine.max_connections() - 2 * NEIGHBOURS)
            with started("loadgen.testing.faulty") as server:
                async with Sender(server.url, Timeouts(connect=60 * S)) as sender:
                    async with neighbours(sender):
                        records = await sender.several(count, f"rst-together:{count}")
                    assert [(r.outcome, r.events) for r in records] == [
                        (Outcome.TRUNCATED, 1)
                    ] * count
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    async def test_rest_of_an_abandoned_request_is_never_sent(self) -> None:
        """The server reads only once the request has been given up: of 32 MB the kernel has
        taken a part.
        """
        go_on, size, came = asyncio.Event(), 32 << 20, 0

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal came
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await go_on.wait()
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 20):
                    came += len(data)
            writer.close()
            go_on.clear()

        async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
            async with Sender(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as sender:
                record = Record(0, 1, 1, now_ns())
                sender.transport.send(record, b"x" * size)
                await until(lambda: sender.transport.active)
                sender.transport.abandon(Outcome.TIMEOUT, "no end in time")
            go_on.set()
            await until(lambda: not go_on.is_set())
        assert came < size

    async def test_a_tls_peer_that_is_silent_holds_no_connection_open(
        self, tls: ssl.SSLContext
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def accepted() -> ssl.SSLSocket:
                return tls.wrap_socket(listening.accept()[0], server_side=True)

            accepting = asyncio.create_task(asyncio.to_thread(accepted))
            url = f"https://127.0.0.1:{listening.getsockname()[1]}"
            async with Sender(url, route=UNVERIFIED) as sender:
                assert await sender.transport.warm(1) == 1
                peer = await accepting
            with socket.socket(
                fileno=peer.detach()
            ) as raw:  # which never answers the end of the TLS session
                raw.settimeout(5)
                with contextlib.suppress(ConnectionError):
                    while await asyncio.to_thread(raw.recv, 4096):
                        pass


class TestSent:
    async def test_the_request_is_what_the_api_expects(
        self, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asks: list[Request] = []
        answer = faulty.answer
        monkeypatch.setattr(faulty, "answer", lambda ask: asks.append(ask) or answer(ask))
        async with Sender(faulty.url) as sender:
            await sender.one()
        assert (asks[0].method, asks[0].path) == ("POST", "/v1/chat/completions")
        assert asks[0].headers["host"] == faulty.url.removeprefix("http://")
        assert asks[0].headers["accept-encoding"] == "identity"
        assert asks[0].fields["stream"] is True
        assert asks[0].wants_usage

    async def test_wall_clock_steps_do_not_change_records(
        self, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = iter(range(10**9))
        monkeypatch.setattr(time, "time", lambda: 1e9 + (-1) ** next(steps) * 1e8)
        monkeypatch.setattr(time, "time_ns", lambda: 10**18 + (-1) ** next(steps) * 10**17)
        before = time.monotonic_ns()
        async with Sender(faulty.url, Timeouts(10 * S, 3600 * S, 3600 * S, 3600 * S)) as sender:
            await sender.transport.warm(5)
            records = await sender.several(20)
        for record in records:
            assert_good(record)
            assert before <= record.due <= record.closed <= time.monotonic_ns()

    async def test_a_fault_of_ours_on_a_new_connection_is_told(self, faulty: Faulty) -> None:
        """Its request waited for the connection, so that a task of the event loop sends it."""

        class BrokenTap:
            def sent(self, record: Record) -> None:
                raise ZeroDivisionError("a bug")

            def read(self, record: Record, at_ns: int, data: bytes) -> None: ...

            def lost(self, record: Record, at_ns: int, error: Exception | None) -> None: ...

        faults: list[Exception] = []
        async with Sender(faulty.url) as sender:
            sender.transport.hook.on_fault = faults.append
            sender.transport.tap(BrokenTap())
            assert_good(await sender.one())
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
