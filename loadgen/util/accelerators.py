"""Accelerators of this machine: NVIDIA GPUs through NVML, Ascend NPUs by npu-smi, and their
assignment to servers.
"""

import contextlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from msgspec import Struct

from loadgen.util.machine import program_output

PACKAGE = "pynvml"  # the module of the distribution nvidia-ml-py
QUANTITIES = ("power_w", "sm_clock_mhz", "busy_share", "memory_bytes")
NPU_PROGRAM = "npu-smi"
NPU_TIMEOUT_S = 20.0
# A row of a chip, "| 0     910B3      | OK      | ...": its number and name, then its health.
NPU_ROW = r"^\|\s*\d+\s+(\S+)\s*\|\s*[A-Za-z]+\s*\|"


def split_devices(ids: Sequence[str], servers: int) -> list[tuple[str, ...]]:
    """Split device ids equally among servers; each gets none where no ids are given.

    Args:
        ids: The device ids, a multiple of the number of servers.
        servers: How many servers share the devices.
    """
    size = len(ids) // servers
    return [tuple(ids[size * number : size * (number + 1)]) for number in range(servers)]


def installed() -> bool:
    """Return whether the Python package is installed.

    The NVML library itself may still be missing.
    """
    return importlib.util.find_spec(PACKAGE) is not None


class MemoryUse(Struct, frozen=True):
    """Memory of one GPU, in bytes.

    Attributes:
        used: Memory in use by all processes.
        total: Memory of the GPU.
        holders: Ids of the compute processes on it, as far as they are visible.
    """

    used: int
    total: int
    holders: frozenset[int]


class Nvml:
    """Reads all GPUs of the machine. Create it with `opened`."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._gpus = [
            nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
        ]

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Self | None]:
        """Open NVML while the context lasts; yields None where the package or the driver is
        missing.
        """
        try:
            nvml = importlib.import_module(PACKAGE)
        except ImportError:
            yield None
            return
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            yield None
            return
        try:
            yield cls(nvml)
        finally:
            nvml.nvmlShutdown()

    def read(self) -> list[dict[str, Any]]:
        """Read the name and QUANTITIES of each GPU: watts, MHz, share of the time, bytes; None
        for a hidden value.
        """
        return [self._read(gpu) for gpu in self._gpus]

    def memory(self) -> list[MemoryUse | None]:
        """Read the memory of each GPU; None for a GPU that hides it."""
        return [self._memory(gpu) for gpu in self._gpus]

    def _memory(self, gpu: Any) -> MemoryUse | None:
        nvml = self._nvml
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
            computing = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        except nvml.NVMLError:
            return None
        return MemoryUse(memory.used, memory.total, frozenset(process.pid for process in computing))

    def _read(self, gpu: Any) -> dict[str, Any]:
        nvml = self._nvml
        queries: dict[str, Callable[[], Any]] = {
            "name": lambda: _text(nvml.nvmlDeviceGetName(gpu)),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
            "sm_clock_mhz": lambda: float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "busy_share": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
            "memory_bytes": lambda: float(nvml.nvmlDeviceGetMemoryInfo(gpu).used),
        }
        values: dict[str, Any] = {}
        for name, query in queries.items():
            try:
                values[name] = query()
            except nvml.NVMLError:  # a slice of a GPU, for example, has no power value
                values[name] = None
        return values


def _text(name: str | bytes) -> str:
    """Decode a name: releases of NVML before 12 return bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def npu_names() -> list[str] | None:
    """Return the name of each Ascend NPU; None if npu-smi is missing or fails."""
    text = program_output(NPU_PROGRAM, "info", timeout_s=NPU_TIMEOUT_S)
    return None if text is None else parse_npus(text)


def parse_npus(text: str) -> list[str]:
    """Return the name of each NPU in the output of `npu-smi info`, such as 910B3."""
    rows = (re.match(NPU_ROW, line.strip()) for line in text.splitlines())
    return [row[1] for row in rows if row]
