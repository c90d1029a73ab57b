"""HTTP for probes: what comes back, and the errors for a server that cannot be reached or speaks
no HTTP.
"""

import asyncio
import json
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from loadgen.errors import Unreachable
from loadgen.util import http_client
from loadgen.util.route import DIRECT

pytestmark = pytest.mark.integration


@asynccontextmanager
async def answering(response: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve these bytes to every request; yields the URL, and what was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(response)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_status_body_and_headers_are_returned() -> None:
    async with answering(
        b'HTTP/1.1 404 Not Found\r\nserver: x\r\nContent-Length: 8\r\n\r\n{"a": 1}'
    ) as (url, asked):
        reply = await http_client.get(
            f"{url}/v1/models?of=it", headers={"Authorization": "Bearer k"}
        )
    assert (reply.status, reply.json(), reply.headers["Server"]) == (404, {"a": 1}, "x")
    assert asked[0].startswith(b"GET /v1/models?of=it HTTP/1.1\r\n")
    assert b"Authorization: Bearer k\r\n" in asked[0]


async def test_json_is_posted_and_chunks_are_joined() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n3\r\n, "
        b"2\r\n1\r\n]\r\n0\r\n\r\n"
    )
    async with answering(chunked) as (url, asked):
        reply = await http_client.send_json(url, b"{}", headers={}, route=DIRECT)
    assert reply.json() == [1, 2]
    assert asked[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"Content-Type: application/json\r\n" in asked[0]


async def test_a_redirect_is_not_followed() -> None:
    async with answering(
        b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    ) as (url, _):
        assert (await http_client.get(url)).status == 301


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (b"", "closed the connection without a response"),
        (b"SSH-2.0-OpenSSH\r\n", r"the response is not HTTP \(.*SSH-2\.0-OpenSSH'\)$"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
            "closed the connection within its response",
        ),
    ],
)
async def test_what_is_no_whole_response_is_named(response: bytes, problem: str) -> None:
    async with answering(response) as (url, _):
        with pytest.raises(Unreachable, match=problem):
            await http_client.get(url)


async def test_a_body_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1 << 20)
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + bytes((1 << 20) + 1)) as (url, _):
        with pytest.raises(Unreachable, match="larger than 1 MiB"):
            await http_client.get(url)


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_a_server_that_does_not_answer_is_named_after_the_time(silent: str) -> None:
    with pytest.raises(Unreachable, match=r"no response in 0\.05 s"):
        await http_client.get(silent, timeout_s=0.05)


async def test_user_and_password_of_a_url_are_sent() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, asked):
        await http_client.get(url.replace("//", "//user:p%40ss@"))
    assert b"\r\nAuthorization: Basic dXNlcjpwQHNz\r\n" in asked[0]


async def test_an_invalid_url_is_named() -> None:
    with pytest.raises(Unreachable, match=r"^http://h:99999/: invalid URL or header$"):
        await http_client.get("http://h:99999/")


async def test_an_invalid_header_is_refused_without_its_value(silent: str) -> None:
    with pytest.raises(Unreachable, match=rf"^{silent}: invalid URL or header$"):
        await http_client.get(silent, headers={"Authorization": "Bearer secret\n"})


async def test_cancelling_waits_for_nobody(silent: str) -> None:
    asking = asyncio.ensure_future(http_client.get(silent, timeout_s=1.0))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "Connection refused"),
        ("nobody.invalid:80", "Name or service not known|name resolution"),
    ],
)
async def test_who_cannot_be_reached_is_named_with_the_systems_reason(
    address: str, reason: str
) -> None:
    with pytest.raises(
        Unreachable, match=rf"/v1/models: no connection to {address} \(.*({reason})"
    ):
        await http_client.get(f"http://{address}/v1/models")


async def test_a_blocking_request_posts_json() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") as (url, asked):
        reply = await asyncio.to_thread(http_client.request, f"{url}/a", {"b": 1})
    assert (str(reply), reply.json()) == ("200 []", [])
    assert asked[0].startswith(b"POST /a HTTP/1.1\r\n")
    assert (
        f"Content-Length: {len(json.dumps({'b': 1}, separators=(',', ':')))}\r\n".encode()
        in asked[0]
    )


@pytest.mark.parametrize(("post", "method"), [(False, b"GET"), (True, b"POST")])
async def test_a_blocking_request_without_a_body_gets_or_posts(post: bool, method: bytes) -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, asked):
        await asyncio.to_thread(http_client.request, url, post=post)
    assert asked[0].startswith(method + b" / HTTP/1.1\r\n")
    assert b"Content-Type" not in asked[0]


def test_an_error_while_a_blocking_request_waits_ends_it(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "WAIT_S", 0.01)

    def on_wait() -> None:
        raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        http_client.request(silent, on_wait=on_wait)


async def test_a_blocking_request_can_be_made_where_a_loop_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        threading.Thread(target=answer).start()
        assert http_client.request(f"http://127.0.0.1:{server.getsockname()[1]}/").status == 204


def test_certificates_are_unread_only_within_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/certificates.pem")
    with http_client.certificates_unread():
        assert os.environ["SSL_CERT_FILE"] == os.devnull
        assert not ssl.create_default_context().get_ca_certs()
    assert os.environ["SSL_CERT_FILE"] == "/certificates.pem"
    monkeypatch.delenv("SSL_CERT_FILE")
    with http_client.certificates_unread():
        pass
    assert "SSL_CERT_FILE" not in os.environ
