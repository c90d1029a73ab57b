"""RouteConnector: has aiohttp open its connections by a route, as those of the load are opened."""

import socket
from typing import Any

from aiohttp import BaseConnector
from aiohttp.client_proto import ResponseHandler

from loadgen.util.dialer import Dialer
from loadgen.util.route import Route


class RouteConnector(BaseConnector):
    """Opens the connection of one request.

    Args:
        url: Of the server.
        route: How it is reached.

    Attributes:
        advice: As that of a Dialer.

    Raises:
        BadInput: A file of the route cannot be used.
    """

    def __init__(self, url: str, route: Route) -> None:
        super().__init__(force_close=True)
        self._dialer = Dialer(url, route)
        self.advice = self._dialer.advice

    async def _create_connection(self, *_: Any) -> ResponseHandler:
        """Open a connection, as aiohttp asks of the connectors that others write.

        Raises:
            CannotConnect: There is no connection.
        """
        return await self._dialer.open(self._begin)

    async def _begin(self, connection: socket.socket, _: int) -> ResponseHandler:
        tls: dict[str, Any] = {}
        if self._dialer.tls is not None:
            tls = {"ssl": self._dialer.tls, "server_hostname": self._dialer.tls_name}
        _transport, protocol = await self._dialer.transport(connection, self._factory, **tls)
        return protocol
