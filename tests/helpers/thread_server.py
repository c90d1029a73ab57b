"""A server with a pool of threads, on loopback: each connection has a thread until it is closed."""

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests.helpers.scripted_server import GOOD


class ThreadServer(HTTPServer):
    """Serves as many connections at once as it has threads; the others wait.

    Args:
        threads: How many threads it has.
        answer_s: How long each answer takes; its bytes come at its end.
        closes: Whether it closes a connection right behind the answer, without a word.

    Attributes:
        connections: How many it has accepted.
        ended: Set when a connection has ended.
    """

    def __init__(self, threads: int, answer_s: float, *, closes: bool) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answer_s, self.closes = answer_s, closes
        self.connections = 0
        self.ended = threading.Event()
        self._pool = ThreadPoolExecutor(threads)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        self._pool.submit(self._serve, request, client_address)

    def _serve(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(ConnectionError):
            self.finish_request(request, client_address)
        self.ended.set()
        self.shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        self._pool.shutdown()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ThreadServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.answer_s)
        self.wfile.write(GOOD)
        self.close_connection = self.server.closes


@contextlib.contextmanager
def thread_server(
    threads: int, answer_s: float = 0.02, *, closes: bool = False
) -> Iterator[ThreadServer]:
    """Serve until the end of the block; by then the clients have closed their connections."""
    with ThreadServer(threads, answer_s, closes=closes) as server:
        accepting = threading.Thread(target=server.serve_forever, args=(0.01,))
        accepting.start()
        try:
            yield server
        finally:
            server.shutdown()
            accepting.join()
