"""ReadLoop: an epoll set that reads sockets ahead of the event loop, in one queue with the
alarms of the sender.
"""

import asyncio
from collections.abc import Callable
from typing import final

from loadgen.core.kernel_clock import KernelClock

NEVER: int  # a time that does not come
STALL_NS: int  # an alarm that is later than this shows a stall of the loop

class SendHook:
    """A callback that is due at a time and must not wait for a long turn of the loop; read_loop.pyx
    says more.
    """

    due_ns: int
    callback: Callable[[], object] | None
    on_fault: Callable[[Exception], object]
    is_sparse: bool
    late_ns: int
    handled_ns: int
    alarm_ns: int
    stalled_ns: int
    reads: int
    loop_bounded_reads: int
    tokens: int
    sends: int
    def __init__(self) -> None: ...
    def guarded(self, callback: Callable[..., object], *arguments: object) -> None: ...

@final
class ReadLoop:
    """Calls readers of sockets, and the alarms of the sender, in the order in which they became
    ready.

    Attributes:
        hook: The send hook of its connections.
        kernel_clock: Converts the stamps of what its connections read.
    """

    kernel_clock: KernelClock
    hook: SendHook
    def __init__(self) -> None: ...
    def open(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def close(self) -> None: ...
    def add_reader(self, fd: int, callback: Callable[[], object]) -> None: ...
    def remove_reader(self, fd: int) -> None: ...
    def turn(self) -> None: ...
    def event_loop_since_ns(self) -> int: ...
