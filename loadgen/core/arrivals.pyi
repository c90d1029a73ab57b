"""Arrivals: when the bytes of a connection came, and how early its events can have come."""

from typing import final

from loadgen.core.read_loop import ReadLoop

@final
class Arrivals:
    """The reads of one connection; arrivals.pyx says more. All of it is called from C."""

    def __init__(self, read_loop: ReadLoop, bytes_read: int = 0) -> None: ...
