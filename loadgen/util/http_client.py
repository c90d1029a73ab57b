"""A small HTTP client for probes, scrapes, ready checks and progress reports, on aiohttp. It never
sends load.

`get` and `send_json` are for code in an event loop, and `request` is for code that blocks. A
request has a connection of its own, by the route of the load. Redirects are not followed.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
from msgspec import Struct

from loadgen.errors import Unreachable
from loadgen.util.route import DIRECT, Route, basic_auth

MAX_BYTES = 16 << 20  # of a response to a probe
READ_BYTES = 1 << 16
WAIT_S = 0.5


class Reply(Struct, frozen=True):
    """The response to a probe.

    Attributes:
        status: Its status code.
        body: Its body, with at most MAX_BYTES.
        headers: Its headers, with names in the form `Content-Type`.
    """

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """Parse the body as JSON; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    def __str__(self) -> str:
        return f"{self.status} {self.body[:200].decode(errors='replace')}".strip()


async def get(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    route: Route = DIRECT,
    timeout_s: float = 10.0,
) -> Reply:
    """Send a GET request.

    Args:
        url: Scheme http or https, host, port and path; a user in it is sent as basic
            authentication.
        headers: Headers of the request.
        route: How the server is reached.
        timeout_s: Limit for the whole response, s.

    Returns:
        The response, of any status.

    Raises:
        Unreachable: No response, none in time, or one that is too large.
    """
    return await _exchange("GET", url, None, headers or {}, route, timeout_s)


async def send_json(
    url: str,
    body: bytes,
    *,
    method: str = "POST",
    headers: dict[str, str],
    route: Route,
    timeout_s: float = 60.0,
) -> Reply:
    """Send a request with a JSON body.

    Args:
        url: As for `get`.
        body: The JSON; empty: the request has no body.
        method: POST, or PATCH to change the resource.
        headers: Headers in addition to the content type.
        route: How the server is reached.
        timeout_s: Limit for the whole response, s.

    Returns:
        The response, of any status.

    Raises:
        Unreachable: As `get`.
    """
    content_type = {"Content-Type": "application/json"} if body else {}
    return await _exchange(method, url, body or None, content_type | headers, route, timeout_s)


def request(
    url: str,
    body: Any = None,
    *,
    post: bool = False,
    timeout_s: float = 10.0,
    on_wait: Callable[[], object] = int,
) -> Reply:
    """GET `url`, or POST `body` to it as JSON, and block until the response has come.

    Args:
        url: As for `get`.
        body: Something that JSON can express; None: no body.
        post: Whether to POST without a body too.
        timeout_s: Limit for the whole response, s.
        on_wait: Called twice a second meanwhile; an exception from it ends the request.

    Returns:
        The response, of any status.

    Raises:
        Unreachable: As `get`.
    """
    data = None if body is None else orjson.dumps(body)
    method = "GET" if data is None and not post else "POST"
    headers = {} if data is None else {"Content-Type": "application/json"}
    return _blocking(method, url, data, headers, timeout_s, on_wait)


def send(url: str, body: bytes, headers: dict[str, str], timeout_s: float = 30.0) -> Reply:
    """POST `body` to `url`, and block until the response has come.

    Args:
        url: As for `get`.
        body: The body.
        headers: Its type, and further headers.
        timeout_s: Limit for the whole response, s.

    Returns:
        The response, of any status.

    Raises:
        Unreachable: As `get`.
    """
    return _blocking("POST", url, body, headers, timeout_s, int)


def _blocking(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    timeout_s: float,
    on_wait: Callable[[], object],
) -> Reply:
    async def wait() -> Reply:
        reply = asyncio.ensure_future(_exchange(method, url, body, headers, DIRECT, timeout_s))
        while not (await asyncio.wait([reply], timeout=WAIT_S))[0]:
            on_wait()
        return reply.result()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with ThreadPoolExecutor(
        1
    ) as thread:  # the caller runs in a loop, as the cell of a notebook does
        return thread.submit(asyncio.run, wait()).result()


async def _exchange(
    method: str,
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    route: Route,
    timeout_s: float,
) -> Reply:
    import aiohttp  # takes 0.2 s of CPU time, which is not spent where nothing is asked
    from yarl import URL

    from loadgen.util.dialer import CannotConnect
    from loadgen.util.route_connector import RouteConnector

    advice = ""
    try:
        connector = RouteConnector(url, route, force_close=True)
        advice = connector.advice
        place = URL(url, encoded=True)
        user = place.raw_authority.rpartition("@")[0]
        authorization = {"Authorization": basic_auth(user)} if user else {}
        async with (
            aiohttp.ClientSession(
                connector=connector,
                proxy=connector.proxy,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                skip_auto_headers=("User-Agent", "Content-Type"),
                # compression would cost the server CPU time
                headers={"Accept-Encoding": "identity"} | connector.headers,
            ) as session,
            session.request(
                method,
                place.with_user(None),
                data=body,
                headers=authorization | headers,
                allow_redirects=False,
            ) as response,
        ):
            content = bytearray()
            async for part in response.content.iter_chunked(READ_BYTES):
                content += part
                if len(content) > MAX_BYTES:
                    raise Unreachable(f"{url}: the response is larger than {MAX_BYTES >> 20} MiB")
            fields = {name.title(): value for name, value in response.headers.items()}
            return Reply(response.status, bytes(content), fields)
    except TimeoutError as error:
        raise Unreachable(f"{url}: no response in {timeout_s:g} s") from error
    except CannotConnect as error:
        raise Unreachable(f"{url}: {error.reason}", advises=error.advises) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason, advice = _reason(error, advice)
        raise Unreachable(f"{url}: {reason}{advice}", advises=bool(advice)) from error


@contextlib.contextmanager
def certificates_unread() -> Iterator[None]:
    """Keep OpenSSL from reading the certificates of this machine while aiohttp is imported.

    aiohttp makes a TLS context when it is imported, which takes 0.07 s of CPU time, and `get` and
    `send_json` use their own. aiohttp's trusts nobody then: only for a process of our own.
    """
    variable = ssl.get_default_verify_paths().openssl_cafile_env
    path = os.environ.get(variable)
    os.environ[variable] = os.devnull
    try:
        yield
    finally:
        if path is None:
            del os.environ[variable]
        else:
            os.environ[variable] = path


def _reason(error: Exception, advice: str) -> tuple[str, str]:
    """Return why there is no response, and what to do: `advice` where the server said nothing."""
    import aiohttp

    from loadgen.util.dialer import client_problem

    match error:
        case OSError(__cause__=ssl.SSLError() as cause):
            return client_problem(cause) or str(cause), ""
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without a response", advice
        case aiohttp.ClientPayloadError():
            return "the server closed the connection within its response", ""
        case aiohttp.ClientResponseError(message=why):
            return f"the response is not HTTP ({' '.join(why.split())[:80].rstrip(' ^')})", ""
        case OSError(errno=number) if number:
            return f"the connection broke ({os.strerror(number)})", advice
        case ValueError():  # its text may show a header, and so the key
            return "invalid URL or header", ""
    return str(error) or type(error).__name__, ""
