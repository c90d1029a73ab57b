"""A fake NVML with two GPUs, for the machine that runs the tests need not have any."""

import sys
from types import SimpleNamespace

import pytest

from loadgen.util import accelerators

GIB = 1 << 30


class NVMLError(Exception):
    pass


class Fake(SimpleNamespace):
    """What the package pynvml offers.

    Attributes:
        on: Whether it was initialised and not yet shut down.
        used: Bytes in use on each GPU.
        computing: Ids of the processes on each GPU.
    """

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(
        self, *, driver: bool = True, hides: tuple[str, ...] = (), name: str | bytes = "H200"
    ) -> None:
        self.on, self._driver, self._hides = False, driver, hides
        self.nvmlInit, self.nvmlShutdown = self._init, self._shutdown
        self.nvmlDeviceGetCount, self.nvmlDeviceGetHandleByIndex = lambda: 2, lambda index: index
        self.used, self.computing = [100 * GIB, 100 * GIB], [[], []]
        self.nvmlDeviceGetName = self._tells("name", lambda gpu: name)
        self.nvmlDeviceGetPowerUsage = self._tells("power", lambda gpu: 412_500)
        self.nvmlDeviceGetClockInfo = self._tells("clock", lambda gpu, which: 1980)
        self.nvmlDeviceGetUtilizationRates = self._tells(
            "use", lambda gpu: SimpleNamespace(gpu=87, memory=40)
        )
        self.nvmlDeviceGetMemoryInfo = self._tells(
            "memory", lambda gpu: SimpleNamespace(used=self.used[gpu], total=140 * GIB)
        )
        self.nvmlDeviceGetComputeRunningProcesses = self._tells(
            "processes", lambda gpu: [SimpleNamespace(pid=pid) for pid in self.computing[gpu]]
        )

    def _init(self) -> None:
        if not self._driver:
            raise NVMLError("driver not loaded")
        self.on = True

    def _shutdown(self) -> None:
        self.on = False

    def _tells(self, what, answer):
        def ask(*arguments):
            assert self.on
            if what in self._hides:
                raise NVMLError("not supported")
            return answer(*arguments)

        return ask


def install(patch: pytest.MonkeyPatch, module: Fake | None) -> Fake | None:
    """Let the package be `module` while `patch` lasts; None: it is not installed."""
    patch.setitem(sys.modules, accelerators.PACKAGE, module)
    return module
