"""Connections: brings requests to one server, and takes the connections back."""

from collections.abc import Callable

from loadgen.core.pool import Pool
from loadgen.core.read_loop import ReadLoop, SendHook
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.core.stamped_connection import Connection

class Connections:
    """The connections to one server; connections.pyx says more."""

    on_end: Callable[[Record], object]
    encoder: RequestEncoder
    hook: SendHook
    read_loop: ReadLoop
    pool: Pool
    active: set[Connection]
    heard_ns: int
    def __init__(self, read_loop: ReadLoop, pool: Pool, encoder: RequestEncoder) -> None: ...
    def send(self, record: Record, body: bytes) -> None: ...
    def send_on(self, connection: Connection, record: Record, request: bytes) -> None: ...
    def ended(self, connection: Connection) -> None: ...
    def serve(self) -> None: ...
    def sent_first(self, record: Record) -> None: ...
