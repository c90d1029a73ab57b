"""A router before several servers: a request goes where its key lies on a ring of hashes
(consistent hashing).
"""

import contextlib
import hashlib
from bisect import bisect
from collections.abc import AsyncIterator, Sequence

import aiohttp
from aiohttp import web

POINTS = 64  # of each server on the ring


class SessionRouter:
    """Passes requests on by the value of a header, or by the id of the request where it has none.

    Args:
        servers: Their URLs.
        header: The header with the key.

    Attributes:
        chosen: The number of the server of each request, by the index in the request's id.
    """

    def __init__(self, servers: Sequence[str], header: str) -> None:
        self._servers, self._header = servers, header
        points = [
            (_place(f"{number}/{point}"), number)
            for number in range(len(servers))
            for point in range(POINTS)
        ]
        self._ring = sorted(points)
        self.chosen: dict[int, int] = {}

    def server_of(self, key: str) -> int:
        """The number of the server at or after the place of a key."""
        place = bisect(self._ring, (_place(key), 0))
        return self._ring[place % len(self._ring)][1]

    def choose(self, request: web.Request, identity: str) -> int:
        """The number of the server of a request."""
        return self.server_of(request.headers.get(self._header, identity))

    def returned(self, request: web.Request, number: int) -> list[tuple[str, str]]:
        """Header fields of the answer to a request that this server has."""
        return []

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Send a request to its server, and the answer back as it comes."""
        identity = request.headers.get("X-Request-Id", "0")
        number = self.choose(request, identity)
        if request.method == "POST":
            self.chosen[int(identity.rpartition("-")[2])] = number
        headers = {
            "Content-Type": request.headers.get("Content-Type", "application/json"),
            "X-Request-Id": identity,
        }
        url = self._servers[number] + request.path_qs
        asking = self._session.request(
            request.method, url, data=await request.read(), headers=headers
        )
        async with asking as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.content_type}
            )
            response.headers.extend(self.returned(request, number))
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve while the context lasts; gives the URL."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        async with aiohttp.ClientSession() as self._session:
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                yield f"http://127.0.0.1:{runner.addresses[0][1]}"
            finally:
                await runner.cleanup()


class TokenRouter(SessionRouter):
    """Chooses a server by chance, and returns a token that names it: a request with the token goes
    there again.

    Args:
        servers: Their URLs.
        header: The response header with the token; `Set-Cookie`: cookies, which it sets for
            requests that have none.
    """

    def choose(self, request: web.Request, identity: str) -> int:
        """The server that the token names."""
        cookies = {name: cookie for name, cookie in request.cookies.items() if name == "server"}
        token = (
            cookies.get("server")
            if self._header == "Set-Cookie"
            else request.headers.get(self._header)
        )
        return self.server_of(identity) if token is None else int(token.removeprefix("token-"))

    def returned(self, request: web.Request, number: int) -> list[tuple[str, str]]:
        """The token."""
        if self._header != "Set-Cookie":
            return [(self._header, f"token-{number}")]
        if "server" in request.cookies:
            return []
        return [
            (self._header, f"server=token-{number}; Path=/; HttpOnly"),
            (self._header, "other=1"),
        ]


def _place(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
