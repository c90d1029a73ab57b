"""RouteConnector: has aiohttp open its connections by a route, as those of the load are opened."""

from collections.abc import Callable
from typing import Any

from aiohttp import BaseConnector
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from loadgen.util.dialer import Dialer, Reached
from loadgen.util.route import Route, basic_auth
from loadgen.util.source_address import SourceAddresses


class RouteConnector(BaseConnector):
    """Opens the connections of a session to one server.

    Args:
        url: Of the server.
        route: How it is reached.
        timeout_s, sources: As of a Dialer.
        protocol: Makes the protocol of a connection; None: aiohttp's own.
        options: As of a BaseConnector.

    Attributes:
        advice: As that of a Dialer.
        proxy: The proxy that is asked for the whole URL, an argument of the session; None: none.
        headers: What the session must send to it.

    Raises:
        BadInput: A file of the route cannot be used.
    """

    def __init__(
        self,
        url: str,
        route: Route,
        timeout_s: float | None = None,
        sources: SourceAddresses | None = None,
        protocol: Callable[[], ResponseHandler] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._dialer = Dialer(url, route, timeout_s, sources)
        self._protocol = protocol or self._factory
        self.advice = self._dialer.advice
        self.proxy: URL | None = None
        self.headers: dict[str, str] = {}
        if route.proxy is not None and not self._dialer.tunnels:
            place = URL(route.proxy, encoded=True)
            self.proxy = place.with_user(None)
            if user := place.raw_authority.rpartition("@")[0]:
                self.headers["Proxy-Authorization"] = basic_auth(user)

    async def _create_connection(self, *_: Any) -> ResponseHandler:
        """Open a connection, as aiohttp asks of the connectors that others write.

        Raises:
            CannotConnect: There is no connection.
        """
        return await self._dialer.open(self._begin)

    async def _begin(self, reached: Reached) -> ResponseHandler:
        tls: dict[str, Any] = {}
        if self._dialer.tls is not None:
            tls = {"ssl": self._dialer.tls, "server_hostname": self._dialer.tls_name}
        _transport, protocol = await self._dialer.transport(reached.socket, self._protocol, **tls)
        return protocol
