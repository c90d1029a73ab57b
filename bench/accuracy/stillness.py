"""Stillness: how long the processors do nothing for anybody, as a busy loop on each of them sees
it.

A virtual machine may be stopped for milliseconds by its host without a word of it in /proc/stat.
"""

import functools
import os
import subprocess
import sys

SECONDS = 1.0
STILL_SHARE = (
    0.005  # of the time: with half of that work waiting behind it, a percentile of 99 % moves
)
MIN_NS = 200_000  # shorter gaps hardly move a percentile that is bounded by half a millisecond

# Prints the sum in ns of all gaps between two looks at the clock that are no shorter than MIN_NS.
SPIN = """
import sys, time
most, least = int(sys.argv[1]), int(sys.argv[2])
last = time.monotonic_ns()
end, lost = last + most, 0
while last < end:
    now = time.monotonic_ns()
    if now - last >= least:
        lost += now - last
    last = now
print(lost)
"""


def stood_still() -> dict[int, float]:
    """The share of the time that each processor stood still, measured for a second on all of
    them at once.
    """
    length_ns = round(SECONDS * 1e9)
    command = [sys.executable, "-I", "-S", "-c", SPIN, str(length_ns), str(MIN_NS)]
    spinning = {
        core: subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            preexec_fn=functools.partial(os.sched_setaffinity, 0, {core}),
        )
        for core in sorted(os.sched_getaffinity(0))
    }
    return {core: int(each.communicate()[0]) / length_ns for core, each in spinning.items()}


class Patience:
    """Waits for still moments.

    Attributes:
        left_s: How much longer, in all.
    """

    left_s = 0.0

    def stillness(self) -> dict[int, float]:
        """As `stood_still`, measured again until there is a processor to measure on, or patience
        is at its end.
        """
        shares = stood_still()
        while min(shares.values()) > STILL_SHARE and self.left_s > 0:
            self.left_s -= SECONDS
            shares = stood_still()
        return shares


patience = Patience()
