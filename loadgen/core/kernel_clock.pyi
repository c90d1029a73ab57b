"""KernelClock: converts the kernel's stamps, which are on CLOCK_REALTIME, to CLOCK_MONOTONIC."""

from typing import final

@final
class KernelClock:
    """The difference between CLOCK_REALTIME and CLOCK_MONOTONIC, read again and again;
    kernel_clock.pyx says more.
    """

    usable: bool
    slack_ns: int
    max_width_ns: int
    steps: int
    def observe(self, before_ns: int, on_real_ns: int, after_ns: int) -> None: ...
    def convert(self, at_ns: int) -> int | None: ...
