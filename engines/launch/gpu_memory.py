"""GPU memory: who uses it before a server starts, and whether it is released after the server has ended."""

import time
from collections.abc import Sequence

from loadgen.engines.launch.processes import command
from loadgen.util.accelerators import MemoryUse, Nvml

POLL_S = 0.2
TOLERANCE_BYTES = 256 << 20  # drivers and displays allocate and free as much at any time
MIN_USED_SHARE = 0.05  # of a GPU's memory; less is not worth mentioning
GIB = 1 << 30


class GpuMemory:
    """Memory of the GPUs that a server may use, measured before its start; without NVML, of no GPU.

    Args:
        devices: Numbers of the GPUs; if there are none, or one is not a number, all GPUs are measured.
    """

    def __init__(self, devices: Sequence[str] = ()) -> None:
        numbers = [int(device) for device in devices if device.isdecimal()]
        self._numbers = numbers if len(numbers) == len(devices) else []
        with Nvml.opened() as nvml:
            self._before = self._measure(nvml)

    def in_use(self) -> str:
        """Return a text on the GPUs of which others used more than 5 % before the start; empty if there are none."""
        return "; ".join(
            f"GPU {number}: {memory.used / GIB:.1f} of {memory.total / GIB:.1f} GiB were in use before the start, "
            f"by {_process_names(memory.holders)}"
            for number, memory in self._before.items()
            if memory.used > MIN_USED_SHARE * memory.total
        )

    def not_released(self, timeout_s: float) -> list[str]:
        """Return the GPUs that have more memory in use than before the start, after at most `timeout_s`.

        A GPU that a new process uses is left out: its memory cannot be distinguished from memory that was not released.
        """
        end_s = time.monotonic() + timeout_s
        with Nvml.opened() as nvml:
            while (left := self._unreleased(self._measure(nvml))) and time.monotonic() < end_s:
                time.sleep(POLL_S)
        return left

    def _unreleased(self, now: dict[int, MemoryUse]) -> list[str]:
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

    def _measure(self, nvml: Nvml | None) -> dict[int, MemoryUse]:
        memories = enumerate(nvml.memory() if nvml else ())
        return {n: memory for n, memory in memories if memory is not None and (not self._numbers or n in self._numbers)}


def _process_names(holders: frozenset[int]) -> str:
    return ", ".join(f"process {pid} ({command(pid)})" for pid in sorted(holders)) or "processes of other users"
