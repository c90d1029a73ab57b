"""TimerfdAlarm: an alarm by a Linux timerfd."""

from collections.abc import Callable
from typing import final

from loadgen.util.clock import Readers

is_supported: bool  # whether the system has timerfds

@final
class TimerfdAlarm:
    """Calls back at a set time; timerfd.pyx says more."""

    def __init__(self, readers: Readers, callback: Callable[[], object]) -> None: ...
    def set(self, due_ns: int) -> None: ...
    def close(self) -> None: ...
