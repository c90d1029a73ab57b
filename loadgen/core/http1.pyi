"""Response: the bytes of an HTTP/1.1 response in, stamps and an Outcome out, without I/O."""

from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record

MAX_HEAD: int
MAX_RESPONSE: int
MAX_EVENTS: int  # of an answer, and EVENTS_PER_TOKEN more for each token that was asked for
EVENTS_PER_TOKEN: int

class Response:
    """Reads one response at a time into a Record.

    Args:
        scanner: Reads the events of an API with a dialect of its own; None: they are those of chat.

    Attributes:
        record: What it writes to; None before the first request.
        complete: Whether the response has ended and the record has its outcome.
        keep_alive: Whether the connection may carry another request.
        keep_alive_ns: For how long it may be idle, if the server says so; else 0.
        wants_reader: Whether aiohttp's reader must decode the body: give it the bytes of `raw()`.
    """

    def __init__(self, scanner: DialectScanner | None = None) -> None: ...
    @property
    def record(self) -> Record: ...
    @property
    def complete(self) -> bool: ...
    @property
    def keep_alive(self) -> bool: ...
    @property
    def keep_alive_ns(self) -> int: ...
    @property
    def wants_reader(self) -> bool: ...
    def begin(self, record: Record) -> None: ...
    def feed(self, data: bytes, at_ns: int) -> None: ...
    def feed_body(self, data: bytes, at_ns: int) -> None: ...
    def raw(self) -> bytes: ...
    def eof(self, at_ns: int, error: str | None = None) -> None: ...
    def abandon(self, outcome: Outcome, detail: str, at_ns: int) -> None: ...

def live() -> dict[str, int] | None: ...
