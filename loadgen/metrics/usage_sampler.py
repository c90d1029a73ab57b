"""Cost: what measuring takes of the machine, and what others take of it meanwhile."""

import time

from loadgen.metrics.client_usage import Client
from loadgen.util import machine


class Cost:
    """Counts from its making on, in the thread whose loop measures.

    Args:
        engine_pids: The processes of engines that were started for the run.
        other_pids: Further processes that belong to it: those that measure beside this one.
    """

    def __init__(self, engine_pids: tuple[int, ...], other_pids: tuple[int, ...] = ()) -> None:
        self._pids, self._others = engine_pids, other_pids
        self._before = machine.CpuTimes.now()
        self._engine_s, self._other_s = _cpu_s(engine_pids), _cpu_s(other_pids)
        self._thread_s = time.thread_time()

    @property
    def busy_share(self) -> float:
        """The share of the time so far for which the thread ran."""
        wall_s = time.monotonic() - self._before.at_s
        return (time.thread_time() - self._thread_s) / wall_s if wall_s else 0.0

    def so_far(self) -> Client:
        """All of a `Client` that the machine can tell."""
        busy_share, before, after = self.busy_share, self._before, machine.CpuTimes.now()
        engine_s, wall_s = _cpu_s(self._pids) - self._engine_s, after.at_s - before.at_s
        other_s = _cpu_s(self._others) - self._other_s
        return Client(
            wall_s=wall_s,
            cpu_s=after.own_s - before.own_s,
            busy_share=busy_share,
            peak_memory_bytes=machine.peak_memory_bytes(),
            engine_cpu_s=engine_s if self._pids else None,
            engine_runs=all(map(machine.is_running, self._pids)) if self._pids else None,
            stolen_share=machine.stolen_share(before, after),
            throttled_s=after.throttled_s - before.throttled_s,
            disturbance=machine.disturbance(before, after, engine_s + other_s),
        )


def _cpu_s(pids: tuple[int, ...]) -> float:
    return sum(map(machine.process_cpu_s, pids))
