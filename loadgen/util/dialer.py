"""Dialer: opens connections to one server by its route, and says why where it cannot.

A name is looked up once. Through a proxy, CONNECT asks for a tunnel to the server, also where the
server has no TLS, unless the route says otherwise: what goes through the tunnel is the same as
without a proxy.
"""

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from aiohappyeyeballs import start_connection

from loadgen.errors import FLAGS, setting
from loadgen.util.clock import now_ns
from loadgen.util.route import PROXY, PROXY_FORM, Route, basic_auth
from loadgen.util.source_address import SourceAddresses

Begun = TypeVar("Begun")
Protocol = TypeVar("Protocol", bound=asyncio.BaseProtocol)
Kind = Literal["refused", "dns_error", "connect_timeout", "tls_error", "client_error"]

DEFAULT_PORTS = {"http": 80, "https": 443}
# after so long without an answer the next address of the server is tried beside it (RFC 8305)
NEXT_ADDRESS_S = 0.25
FULL_QUEUE_S = 0.001  # until a server whose queue of connections is full is asked again
MAX_HEAD_BYTES = 1 << 16  # of the answer of a proxy
PROXY_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\r?\n")
# Errors of connecting that are this machine's, not the server's.
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
LOOKING_UP = "looking up"
CONNECTING = "connecting"
TUNNELLING = "asking the proxy"
TLS_HANDSHAKE = "TLS handshake"
CLOSED_IN_HANDSHAKE = "connection closed inside the TLS handshake"
# Endings of the names of alerts by which a server refuses the certificate of a client.
REFUSED_CERTIFICATE = (
    "_CERTIFICATE",
    "_CERTIFICATE_EXPIRED",
    "_CERTIFICATE_REVOKED",
    "_CERTIFICATE_UNKNOWN",
    "_UNKNOWN_CA",
    "_ACCESS_DENIED",
)


class Reached(NamedTuple):
    """A socket that is connected to a server, before TLS.

    Attributes:
        socket: The socket.
        bytes_read: How many bytes were read from it: the answer of a proxy.
        dns_ns: How long the look-up of the name took, ns; 0 once it is known.
        tcp_ns: How long the connection took, that of a tunnel included, ns.
    """

    socket: socket.socket
    bytes_read: int
    dns_ns: int
    tcp_ns: int


class CannotConnect(Exception):
    """No connection could be opened; the text says why.

    Attributes:
        kind: The name of the outcome that it makes of a request.
        reason: The text before it names settings, which `str` names by their flags.
        advises: Whether the text says what to do.
    """

    def __init__(self, kind: Kind, reason: str, *, advises: bool = False) -> None:
        super().__init__(FLAGS.text(reason))
        self.kind = kind
        self.reason = reason
        self.advises = advises


class Dialer:
    """Opens connections to one server. Its name, or that of its proxy, is looked up once.

    A look-up for each connection would take its time in a thread, and a changing answer would
    change the target under test. Where a name has several addresses, connections begin with each in
    turn.

    Args:
        url: Of the server.
        route: How it is reached.
        timeout_s: Limit for the look-up, the connection and the TLS handshake together; None: no
            limit.
        sources: Creates the sockets; None: the system chooses their addresses.

    Attributes:
        tls: The context of TLS sessions with the server; None: it has no TLS.
        tls_name: The name that its certificate must have.
        tunnels: Whether its connections are tunnels through a proxy.
        advice: What to do where it closes a connection without a word, from its "; " on.

    Raises:
        BadInput: A file of the route cannot be used.
    """

    def __init__(
        self,
        url: str,
        route: Route,
        timeout_s: float | None = None,
        sources: SourceAddresses | None = None,
    ) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._timeout_s = timeout_s
        self._sources = sources
        self._server = f"{host}:{parts.port or DEFAULT_PORTS[parts.scheme]}"
        self._socket_path = route.unix_socket
        self._proxy = None if route.proxy is None else urlsplit(route.proxy)
        self._next = self._proxy or parts  # whom a TCP connection reaches
        self._look_up: asyncio.Future[Any] | None = None
        self._turn = 0
        self.tls = route.tls_context() if parts.scheme == "https" else None
        self.tunnels = self._proxy is not None and (route.tunnels or self.tls is not None)
        self.tls_name = route.server_name or host.removesuffix(".")
        self.advice = ""
        if self.tls is not None:
            self.advice = f"; if it wants a client certificate, give {setting.client_cert}"
            if route.client_cert is not None:
                self.advice = f"; if it refuses the client certificate, see {setting.client_cert}"

    async def open(self, begin: Callable[[Reached], Awaitable[Begun]]) -> Begun:
        """Open a connection.

        Args:
            begin: Takes the connected socket, which it closes if it fails; it includes the TLS
                handshake.

        Returns:
            What `begin` returns.

        Raises:
            CannotConnect: There is no connection.
        """
        step = LOOKING_UP
        begun_ns = looked_up_ns = now_ns()
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._socket_path is None:
                    addresses = await self._addresses()
                    looked_up_ns = now_ns()
                    step = CONNECTING
                    connection = await self._connect(addresses)
                else:
                    step = CONNECTING
                    connection = await _connect_unix(self._socket_path)
                bytes_read = 0
                if self.tunnels and self._proxy is not None:
                    step = TUNNELLING
                    bytes_read = await self._tunnel(connection, self._proxy)
                step = TLS_HANDSHAKE
                dns_ns, tcp_ns = looked_up_ns - begun_ns, now_ns() - looked_up_ns
                return await begin(Reached(connection, bytes_read, dns_ns, tcp_ns))
        except CannotConnect:
            raise
        except Exception as error:
            address, advice = self._hop, f"; see {PROXY}" if self._proxy is not None else ""
            if step == TLS_HANDSHAKE:
                address, advice = self._server, self.advice
            raise cannot_connect(error, address, step, advice) from error

    async def transport(
        self, connection: socket.socket, protocol: Callable[[], Protocol], **tls: Any
    ) -> tuple[asyncio.Transport, Protocol]:
        """Make the transport of a connected socket, which is closed if that fails.

        Args:
            connection: The socket.
            protocol: Makes its protocol.
            tls: As for `loop.create_connection`, if the event loop is to encrypt.
        """
        loop = asyncio.get_running_loop()
        is_unix = self._socket_path is not None
        create: Any = loop.create_unix_connection if is_unix else loop.create_connection
        try:
            made: tuple[asyncio.Transport, Protocol] = await create(
                protocol, sock=connection, **tls
            )
        except BaseException:
            with contextlib.suppress(OSError):  # uvloop may have closed it
                connection.close()
            raise
        return made

    def close(self) -> None:
        """End a look-up that nobody waits for any more."""
        if self._look_up is not None:
            self._look_up.cancel()

    async def _connect(self, addresses: list[Any]) -> socket.socket:
        first = self._turn % len(addresses)
        sources = self._sources
        self._turn += 1
        loop: Any = _ThreadlessLoop(asyncio.get_running_loop())
        return await start_connection(
            [*addresses[first:], *addresses[:first]],
            happy_eyeballs_delay=NEXT_ADDRESS_S,
            loop=loop,
            socket_factory=None if sources is None else sources.socket,
        )

    async def _addresses(self) -> list[Any]:
        """Look the name up, unless that has been done or is under way; a failed look-up is
        repeated.
        """
        look_up = self._look_up
        if look_up is None or (
            look_up.done() and (look_up.cancelled() or look_up.exception() is not None)
        ):
            host = self._next.hostname or ""
            flags = socket.AI_ADDRCONFIG  # a name only in the families that this machine has
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(host)
                flags = socket.AI_NUMERICHOST
            look_up = self._look_up = asyncio.ensure_future(
                asyncio.get_running_loop().getaddrinfo(
                    host,
                    self._next.port or DEFAULT_PORTS[self._next.scheme],
                    type=socket.SOCK_STREAM,
                    flags=flags,
                )
            )
            look_up.add_done_callback(_take_error)
        addresses: list[Any] = await asyncio.shield(look_up)
        return addresses

    async def _tunnel(self, connection: socket.socket, proxy: SplitResult) -> int:
        """Have the proxy connect to the server; return how many bytes were read.

        Raises:
            CannotConnect: It does not.
            OSError: The connection to it broke.
        """
        loop = asyncio.get_running_loop()
        host, _, port = self._server.rpartition(":")
        place = f"[{host}]:{port}" if ":" in host else self._server
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        user = proxy.netloc.rpartition("@")[0]
        lines += [f"Proxy-Authorization: {basic_auth(user)}"] if user else []
        head = b""
        try:
            await loop.sock_sendall(connection, "\r\n".join([*lines, "", ""]).encode("latin-1"))
            while b"\r\n\r\n" not in head and len(head) <= MAX_HEAD_BYTES:
                if not (part := await loop.sock_recv(connection, MAX_HEAD_BYTES)):
                    raise self._refused(f"closed the connection without connecting to {place}")
                head += part
            status = PROXY_STATUS.match(head)
            if status is None or (status[1] == b"200" and not head.endswith(b"\r\n\r\n")):
                raise self._refused("does not answer as an HTTP proxy does")
            if status[1] != b"200":
                raise self._refused(*_refusal(status, place, bool(user)))
        except BaseException:
            connection.close()
            raise
        return len(head)

    def _refused(self, what: str, remedy: str = f"see {PROXY}") -> CannotConnect:
        return CannotConnect("refused", f"{self._hop} {what}; {remedy}", advises=True)

    @property
    def _hop(self) -> str:
        """Whom a connection reaches first, as text."""
        if self._socket_path is not None:
            return f"the Unix socket {self._socket_path}"
        if self._proxy is None:
            return self._server
        port = self._proxy.port or DEFAULT_PORTS[self._proxy.scheme]
        return f"the proxy {self._proxy.hostname}:{port}"


class _ThreadlessLoop:
    """An event loop that connects sockets without a thread.

    That of uvloop has one of four look each address up, also one that needs no look-up. They stay,
    and beside other threads each system call of the loop costs more.

    Args:
        loop: The running event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def sock_connect(self, connection: socket.socket, address: Any) -> None:
        """Connect a socket that does not block."""
        with contextlib.suppress(BlockingIOError):
            connection.connect(address)
            return
        answered = asyncio.Event()
        self._loop.add_writer(connection, answered.set)
        try:
            await answered.wait()
        finally:
            self._loop.remove_writer(connection)
        if number := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, f"Connect call failed {address}")


def cannot_connect(error: Exception, address: str, step: str, advice: str = "") -> CannotConnect:
    """Return the error to raise for one that was met.

    Args:
        error: The error.
        address: Whom the step was to reach: host and port, or more words.
        step: LOOKING_UP, CONNECTING, TUNNELLING or TLS_HANDSHAKE.
        advice: What to do, from its "; " on, if no other advice fits.
    """
    # For several addresses, aiohappyeyeballs puts the errnos into the text only.
    numbers = set(map(int, re.findall(r"\[Errno (\d+)\]", str(error))))
    if (number := getattr(error, "errno", None)) is not None:
        numbers = {number}
    kind: Kind = "refused"
    match error:
        case (
            socket.gaierror() | UnicodeError()
        ):  # of a name with a label of more than 63 characters
            kind = "dns_error"
            reason = getattr(error, "strerror", None) or "no valid name"
            reason = f"no connection to {address} ({reason})"
        case ssl.SSLError():
            return CannotConnect("tls_error", tls_problem(error, address), advises=True)
        case TimeoutError():
            kind = "connect_timeout"
            # The system has a limit, too.
            how_long = "in time" if error.errno else f"within {setting.connect_timeout}"
            reason = {
                LOOKING_UP: f"no address of {address} {how_long}",
                TUNNELLING: f"no tunnel of {address} {how_long}",
                TLS_HANDSHAKE: f"the TLS handshake took longer than {setting.connect_timeout}",
            }.get(step, f"no connection to {address} {how_long}")
            advice = "" if step == TLS_HANDSHAKE else advice
        case OSError() if numbers:
            kind = "client_error" if numbers & OUR_LIMITS else "refused"
            reasons = "; ".join(map(os.strerror, sorted(numbers)))
            goal = "TLS with" if step == TLS_HANDSHAKE else "connection to"
            reason = f"no {goal} {address} ({reasons})"
        case ConnectionError() if step == TLS_HANDSHAKE:
            reason = str(error) or CLOSED_IN_HANDSHAKE
        case _:
            kind = "refused" if isinstance(error, OSError) else "client_error"
            reason = str(error) or type(error).__name__
    return CannotConnect(kind, f"{reason}{advice}", advises=bool(advice))


def tls_problem(error: ssl.SSLError, address: str) -> str:
    """Return why there is no TLS session with a server, and what to do."""
    reason = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "verify_message", "") or str(error)
        flag = setting.server_name if "mismatch" in why else setting.ca_cert
        return f"the certificate is not trusted ({why}; see {flag} and {setting.insecure})"
    remedy = "if the server has no TLS, write http://"
    if reason.endswith("_ALERT_HANDSHAKE_FAILURE"):
        remedy = f"if the server wants a client certificate, give {setting.client_cert}"
    return client_problem(error) or f"no TLS with {address} ({reason or error}; {remedy})"


def client_problem(error: ssl.SSLError) -> str | None:
    """Return what a server says against the client's certificate; None: it says nothing."""
    reason = getattr(error, "reason", None) or ""
    words = reason.partition("_ALERT_")[2].replace("_", " ").lower()
    if reason.endswith("_CERTIFICATE_REQUIRED"):
        return f"the server wants a client certificate ({words}; give {setting.client_cert})"
    if words and reason.endswith(REFUSED_CERTIFICATE):
        return f"the server refuses the client certificate ({words}; see {setting.client_cert})"
    return None


def _refusal(status: re.Match[bytes], place: str, has_user: bool) -> tuple[str, str]:
    """Return what a proxy has answered to CONNECT, and what to do."""
    phrase = (status[2] or b"").decode("latin-1").strip()[:80]
    text = f"answers {status[1].decode()}{f' ({phrase})' if phrase else ''}"
    if status[1] != b"407":
        return f"{text} when asked to connect to {place}", f"see {PROXY} and {setting.base_url}"
    if has_user:
        return f"{text}: it does not accept the user and password", f"correct those of {PROXY}"
    return f"{text}: it wants a user and a password", f"write {PROXY} {PROXY_FORM}"


async def _connect_unix(path: str) -> socket.socket:
    """Connect to a Unix socket; wait while the server's queue of connections is full, which the
    kernel does only for sockets that block.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                connection.connect(path)
                return connection
            await asyncio.sleep(FULL_QUEUE_S)
    except BaseException:
        connection.close()
        raise


def _take_error(look_up: "asyncio.Future[Any]") -> None:
    """Take the error of a look-up that nobody may be waiting for any more, so that it is not
    logged.
    """
    if not look_up.cancelled():
        look_up.exception()
