"""Ask: one HTTP request to a server of ours, and the wait for its answer, without an event loop.

`loadgen.util.http_client` is for code in an event loop. It imports aiohttp, which takes longer than the simulator does
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

TICK_S = 0.5
LARGEST = 16 << 20  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What it said."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.status} {self.body[:200].decode(errors='replace')}".strip()


def ask(
    url: str, body: Any = None, *, post: bool = False, timeout_s: float = 10.0, meanwhile: Callable[[], object] = int
) -> Answer:
    """GET `url`, or POST `body` to it as JSON.

    Args:
        url: Scheme http, host, port and path.
        body: Something for json; None: nothing is sent.
        post: Whether to POST without a body too.
        timeout_s: Until the answer begins, and for each part of it.
        meanwhile: Called twice a second while it has not begun; what it raises ends the wait.

    Raises:
        Unreachable: No answer, or none in time.
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
        while not poll.poll(min(TICK_S, max(0.0, end_s - time.monotonic())) * 1000):
            meanwhile()
            if time.monotonic() >= end_s:
                raise TimeoutError(f"no answer in {timeout_s:g} s")
        with connection.getresponse() as reply:
            return Answer(reply.status, reply.read(LARGEST))
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{url}: {error or type(error).__name__}") from error
    finally:
        connection.close()
