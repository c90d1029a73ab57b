"""Connector: opens connections to the server of a target."""

import asyncio
import contextlib
import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from loadgen.client import connect_errors
from loadgen.client.tls_stream import TlsStream, client_context
from loadgen.util.source_address import SourceAddresses

DEFAULT_PORTS = {"http": 80, "https": 443}
NEXT_ADDRESS_S = 0.25  # after so long without an answer the next address of the server is tried beside it (RFC 8305)


class Connector:
    """Opens TCP connections to one server, and TLS sessions over them. The name of the server is looked up once.

    A look-up for each connection would take its time in a thread, and a changing answer would change the target under
    test. Where a name has several addresses, connections begin with each in turn.

    Args:
        url: Of the server.
        timeout_s: Limit for the look-up, the connection and the TLS handshake together; None: no limit.
        verify_tls: Whether the server's certificate must be trusted.
        sources: Creates the sockets.
    """

    def __init__(self, url: str, timeout_s: float | None, *, verify_tls: bool, sources: SourceAddresses) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        self._timeout_s, self._sources = timeout_s, sources
        self._tls = client_context(verify=verify_tls) if parts.scheme == "https" else None
        self._look_up: asyncio.Future[Any] | None = None
        self._turn = 0

    @property
    def uses_tls(self) -> bool:
        """Whether connections have TLS."""
        return self._tls is not None

    async def open(self) -> tuple[asyncio.Transport, TlsStream | None]:
        """Open a connection; its transport has a protocol that does nothing.

        Raises:
            CannotConnect: There is no connection.
        """
        step = connect_errors.LOOKING_UP
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = await self._addresses()
                step = connect_errors.CONNECTING
                transport = await self._connect(addresses)
                if self._tls is None:
                    return transport, None
                step = connect_errors.SHAKING_HANDS
                return transport, await self._shake_hands(transport, self._tls)
        except Exception as error:
            raise connect_errors.cannot_connect(error, f"{self._host}:{self._port}", step) from error

    def close(self) -> None:
        """End a look-up that nobody waits for any more."""
        if self._look_up is not None:
            self._look_up.cancel()

    async def _connect(self, addresses: list[Any]) -> asyncio.Transport:
        loop, first = asyncio.get_running_loop(), self._turn % len(addresses)
        self._turn += 1
        opened = await start_connection(
            [*addresses[first:], *addresses[:first]],
            happy_eyeballs_delay=NEXT_ADDRESS_S,
            loop=loop,
            socket_factory=self._sources.socket,
        )
        try:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=opened)
        except BaseException:
            with contextlib.suppress(OSError):  # uvloop may have closed it
                opened.close()
            raise
        return transport

    async def _shake_hands(self, transport: asyncio.Transport, context: Any) -> TlsStream:
        try:
            tls = TlsStream(context, self._host.removesuffix("."))
            await tls.shake_hands(transport)
        except BaseException:
            transport.abort()
            raise
        return tls

    async def _addresses(self) -> list[Any]:
        """Look the name up, unless that has been done or is under way; a failed look-up is repeated."""
        known = self._look_up
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            known = self._look_up = asyncio.ensure_future(
                asyncio.get_running_loop().getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=_flags(self._host)
                )
            )
            known.add_done_callback(_take_error)
        addresses: list[Any] = await asyncio.shield(known)
        return addresses


def _flags(host: str) -> int:
    """Return flags of getaddrinfo: an address is not looked up; a name, only in the families that this machine has."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return socket.AI_NUMERICHOST
    return socket.AI_ADDRCONFIG


def _take_error(look_up: "asyncio.Future[Any]") -> None:
    """Take the error of a look-up that nobody may be waiting for any more, so that it is not logged."""
    if not look_up.cancelled():
        look_up.exception()
