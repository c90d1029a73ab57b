"""The HTTP server of --prometheus; a module of its own, since few runs need what it imports."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Answers every GET with the metrics, each in a thread of its own.

    Raises:
        OSError: The address cannot be listened on.
    """

    daemon_threads = True  # a scraper that does not read does not keep the command from ending

    def __init__(
        self,
        host: str,  # a name or an address of this machine
        port: int,
        # returns a context with the text of the metrics, which ends once it is written to the socket
        scrape: Callable[[], AbstractContextManager[str]],
    ) -> None:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = places[0][0]
        super().__init__((host, port), SilentHandler)
        self._scrape = scrape
        self.set_app(self._answer)

    def _answer(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            start_response("405 Method Not Allowed", [("Allow", "GET")])
        elif environ["PATH_INFO"] == "/favicon.ico":  # of a browser, which is no scraper
            start_response("200 OK", [])
        else:
            with self._scrape() as text:
                body = text.encode()
                start_response("200 OK", [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))])
                yield body


class SilentHandler(WSGIRequestHandler):
    """Writes no line for a request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Write nothing."""
