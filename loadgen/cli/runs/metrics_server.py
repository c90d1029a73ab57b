"""The HTTP server of --prometheus; a module of its own, since few runs need what it imports."""

import socket
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Answers every request in a thread of its own.

    Args:
        host: A name or an address of this machine.
        port: A TCP port.
        app: Answers the requests.

    Raises:
        OSError: The address cannot be listened on.
    """

    daemon_threads = True  # a scraper that does not read does not keep the command from ending

    def __init__(self, host: str, port: int, app: "WSGIApplication") -> None:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = addresses[0][0]
        super().__init__((host, port), SilentHandler)
        self.set_app(app)


class SilentHandler(WSGIRequestHandler):
    """Writes no line for a request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Write nothing."""
