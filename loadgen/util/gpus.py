"""GPUs: who shares them, and power, clock, use and memory of this machine's NVIDIA GPUs, through NVML."""

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

PACKAGE = "pynvml"  # of the distribution nvidia-ml-py
QUANTITIES = ("power_w", "sm_clock_mhz", "busy_share", "memory_bytes")


def shares(ids: Sequence[str], servers: int) -> list[tuple[str, ...]]:
    """The GPUs of each of several servers, as many for each; none where none are named.

    Args:
        ids: Of all of them; a multiple of the servers.
        servers: That share them.
    """
    many = len(ids) // servers
    return [tuple(ids[many * number : many * (number + 1)]) for number in range(servers)]


def installed() -> bool:
    """Whether the package is there; NVML itself may still be missing."""
    return importlib.util.find_spec(PACKAGE) is not None


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one GPU, in bytes.

    Attributes:
        used: By whomever.
        total: That it has.
        holders: Ids of the processes that compute there, as far as they can be seen.
    """

    used: int
    total: int
    holders: frozenset[int]


class Nvml:
    """Reads all GPUs; `opened` makes it."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Self | None]:
        """NVML while the context lasts; None where there is no package or no driver."""
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
        """Of each GPU its name and QUANTITIES: watts, MHz, a share of the time, bytes; None for what it hides."""
        return [self._read(gpu) for gpu in self._gpus]

    def memory(self) -> list[Memory | None]:
        """Of each GPU; None for one that hides it."""
        return [self._memory(gpu) for gpu in self._gpus]

    def _memory(self, gpu: Any) -> Memory | None:
        nvml = self._nvml
        try:
            told = nvml.nvmlDeviceGetMemoryInfo(gpu)
            computing = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        except nvml.NVMLError:
            return None
        return Memory(told.used, told.total, frozenset(process.pid for process in computing))

    def _read(self, gpu: Any) -> dict[str, Any]:
        nvml = self._nvml
        ask: dict[str, Callable[[], Any]] = {
            "name": lambda: _text(nvml.nvmlDeviceGetName(gpu)),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
            "sm_clock_mhz": lambda: float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "busy_share": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
            "memory_bytes": lambda: float(nvml.nvmlDeviceGetMemoryInfo(gpu).used),
        }
        told: dict[str, Any] = {}
        for what, answer in ask.items():
            try:
                told[what] = answer()
            except nvml.NVMLError:  # a slice of a GPU, for one, has no power of its own
                told[what] = None
        return told


def _text(name: str | bytes) -> str:
    """Releases before 12 give bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name
