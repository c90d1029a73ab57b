"""A small HTTP client for probes, scrapes, ready checks and progress reports. It never sends load.

The standard library's client in a thread: a command imports it in a fifth of the time that aiohttp takes.
"""

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from loadgen.errors import Unreachable

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_BYTES = 16 << 20  # of a response to a probe


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a probe."""

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """Parse the body as JSON; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


async def get(
    url: str, *, headers: dict[str, str] | None = None, verify_tls: bool = True, timeout_s: float = 10.0
) -> Reply:
    """Send a GET request, and return the response of any status.

    Raises:
        Unreachable: No response, none in time, or one that is too large.
    """
    return await _request("GET", url, None, headers or {}, verify_tls, timeout_s)


async def send_json(
    url: str,
    body: bytes,
    *,
    method: str = "POST",
    headers: dict[str, str],
    verify_tls: "bool | SSLContext",
    timeout_s: float = 60.0,
) -> Reply:
    """Send a request with a JSON body, and return the response of any status.

    Args:
        url: The resource.
        body: The JSON.
        method: POST, or PATCH to change the resource.
        headers: Headers in addition to the content type.
        verify_tls: Whether to verify certificates, or the TLS context to verify them with.
        timeout_s: Limit for the whole exchange, s.

    Raises:
        Unreachable: No response, none in time, or one that is too large.
    """
    return await _request(method, url, body, {"Content-Type": "application/json"} | headers, verify_tls, timeout_s)


async def _request(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    verify_tls: "bool | SSLContext",
    timeout_s: float,
) -> Reply:
    """Exchange a request for a response in a thread, which nobody waits for once this is cancelled."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Reply] = loop.create_future()

    def settle(reply: Reply | None, error: Exception | None) -> None:
        if answer.done():
            return
        if reply is not None:
            answer.set_result(reply)
        else:
            answer.set_exception(error or RuntimeError)

    def work() -> None:
        reply, failed = None, None
        try:
            reply = _exchange(method, url, body, headers, verify_tls, timeout_s)
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(settle, reply, failed)

    threading.Thread(target=work, name="http_client", daemon=True).start()
    try:
        async with asyncio.timeout(timeout_s):
            return await answer
    except TimeoutError as error:
        raise Unreachable(f"{url}: no response in {timeout_s:g} s") from error
    except (HTTPException, OSError, ValueError) as error:
        raise Unreachable(f"{url}: {_reason(error, url)}") from error


def _exchange(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    verify_tls: "bool | SSLContext",
    timeout_s: float,
) -> Reply:
    parts = urlsplit(url)
    host, path = parts.hostname or "", urlunsplit(("", "", parts.path or "/", parts.query, ""))
    if parts.scheme == "https":
        connection: HTTPConnection = HTTPSConnection(
            host, parts.port, timeout=timeout_s, context=_tls_context(verify_tls)
        )
    else:
        connection = HTTPConnection(host, parts.port, timeout=timeout_s)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Connection": "close", "Accept": "*/*"} | headers)
        with connection.getresponse() as response:
            content = response.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Unreachable(f"{url}: the response is larger than {MAX_BYTES >> 20} MiB")
    if response.length:
        raise IncompleteRead(content, response.length)
    return Reply(response.status, content, {name.title(): value for name, value in response.getheaders()})


def _tls_context(verify_tls: "bool | SSLContext") -> "SSLContext":
    import ssl

    if isinstance(verify_tls, ssl.SSLContext):
        return verify_tls
    context = ssl.create_default_context()
    if not verify_tls:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _reason(error: Exception, url: str) -> str:
    """Describe why there is no response, with the system's reason for a failed connection."""
    import ssl

    parts = urlsplit(url)
    place = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    match error:
        case ssl.SSLCertVerificationError(verify_message=why):
            return f"the certificate is not trusted ({why or error}; see --insecure)"
        case ssl.SSLError(reason=why):
            return f"no TLS with {place} ({why or error}; if the server has no TLS, write http://)"
        case RemoteDisconnected():
            return "the server closed the connection without a response"
        case IncompleteRead():
            return "the server closed the connection within its response"
        case BadStatusLine():
            return f"the response is not HTTP ({str(error).strip()[:80]})"
        case OSError(errno=number) if number:
            return f"no connection to {place} ({os.strerror(number) if number > 0 else error.strerror})"
    return str(error) or type(error).__name__
