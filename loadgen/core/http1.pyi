"""Response: the bytes of an HTTP/1.1 response in, stamps and an Outcome out, without I/O."""

from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record

MAX_HEAD: int
MAX_RESPONSE: int
MAX_EVENTS: int  # of an answer, and EVENTS_PER_TOKEN more for each token that was asked for
EVENTS_PER_TOKEN: int

CUT_OFF: str  # the detail of a response that its connection has cut off

class Response:
    """Reads one response at a time into a Record; http1.pyx says more."""

    def __init__(self, scanner: DialectScanner | None = None) -> None: ...
    record: Record
    complete: bool
    def begin(self, record: Record) -> None: ...
    def feed(self, data: bytes, at_ns: int) -> None: ...
    def feed_unstamped(
        self, data: bytes | None, earliest_ns: int, read_ns: int, error: str | None = None
    ) -> None: ...
    def eof(self, at_ns: int, error: str | None = None) -> None: ...
    def abandon(self, outcome: Outcome, detail: str, at_ns: int) -> None: ...

def live() -> dict[str, int] | None: ...
