"""LoopProbe: measures how long a token may wait in the event loop before it is stamped."""

from typing import final

from loadgen.core.histogram import Histogram
from loadgen.core.read_loop import SendHook
from loadgen.util.clock import Clock

PERIOD_NS: int
STAMPED_PERIOD_NS: int
RECENT: int

@final
class LoopProbe:
    """Alarms at regular times, in `with`; how late the loop comes to them, ns, is added to
    `stalls`; loop_probe.pyx says more.
    """

    def __init__(self, clock: Clock, hook: SendHook, stalls: Histogram) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
