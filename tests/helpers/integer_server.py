"""A server that is a list of integers: connections to it are opened, used and put back at the times
that a test names.
"""

from loadgen.core.keep_alive import LONG_REST_NS, KeepAlive, KeptConnection
from loadgen.core.outcome import Outcome
from loadgen.core.pool import Pool
from loadgen.core.record import Record
from loadgen.core.server_threads import ServerThreads

MS, S = 1_000_000, 1_000_000_000


class Peer(KeptConnection):
    """A connection whose other end is the test."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.closed_by_peer = False

    def send(self, record: Record) -> None:
        """Carry a request."""
        self.response.begin(record)
        self.requests += 1

    def say(self, field: bytes) -> None:
        """Begin the response with a head that has this field."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + field + b"\r\n\r\n"
        self.response.feed(head, self.record.first_byte or 1)

    def is_open(self) -> bool:
        return not self.closed_by_peer


def request(sent_ns: int = 0, first_byte_ns: int = 0, *, ready_ns: int = 0) -> Record:
    record = Record()
    record.ready = ready_ns
    record.sent = sent_ns
    record.first_byte = first_byte_ns
    return record


class IntegerServer:
    """Connections to one server: opened, used and put back at the times that a test names."""

    def __init__(self, most_patience_ns: int = 0) -> None:
        self.closed: list[str] = []
        self.pool = Pool(
            lambda connection: self.closed.append(connection.name),
            KeepAlive(),
            ServerThreads(most_patience_ns),
        )

    def opened(self, *names: str, at_ns: int = 0) -> list[Peer]:
        peers = [Peer(name) for name in names]
        for peer in peers:
            self.pool.opened(peer, at_ns)
        return peers

    def sent(self, at_ns: int) -> Peer:
        """A request that finds a connection."""
        peer = self.pool.take(at_ns)
        assert peer is not None
        record = request(at_ns)
        record.reused = peer.requests > 0
        if not peer.requests:
            self.pool.threads.sent(record)
        peer.send(record)
        return peer

    def answered(self, peer: Peer, at_ns: int, *, first_byte_ns: int = 0) -> Peer:
        """Its response ends."""
        peer.record.first_byte = first_byte_ns or at_ns
        peer.record.closed = at_ns
        peer.record.outcome = Outcome.OK
        self.pool.rest(peer, at_ns)
        return peer

    def used(self, name: str, at_ns: int) -> Peer:
        """A connection whose first response ends."""
        self.opened(name, at_ns=at_ns)
        return self.answered(self.sent(at_ns), at_ns)

    def kept(self, *names: str, at_ns: int = 0) -> list[Peer]:
        """Connections of a server that keeps them: each has carried two responses."""
        peers = self.opened(*names, at_ns=at_ns)
        for peer in [self.sent(at_ns) for _ in names]:
            self.answered(peer, at_ns)
        for peer in [self.sent(at_ns + LONG_REST_NS) for _ in names]:
            self.answered(peer, at_ns + LONG_REST_NS)
        return peers

    def take(self, at_ns: int) -> str | None:
        taken = self.pool.take(at_ns)
        return None if taken is None else taken.name

    def wait(self, count: int, at_ns: int = 0, *, ready_ns: int | None = None) -> None:
        """Requests that wait for a connection; by default they come in time."""
        for _ in range(count):
            record = request(ready_ns=at_ns if ready_ns is None else ready_ns)
            self.pool.wait(record, b"", at_ns)
