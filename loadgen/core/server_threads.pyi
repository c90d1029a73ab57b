"""Whether connections that are kept hold threads of a server that requests wait for."""

from typing import final

from loadgen.core.record import Record

LEAST_PATIENCE_NS: int
FIRST_PATIENCE_NS: int  # before any request was answered

@final
class ServerThreads:
    """What requests on new connections have shown of a server's threads; server_threads.pyx says
    more.
    """

    keeps_none: bool
    answers_several: bool
    starved: int
    are_held: bool
    def __init__(self, most_patience_ns: int = 0) -> None: ...
    def sent(self, record: Record) -> None: ...
    def ended(self, record: Record, at_ns: int) -> None: ...
    def look(self, idle_ns: int | None, in_use: int, at_ns: int) -> tuple[bool, int]: ...
