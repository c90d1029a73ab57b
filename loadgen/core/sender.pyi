"""Sender: what happens to a request between its schedule and its link, and to its record when it
has ended.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, final

from loadgen.core.pacer import Pacer
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.core.request_table import RequestTable
from loadgen.core.schedule import Schedule
from loadgen.util.clock import Clock

class Link(Protocol):
    """Brings requests to a server: a `Transport`, or a network in memory.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        hook: Compares each read with the next due time, and says who is told of faults.
    """

    on_end: Callable[[Record], object]
    hook: SendHook
    def send(self, record: Record, body: bytes) -> None: ...

@final
class Sender:
    """Sends the requests of a schedule over one link, and counts the ends; sender.pyx says more."""

    ended: int
    keeps_text: bool
    keeps_answer: bool
    samples: Callable[[int], bool] | None
    defers: Callable[[Record], bool]
    body: Callable[[int], bytes] | None
    resends: Callable[[Record], bool] | None
    pacer: Pacer
    in_flight: dict[int, int]
    drained: asyncio.Event
    failure: Exception | None
    before_send: list[Callable[[Record], object]]
    after_end: list[Callable[[Record], object]]
    def __init__(
        self,
        schedule: Schedule,
        table: RequestTable,
        link: Link,
        add: Callable[[Record], None],
        clock: Clock,
    ) -> None: ...
    def send_again(self, record: Record) -> None: ...
    def end(self, record: Record) -> None: ...
    def fail(self, error: Exception) -> None: ...
