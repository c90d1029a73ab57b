"""Cost: what measuring takes of the machine, and what others take of it meanwhile."""

import time
from typing import Any

from loadgen import machine

# What `Cost.so_far` tells, where nobody knows.
UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("wall_s", "cpu_s", "busy_share", "peak_memory_bytes", "stolen_share", "throttled_s")),
    **dict.fromkeys(("engine_cpu_s", "engine_runs")),
    "disturbance": "",
}


class Cost:
    """Counts from its making on, in the thread whose loop measures.

    Args:
        engine_pid: The process of an engine that was started for the run, or None.
    """

    def __init__(self, engine_pid: int | None) -> None:
        self._pid = engine_pid
        self._before = machine.Busy.now()
        self._engine_s, self._thread_s = machine.process_cpu_s(engine_pid), time.thread_time()

    def so_far(self) -> dict[str, Any]:
        """As JSON: wall_s, cpu_s (this process), busy_share (this thread), peak_memory_bytes, engine_cpu_s, engine_runs
        (whether it still does), stolen_share (of all cores' time), throttled_s, and disturbance, in words.
        """
        before, after, thread_s = self._before, machine.Busy.now(), time.thread_time() - self._thread_s
        engine_s, wall_s = machine.process_cpu_s(self._pid) - self._engine_s, after.at_s - before.at_s
        return {
            "wall_s": wall_s,
            "cpu_s": after.own_s - before.own_s,
            "busy_share": thread_s / wall_s if wall_s else 0.0,
            "peak_memory_bytes": machine.peak_memory_bytes(),
            "stolen_share": machine.stolen_share(before, after),
            "throttled_s": after.throttled_s - before.throttled_s,
            "engine_cpu_s": engine_s if self._pid else None,
            "engine_runs": machine.runs(self._pid) if self._pid else None,
            "disturbance": machine.disturbance(before, after, engine_s),
        }
