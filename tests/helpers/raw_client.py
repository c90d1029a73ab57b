"""A client that sees every byte, for tests of the simulated engine."""

import json
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

FAST = {"step_base_ms": 0.2, "frontend_ms": 0.0, "max_model_len": 1024}


@dataclass(frozen=True)
class Reply:
    """One whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        return dict(self.json["error"])

    @property
    def events(self) -> list[Any]:
        """The data of each event; the last, [DONE], as text."""
        blocks = self.body.decode().split("\n\n")
        assert blocks.pop() == ""
        data = [block.removeprefix("data: ") for block in blocks]
        return [each if each == "[DONE]" else json.loads(each) for each in data]


class Client:
    """One connection, kept alive; reads exactly one response at a time."""

    def __init__(self, base_url: str, *, receive_buffer: int | None = None) -> None:
        address = urlsplit(base_url)
        assert address.hostname
        assert address.port
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((address.hostname, address.port))
        self._received = b""
        self.chunks: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(self, method: str, path: str, body: Any = None, *, headers: str = "") -> Reply:
        self.send(raw(method, path, body, headers=headers))
        return self.receive()

    def post(self, path: str, **body: Any) -> Reply:
        return self.request("POST", path, body)

    def receive(self) -> Reply:
        """Read the next response; for a chunked one `chunks` has the pieces."""
        head = self._until(b"\r\n\r\n").decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])
        }
        if headers.get("transfer-encoding") == "chunked":
            self.chunks = []
            while size := int(self._until(b"\r\n"), 16):
                self.chunks.append(self._exactly(size))
                assert self._exactly(2) == b"\r\n"
            assert self._exactly(2) == b"\r\n"
            body = b"".join(self.chunks)
        else:
            body = self._exactly(int(headers.get("content-length", 0)))
        return Reply(int(head[0].split()[1]), headers, body)

    def at_end(self) -> bool:
        """Whether the server has closed and nothing is left to read."""
        return not self._received and self.socket.recv(1) == b""

    def close(self) -> None:
        self.socket.close()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._received:
            self._more()
        before, _, self._received = self._received.partition(mark)
        return before

    def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._more()
        data, self._received = self._received[:size], self._received[size:]
        return data

    def _more(self) -> None:
        data = self.socket.recv(1 << 16)
        assert data, f"the server closed after {self._received!r}"
        self._received += data


def raw(method: str, path: str, body: Any = None, *, headers: str = "") -> bytes:
    """A request as bytes; `body` is bytes, or what json can write."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: sim\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def gauge(client: Client, name: str) -> float:
    """The value of a metric without labels of its own."""
    found = re.search(
        rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$",
        client.request("GET", "/metrics").body.decode(),
        re.M,
    )
    assert found, f"no metric {name}"
    return float(found[1])
