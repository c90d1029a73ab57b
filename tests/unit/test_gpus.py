"""GPUs: what NVML tells of each of them; a fake NVML here, for the machine that runs the tests need not have any."""

import sys
from types import SimpleNamespace

import pytest

from loadgen import gpus
from loadgen.gpus import Nvml


class NVMLError(Exception):
    pass


def fake(*, driver: bool = True, hides: tuple[str, ...] = (), name: str | bytes = "H200") -> SimpleNamespace:
    """An NVML with two GPUs; what it hides raises."""
    state = SimpleNamespace(on=False)

    def init() -> None:
        if not driver:
            raise NVMLError("driver not loaded")
        state.on = True

    def shutdown() -> None:
        state.on = False

    def tells(what, value):
        def ask(*arguments):
            assert state.on
            if what in hides:
                raise NVMLError("not supported")
            return value

        return ask

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        state=state,
        nvmlInit=init,
        nvmlShutdown=shutdown,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: f"gpu {index}",
        nvmlDeviceGetName=tells("name", name),
        nvmlDeviceGetPowerUsage=tells("power", 412_500),
        nvmlDeviceGetClockInfo=tells("clock", 1980),
        nvmlDeviceGetUtilizationRates=tells("use", SimpleNamespace(gpu=87, memory=40)),
        nvmlDeviceGetMemoryInfo=tells("memory", SimpleNamespace(used=100 << 30, total=140 << 30)),
    )


@pytest.fixture
def installed(monkeypatch):
    def install(module):
        monkeypatch.setitem(sys.modules, gpus.PACKAGE, module)
        return module

    return install


def test_each_gpu_tells_watts_megahertz_a_share_and_bytes(installed):
    nvml = installed(fake())
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.read()
    told = {"power_w": 412.5, "sm_clock_mhz": 1980.0, "busy_share": 0.87, "memory_bytes": float(100 << 30)}
    assert read == [{"name": "H200"} | told] * 2
    assert set(gpus.QUANTITIES) == set(told)
    assert not nvml.state.on, "NVML is shut down"


def test_a_name_may_come_as_bytes(installed):
    installed(fake(name=b"H100 \xff"))
    with Nvml.opened() as reader:
        assert reader is not None
        assert reader.read()[0]["name"] == "H100 \ufffd"


def test_what_a_gpu_hides_is_not_told_and_all_else_is(installed):
    installed(fake(hides=("power", "use")))
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.read()[0]
    assert (read["power_w"], read["busy_share"]) == (None, None)
    assert read["sm_clock_mhz"] == 1980


def test_without_a_driver_there_is_nothing_to_read(installed):
    installed(fake(driver=False))
    with Nvml.opened() as reader:
        assert reader is None


def test_without_the_package_there_is_nothing_to_read(installed):
    installed(None)  # which makes importing it fail
    with Nvml.opened() as reader:
        assert reader is None
