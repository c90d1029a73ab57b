"""The HTTP server of --prometheus; a module of its own, since few runs need what it imports."""

import socket
from collections.abc import Iterator
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from loadgen.cli.runs.metrics_endpoint import Metrics

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Answers every GET with the metrics, each in a thread of its own.

    prometheus_client encodes them: as OpenMetrics, compressed, or only those of some names, as the request asks.

    Args:
        host: A name or an address of this machine.
        port: A TCP port.
        metrics: The metrics to serve.

    Raises:
        OSError: The address cannot be listened on.
    """

    daemon_threads = True  # a scraper that does not read does not keep the command from ending

    def __init__(self, host: str, port: int, metrics: Metrics) -> None:
        from prometheus_client import CollectorRegistry, make_wsgi_app

        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = addresses[0][0]
        super().__init__((host, port), SilentHandler)
        registry = CollectorRegistry()
        registry.register(metrics)
        self._metrics = metrics
        self._encoded = make_wsgi_app(registry)
        self.set_app(self._answer)

    def _answer(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            start_response("405 Method Not Allowed", [("Allow", "GET")])
            return
        is_final = self._metrics.final and environ["PATH_INFO"] != "/favicon.ico"  # of a browser, which is no scraper
        head: list[Any] = []
        body = b"".join(self._encoded(environ, lambda *status_and_headers: head.extend(status_and_headers)))
        status, headers = head
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        yield body
        if is_final:  # the body has been written to the socket
            self._metrics.mark_final_scraped()


class SilentHandler(WSGIRequestHandler):
    """Writes no line for a request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Write nothing."""
