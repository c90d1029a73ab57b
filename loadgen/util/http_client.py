"""A small HTTP client for probes, scrapes, ready checks and progress reports. It never sends load.

The standard library's client in a thread: a command imports it in a fifth of the time that aiohttp takes.
"""

import asyncio
import base64
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

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
    return await _in_thread(url, timeout_s, partial(_exchange, "GET", url, None, headers or {}, verify_tls, timeout_s))


async def send_json(
    url: str,
    body: bytes,  # the JSON; empty: the request has no body
    *,
    method: str = "POST",  # POST, or PATCH to change the resource
    headers: dict[str, str],  # headers in addition to the content type
    verify_tls: "bool | SSLContext",  # whether to verify certificates, or the TLS context to verify them with
    timeout_s: float = 60.0,
) -> Reply:
    """Send a request with a JSON body, and return the response of any status.

    Raises:
        Unreachable: As `get`.
    """
    sent = ({"Content-Type": "application/json"} if body else {}) | headers
    return await _in_thread(url, timeout_s, partial(_exchange, method, url, body, sent, verify_tls, timeout_s))


async def _in_thread(url: str, timeout_s: float, exchange: Callable[[], Reply]) -> Reply:
    """Call `exchange` in a daemon thread. Cancelling abandons the thread."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Reply] = loop.create_future()

    def work() -> None:
        settle: Callable[[], object]
        try:
            settle = partial(answer.set_result, exchange())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            settle = partial(answer.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(lambda: answer.done() or settle())

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
        context = _tls_context(verify=verify_tls) if isinstance(verify_tls, bool) else verify_tls
        connection: HTTPConnection = HTTPSConnection(host, parts.port, timeout=timeout_s, context=context)
    else:
        connection = HTTPConnection(host, parts.port, timeout=timeout_s)
    user = parts.netloc.rpartition("@")[0]
    authorization = {"Authorization": basic_auth(user)} if user else {}
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Connection": "close", "Accept": "*/*"} | authorization | headers)
        with connection.getresponse() as response:
            content = response.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Unreachable(f"{url}: the response is larger than {MAX_BYTES >> 20} MiB")
    if response.length:
        raise IncompleteRead(content, response.length)
    return Reply(response.status, content, {name.title(): value for name, value in response.getheaders()})


def basic_auth(user: str) -> str:
    """Return the Authorization header for `user:password` as a URL writes it."""
    return "Basic " + base64.b64encode(unquote(user).encode()).decode()


@cache
def _tls_context(*, verify: bool) -> "SSLContext":
    import ssl

    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _reason(error: Exception, url: str) -> str:
    import ssl

    match error:
        case ssl.SSLCertVerificationError(verify_message=why):
            return f"the certificate is not trusted ({why or error}; see --insecure)"
        case ValueError():  # its text may show a header, and so the key
            return "invalid URL or header"
        case ssl.SSLError(reason=why):
            return f"no TLS with {_place(url)} ({why or error}; if the server has no TLS, write http://)"
        case RemoteDisconnected():
            return "the server closed the connection without a response"
        case IncompleteRead():
            return "the server closed the connection within its response"
        case BadStatusLine():
            return f"the response is not HTTP ({str(error).strip()[:80]})"
        case OSError(errno=number) if number:
            return f"no connection to {_place(url)} ({os.strerror(number) if number > 0 else error.strerror})"
    return str(error) or type(error).__name__


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
