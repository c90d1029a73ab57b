"""Pacer: hands out every request of a schedule when it is due, never early."""

import asyncio
from collections.abc import Callable
from typing import final

from loadgen.core.read_loop import SendHook
from loadgen.core.schedule import Schedule
from loadgen.util.clock import Clock

TURN_NS: int

@final
class Pacer:
    """Hands out the requests of a schedule when they are due; pacer.pyx says more."""

    schedule: Schedule
    all_sent: asyncio.Event
    overdue: int
    def __init__(
        self,
        schedule: Schedule,
        send: Callable[[Schedule], None],
        hook: SendHook,
        clock: Clock = ...,
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> int: ...
    def release(self) -> None: ...
    def follow(self, index: int, due_ns: int) -> None: ...
    def cancel_followups(self, count: int) -> None: ...
