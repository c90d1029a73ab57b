"""Blocking HTTP: one request to a server that loadgen has started, without an event loop.

`loadgen.util.http_client` is for code in an event loop. It imports aiohttp, which takes longer than the simulator takes
to start.
"""

import json
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from loadgen.errors import Unreachable

POLL_S = 0.5
MAX_BODY_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response to a request: status and body."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.status} {self.body[:200].decode(errors='replace')}".strip()


def request(
    url: str, body: Any = None, *, post: bool = False, timeout_s: float = 10.0, on_wait: Callable[[], object] = int
) -> HttpResponse:
    """GET `url`, or POST `body` to it as JSON.

    Args:
        url: Scheme http, host, port and path.
        body: Something that json can write; None: no body.
        post: Whether to POST without a body too.
        timeout_s: Until the response begins, and for each part of it, s.
        on_wait: Called twice a second until the response begins; an exception from it ends the request.

    Returns:
        The response, with at most 16 MiB of its body.

    Raises:
        Unreachable: There is no response, or none in time.
    """
    from http.client import HTTPConnection, HTTPException  # slow to import

    address = urlsplit(url)
    end_s = time.monotonic() + timeout_s
    connection = HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
    try:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request("POST" if post or data is not None else "GET", address.path, data, headers)
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        while not poll.poll(min(POLL_S, max(0.0, end_s - time.monotonic())) * 1000):
            on_wait()
            if time.monotonic() >= end_s:
                raise TimeoutError(f"no answer in {timeout_s:g} s")
        with connection.getresponse() as response:
            return HttpResponse(response.status, response.read(MAX_BODY_BYTES))
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{url}: {error or type(error).__name__}") from error
    finally:
        connection.close()
