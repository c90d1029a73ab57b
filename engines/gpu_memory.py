"""GPU memory: whose it is before a server starts, and whether it is given back once that is gone."""

import time
from collections.abc import Sequence

from loadgen.engines.processes import command
from loadgen.util.gpus import MemoryUse, Nvml

AGAIN_S = 0.2
TOLERANCE_BYTES = 256 << 20  # what drivers and displays take and give back as they like
IN_THE_WAY = 0.05  # of a GPU's memory
GIB = 1 << 30


class GpuMemory:
    """The memory of the GPUs that a server may use, as it was before that started; of none without NVML.

    Args:
        devices: The numbers of the GPUs; all where none is named, or one in another way than by its number.
    """

    def __init__(self, devices: Sequence[str] = ()) -> None:
        numbers = [int(device) for device in devices if device.isdecimal()]
        self._numbers = numbers if len(numbers) == len(devices) else []
        with Nvml.opened() as nvml:
            self._before = self._look(nvml)

    def in_use(self) -> str:
        """Which GPUs others held more than a trifle of, and who they were; empty if none."""
        return "; ".join(
            f"GPU {number}: {memory.used / GIB:.1f} of {memory.total / GIB:.1f} GiB were in use before the start, "
            f"by {_named(memory.holders)}"
            for number, memory in self._before.items()
            if memory.used > IN_THE_WAY * memory.total
        )

    def kept(self, timeout_s: float) -> list[str]:
        """The GPUs with more in use than before the start, looked at until there are none or the time is up.

        One where somebody new computes is left out: what he has taken cannot be told from what was kept.
        """
        end_s = time.monotonic() + timeout_s
        with Nvml.opened() as nvml:
            while (kept := self._kept(self._look(nvml))) and time.monotonic() < end_s:
                time.sleep(AGAIN_S)
        return kept

    def _kept(self, now: dict[int, MemoryUse]) -> list[str]:
        before = self._before
        more = {
            number: memory.used - before[number].used
            for number, memory in now.items()
            if number in before and memory.holders <= before[number].holders
        }
        return [
            f"GPU {number} has {grown / GIB:.1f} GiB more in use than before the start"
            for number, grown in more.items()
            if grown > TOLERANCE_BYTES
        ]

    def _look(self, nvml: Nvml | None) -> dict[int, MemoryUse]:
        told = enumerate(nvml.memory() if nvml else ())
        return {n: memory for n, memory in told if memory is not None and (not self._numbers or n in self._numbers)}


def _named(holders: frozenset[int]) -> str:
    return ", ".join(f"process {pid} ({command(pid)})" for pid in sorted(holders)) or "none that can be seen"
