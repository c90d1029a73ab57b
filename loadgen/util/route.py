"""Route: how connections to a server are opened: whom TLS trusts, who the client is, and whether
they go directly, through a proxy or over a Unix socket.

All that connects to a server takes the same Route, so probes and scrapes go the way of the load.
"""

import base64
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from loadgen.errors import BadInput, setting
from loadgen.util.redaction import WithCredentials, redact_user

if TYPE_CHECKING:  # slow to import: flags need it not
    import ssl

CA_CERT, CLIENT_CERT, CLIENT_KEY = setting.ca_cert, setting.client_cert, setting.client_key
PROXY, UNIX_SOCKET = setting.proxy, setting.unix_socket
PROXY_FORM = "http://HOST:PORT, with USER:PASSWORD@ before HOST if it wants them"
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # variables that name those of this machine
MAX_CONTEXTS = 16
CERTIFICATE, PRIVATE_KEY, ENCRYPTED = b"CERTIFICATE-----", b"PRIVATE KEY-----", b"ENCRYPTED"


class Route(WithCredentials, frozen=True):
    """How connections to a server are opened; by default directly, and TLS trusts the authorities
    of this machine.

    Attributes:
        verify: Whether the server's certificate must be trusted, and be that of its name.
        ca_cert: A PEM file with the authorities to trust; None: those of this machine.
        client_cert: A PEM file with the client's certificate, for servers that want one.
        client_key: A PEM file with its key; None: it is in `client_cert`.
        server_name: The name to ask for in TLS, and to verify; None: the host of the URL.
        proxy: The URL of an HTTP proxy that connects to the server; None: none.
        tunnels: Whether that is asked for a tunnel to a server without TLS, too; else it is asked
            for the whole URL, and forwards the request.
        unix_socket: The path of the server's Unix socket; None: it is reached over TCP.
    """

    verify: bool = True
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    server_name: str | None = None
    proxy: str | None = None
    tunnels: bool = True
    unix_socket: str | None = None

    def tls_context(self) -> "ssl.SSLContext":
        """Return the TLS context of the client, for HTTP/1.1; the same as before unless a file has
        changed.

        Raises:
            BadInput: A file cannot be used; the field is its flag.
        """
        files = (self.ca_cert, self.client_cert, self.client_key)
        changes = (*map(_changed_ns, files), *map(os.environ.get, AUTHORITIES))
        return _tls_context(self.verify, *files, changes)

    def __str__(self) -> str:
        """Return the way, without credentials; empty if it is direct."""
        if self.unix_socket is not None:
            return f"over the Unix socket {self.unix_socket}"
        return "" if self.proxy is None else f"through the proxy {redact_user(self.proxy)}"


DIRECT = Route()


def _changed_ns(path: str | None) -> int | None:
    try:
        return None if path is None else os.stat(path).st_mtime_ns
    except OSError:
        return None


@lru_cache(MAX_CONTEXTS)
def _tls_context(
    verify: bool,
    ca_cert: str | None,
    client_cert: str | None,
    client_key: str | None,
    _changes: tuple[object, ...],
) -> "ssl.SSLContext":
    import ssl

    if ca_cert is not None:
        _require(CA_CERT, ca_cert, CERTIFICATE, "certificate")
    try:
        context = ssl.create_default_context(cafile=ca_cert)
    except ssl.SSLError as error:
        raise _unusable(CA_CERT, ca_cert, error) from error
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client_cert is not None:
        _require(CLIENT_CERT, client_cert, CERTIFICATE, "certificate")
        remedy = f"give {CLIENT_KEY} FILE" if client_key is None else f"check {CLIENT_KEY}"
        flag = CLIENT_CERT if client_key is None else CLIENT_KEY
        text = _require(flag, client_key or client_cert, PRIVATE_KEY, "private key", remedy)
        if ENCRYPTED in text:
            problem = f"the private key in {client_key or client_cert} is encrypted"
            raise BadInput(flag, problem, "decrypt it with `openssl pkey -in FILE -out NEW`")
        try:
            context.load_cert_chain(client_cert, client_key)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                problem = f"its key does not belong to the certificate in {client_cert}"
                raise BadInput(flag, problem, "name the files of one pair") from error
            raise _unusable(flag, client_key or client_cert, error) from error
    return context


def _require(flag: str, path: str, mark: bytes, noun: str, remedy: str = "") -> bytes:
    """Return the content of a PEM file.

    Raises:
        BadInput: It cannot be read, or does not contain what `noun` says.
    """
    remedy = remedy or f"name a PEM file of {noun}s"
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(flag, f"{path} cannot be read ({error.strerror})", remedy) from error
    if mark not in text:
        raise BadInput(flag, f"{path} contains no {noun} in PEM format", remedy)
    return text


def _unusable(flag: str, path: str | None, error: "ssl.SSLError") -> BadInput:
    reason = (error.reason or str(error)).replace("_", " ").lower()
    return BadInput(flag, f"{path} cannot be used ({reason})", "name a valid PEM file")


def proxy_url(text: str, name: str = PROXY) -> str:
    """Return the URL of a proxy, with its scheme.

    Args:
        text: As the user or the environment gives it.
        name: Where it comes from.

    Raises:
        BadInput: It is not one of an HTTP proxy.
    """
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0 and parts.path in ("", "/")
        usable = usable and url.isascii() and url.isprintable() and " " not in url
        usable = usable and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(name, f"invalid URL {redact_user(text)!r}", f"write {PROXY_FORM}")
    if parts.scheme != "http":
        problem = f"{redact_user(text)}: only HTTP proxies are supported"
        raise BadInput(name, problem, f"write {PROXY_FORM}; TLS to the server goes through it")
    return url


def proxy_of_environment(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None if it names none.

    `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` are read, in small or capital letters.

    Raises:
        BadInput: The URL of the proxy is invalid.
    """
    from urllib import request  # slow to import

    parts = urlsplit(url)
    proxies = request.getproxies_environment()
    place = parts.netloc.rpartition("@")[2]
    if request.proxy_bypass_environment(place, proxies):  # type: ignore[attr-defined]
        return None
    for scheme in (parts.scheme, "all"):
        if proxies.get(scheme):
            return proxy_url(proxies[scheme], f"{PROXY} env ({scheme}_proxy)")
    return None


def basic_auth(user: str) -> str:
    """Return the Authorization header for `user:password` as a URL writes it."""
    return "Basic " + base64.b64encode(unquote(user).encode()).decode()


def is_socket_path(path: str) -> bool:
    """Return whether the address of a Unix socket can hold a path."""
    return 0 < len(os.fsencode(path)) < 108 and "\0" not in path
