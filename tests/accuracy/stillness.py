"""Stillness: how long the processors do nothing for anybody, as a busy loop on each of them sees it.

A virtual machine may be stopped for milliseconds by its host without a word of it in /proc/stat.
"""

import os
import subprocess
import sys

SECONDS = 1.0
LEAST_NS = 200_000  # shorter gaps hardly move a percentile that is bounded by half a millisecond

# Prints the sum in ns of all gaps between two looks at the clock that are no shorter than LEAST_NS.
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
    """The share of the time that each processor stood still, measured for a second on all of them at once."""
    length_ns = round(SECONDS * 1e9)
    command = [sys.executable, "-I", "-S", "-c", SPIN, str(length_ns), str(LEAST_NS)]
    spinning = {
        core: subprocess.Popen(
            command, stdout=subprocess.PIPE, preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})
        )
        for core in sorted(os.sched_getaffinity(0))
    }
    return {core: int(each.communicate()[0]) / length_ns for core, each in spinning.items()}
