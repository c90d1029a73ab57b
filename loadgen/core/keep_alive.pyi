"""For how long a server keeps idle connections open, as far as it has shown."""

from typing import final

from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import Response
from loadgen.core.record import Record

REST_NS: int
LONG_REST_NS: int
LEAST_LONG_REST_NS: int
SAFE_AGE_NS: int
MARGIN_NS: int

class KeptConnection:
    """A connection that may carry several requests; keep_alive.pyx says more."""

    response: Response
    requests: int
    idle_since: int
    record: Record
    complete: bool
    keep_alive: bool
    def __init__(self, scanner: DialectScanner | None = None) -> None: ...
    def is_open(self) -> bool: ...

@final
class KeepAlive:
    """What a server has shown of how long it keeps idle connections; keep_alive.pyx says more."""

    is_shown: bool
    closes_soon: bool
    limit_ns: int | None
    safe_ns: int
    def rest_ns(self, count: int) -> int: ...
    def may_use(self, connection: KeptConnection, oldest: KeptConnection, at_ns: int) -> bool: ...
    def limit(self, age_ns: int) -> None: ...
    def closed(self, responses: int, age_ns: int) -> None: ...
