"""Routes: a run through a proxy, over a Unix socket, with its own authority and certificate; and
what is said where the way, or one of the two ends, refuses.
"""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme

import loadgen
from loadgen import report
from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.errors import Unreachable
from loadgen.testing.faulty import serving
from loadgen.util import http_client
from loadgen.util.dialer import Dialer, Reached
from loadgen.util.route import Route
from tests.helpers.command_line import TOKENIZER
from tests.helpers.fault_requests import TOKENS, S, Sender

OF_A_PROGRAM = pytest.mark.usefixtures("arguments_in_errors")

LOOPBACK = "127.0.0.1"
USER = "Basic bWU6c2VAY3JldA=="  # me:se@cret
REQUESTS = 20


class Proxy:
    """An HTTP proxy that opens tunnels.

    Args:
        user: The Proxy-Authorization that it wants; None: it wants none.
        answer: What it answers to everything, in place of a tunnel; None: it opens tunnels.

    Attributes:
        asked: The places to which tunnels were asked for.
    """

    def __init__(self, user: str | None = None, answer: bytes | None = None) -> None:
        self.user, self.answer = user, answer
        self.asked: list[str] = []
        self.place = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError),
            contextlib.closing(writer),
        ):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, place, _ = head.split(" ", 2)
            assert method == "CONNECT"
            assert f"\r\nHost: {place}\r\n" in head
            self.asked.append(place)
            if self.answer is not None:
                writer.write(self.answer)
                return
            if self.user is not None and f"Proxy-Authorization: {self.user}\r\n" not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            host, _, port = place.rpartition(":")
            server_reader, server_writer = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
            await asyncio.gather(forward(reader, server_writer), forward(server_reader, writer))


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError), contextlib.closing(writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def listening(talk: Any, path: Path | None = None) -> AsyncIterator[str]:
    """Serve connections, on loopback or on a Unix socket; yields the place; ends all at the end."""
    running: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(talk(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await (
        asyncio.start_server(begin, LOOPBACK, 0)
        if path is None
        else asyncio.start_unix_server(begin, path)
    )
    try:
        name = server.sockets[0].getsockname()
        yield f"{LOOPBACK}:{name[1]}" if path is None else name
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """The files of the client by the names of its settings."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("client.test")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "client.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "client.key"))
    names = {"ca_cert": "ca.pem", "client_cert": "client.pem", "client_key": "client.key"}
    return {name: str(tmp_path / file) for name, file in names.items()}


def server_context(authority: trustme.CA, name: str = LOOPBACK) -> ssl.SSLContext:
    """The context of a server that wants a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def measured(**settings: Any) -> loadgen.Result:
    """Run a small load; every request must succeed."""
    result = await loadgen.run(
        loadgen.RunSettings(
            backend="openai-chat",
            tokenizer=TOKENIZER,
            random_input_len=16,
            random_output_len=TOKENS,
            request_rate=200.0,
            num_prompts=REQUESTS,
            **settings,
        )
    )
    assert result.outcomes["ok"] == REQUESTS
    assert result.verdict is not loadgen.Verdict.INVALID
    return result


class TestProxy:
    async def test_a_run_with_its_probes_goes_through_tunnels_and_keeps_kernel_stamps(
        self, tmp_path: Path
    ) -> None:
        proxy = Proxy(USER)
        async with serving() as server, listening(proxy.talk) as place:
            saved = tmp_path / "records"
            result = await measured(
                base_url=server.url,
                proxy=f"http://me:se%40cret@{place}",
                records=str(saved),
            )
        assert set(proxy.asked) == {server.url.removeprefix("http://")}
        assert result.tokens.token_events == REQUESTS * TOKENS
        assert result.tokens.user_stamped_events == 0
        text = " ".join(report.render(result).split())
        assert f"PROXY: requests went through the proxy http://(given)@{place}, whose time" in text
        for written in (text, str(result.data), saved.read_text(errors="replace")):
            assert "cret" not in written
        engine = result.data["loadgen"]["provenance"]["engine"]
        assert engine["way"] == f"through the proxy http://(given)@{place}"

    async def test_tokens_of_one_segment_are_exact_behind_the_answer_of_the_proxy(self) -> None:
        async with (
            serving() as server,
            listening(Proxy().talk) as place,
            Sender(server.url, route=Route(proxy=f"http://{place}")) as sender,
        ):
            record = await sender.one("one-segment")
        assert (record.outcome, record.user_stamped, record.earliest) == (Outcome.OK, 0, None)

    async def test_tls_with_a_client_certificate_goes_through_it(
        self, authority: trustme.CA, files: dict[str, str]
    ) -> None:
        proxy = Proxy()
        async with serving(tls=server_context(authority)) as server, listening(proxy.talk) as place:
            result = await measured(base_url=server.url, proxy=place, **files)
        assert set(proxy.asked) == {server.url.removeprefix("https://")}
        assert result.tokens.user_stamped_events == 0

    @pytest.mark.parametrize(
        ("user", "said"),
        [
            ("", "it wants a user and a password; write --proxy http://HOST:PORT, with USER:"),
            ("me:wrong@", "it does not accept the user and password; correct those of --proxy"),
        ],
    )
    async def test_one_that_wants_another_user_is_named(self, user: str, said: str) -> None:
        async with serving() as server, listening(Proxy(USER).talk) as place:
            route = Route(proxy=f"http://{user}{place}")
            known = f"the proxy {place} answers 407 (Proxy Authentication Required): {said}"
            with pytest.raises(Unreachable, match=re.escape(known)):
                await http_client.get(server.url, route=route)
            async with Sender(server.url, route=route) as sender:
                record = await sender.one()
        assert record.outcome is Outcome.REFUSED
        assert (record.detail or "").startswith(known)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
                "answers 502 (Bad Gateway) when asked to connect to h.test:80; see --proxy and",
            ),
            (b"HTTP/1.0 403\r\n\r\n", "answers 403 when asked to connect to h.test:80"),
            (b"", "closed the connection without connecting to h.test:80; see --proxy"),
            (b"SSH-2.0-x\r\n\r\n", "does not answer as an HTTP proxy does; see --proxy"),
            (b"HTTP/1.1 200 OK\r\n\r\nmore", "does not answer as an HTTP proxy does"),
        ],
    )
    async def test_one_that_refuses_is_named(self, answer: bytes, said: str) -> None:
        proxy = Proxy(answer=answer)
        async with listening(proxy.talk) as place:
            with pytest.raises(Unreachable, match=re.escape(f"the proxy {place} {said}")):
                await http_client.get("http://h.test/x", route=Route(proxy=f"http://{place}"))
        assert proxy.asked == ["h.test:80"]

    @OF_A_PROGRAM
    async def test_a_dead_one_is_named_and_not_the_server(self) -> None:
        said = "no connection to the proxy 127.0.0.1:9 (Connection refused); see proxy"
        with pytest.raises(Unreachable, match=re.escape(said) + "$"):
            await measured(base_url="http://h.test", proxy="http://127.0.0.1:9")

    async def test_a_silent_one_is_a_connect_timeout(self) -> None:
        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer):
                await asyncio.Event().wait()

        async with (
            listening(hold) as place,
            Sender(
                "http://h.test", Timeouts(connect=S // 10), route=Route(proxy=f"http://{place}")
            ) as sender,
        ):
            record = await sender.one()
        assert (record.outcome, record.detail) == (
            Outcome.CONNECT_TIMEOUT,
            f"no tunnel of the proxy {place} within --connect-timeout; see --proxy",
        )

    async def test_that_of_the_environment_is_used_only_if_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = Proxy()
        async with serving() as server, listening(proxy.talk) as place:
            monkeypatch.setenv("http_proxy", place)
            await measured(base_url=server.url)
            assert proxy.asked == []
            await measured(base_url=server.url, proxy="env")
            assert proxy.asked
            count = len(proxy.asked)
            monkeypatch.setenv("no_proxy", LOOPBACK)
            await measured(base_url=server.url, proxy="env")
        assert len(proxy.asked) == count


@OF_A_PROGRAM
class TestTrust:
    async def test_own_authority_certificate_and_name_are_used(
        self, authority: trustme.CA, files: dict[str, str]
    ) -> None:
        async with serving(tls=server_context(authority, "llm.test")) as server:
            result = await measured(base_url=server.url, server_name="llm.test", **files)
        assert result.tokens.user_stamped_events == 0

    async def test_another_name_is_refused(
        self, authority: trustme.CA, files: dict[str, str]
    ) -> None:
        async with serving(tls=server_context(authority, "llm.test")) as server:
            with pytest.raises(Unreachable, match=r"mismatch.*see server_name and insecure\)$"):
                await measured(base_url=server.url, **files)

    async def test_without_its_authority_a_server_is_refused(self, authority: trustme.CA) -> None:
        async with serving(tls=server_context(authority)) as server:
            with pytest.raises(Unreachable, match=r"certificate.*see ca_cert and insecure\)$"):
                await measured(base_url=server.url)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    async def test_a_missing_client_certificate_is_named(
        self, authority: trustme.CA, files: dict[str, str], version: ssl.TLSVersion
    ) -> None:
        """A server on asyncio closes without an alert."""
        context = server_context(authority)
        context.maximum_version = version
        said = "; if it wants a client certificate, give client_cert$"
        async with serving(tls=context) as server:
            with pytest.raises(Unreachable, match=said):
                await measured(base_url=server.url, ca_cert=files["ca_cert"])


class TestUnixSocket:
    async def test_a_run_goes_over_it_and_its_times_are_those_of_reads(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "socket"
        async with serving() as server:

            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                place = server.url.rpartition(":")[2]
                opened = await asyncio.open_connection(LOOPBACK, int(place))
                await asyncio.gather(forward(reader, opened[1]), forward(opened[0], writer))

            async with listening(talk, path):
                result = await measured(unix_socket=str(path))
        assert result.tokens.user_stamped_events == REQUESTS * TOKENS
        assert result.tokens.unbounded_events == 0
        assert result.client_error_ms is not None
        assert "over a Unix socket" in str(result)
        assert result.data["loadgen"]["provenance"]["engine"]["base_url"] == "http://localhost"

    async def test_one_on_which_nobody_listens_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "none"
        said = f"no connection to the Unix socket {path} (No such file or directory)"
        with pytest.raises(Unreachable, match=re.escape(said)):
            await measured(unix_socket=str(path))

    async def test_a_full_queue_is_waited_for(self, tmp_path: Path) -> None:
        """The kernel refuses at once where a TCP connection would wait."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "socket"))
            listener.listen(0)

            async def begin(reached: Reached) -> socket.socket:
                reached.socket.setblocking(False)
                return reached.socket

            dialer = Dialer("http://localhost", Route(unix_socket=str(tmp_path / "socket")))
            first = await dialer.open(begin)
            second = asyncio.ensure_future(dialer.open(begin))
            await asyncio.sleep(0.01)
            assert not second.done()
            listener.accept()[0].close()
            (await second).close()
            first.close()
