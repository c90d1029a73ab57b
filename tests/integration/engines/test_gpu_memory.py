"""GPU memory: processes that hold it at the start are named; memory not released at the end is a
leak.
"""

import os

import pytest

from loadgen.engines import EngineFailed, Launcher
from loadgen.engines.launch.shutdown import TOLERANCE_BYTES, GpuMemory, Leaked
from tests.helpers.fake_engine import Fake, gone
from tests.helpers.fake_nvml import GIB, install
from tests.helpers.fake_nvml import Fake as Nvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    """Two GPUs that nobody uses."""
    nvml = Nvml()
    nvml.used = [0, 0]
    install(monkeypatch, nvml)
    return nvml


def fail(saying: str) -> None:
    Launcher().start(Fake(), "some/model", raw=["--say", saying, "--exit", "1"])


def kept(memory: GpuMemory) -> list[str]:
    return memory.not_released(timeout_s=0.0)


class TestBefore:
    def test_idle_gpus_are_not_in_use(self, nvml: Nvml) -> None:
        assert GpuMemory().in_use() == ""

    def test_who_holds_one_is_named(self, nvml: Nvml) -> None:
        nvml.used[1], nvml.computing[1] = 70 * GIB, [os.getpid()]
        said = GpuMemory().in_use()
        assert said.startswith("GPU 1: 70.0 of 140.0 GiB were in use before the start, by process ")
        assert f"process {os.getpid()} (" in said

    def test_gpu_with_a_hidden_holder_is_in_use(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        assert GpuMemory().in_use().endswith("by processes of other users")

    def test_small_memory_use_is_not_in_use(self, nvml: Nvml) -> None:
        nvml.used[0] = GIB
        assert GpuMemory().in_use() == ""

    @pytest.mark.parametrize(
        ("devices", "counts"), [(("1",), False), (("0",), True), (("GPU-4c1d",), True), ((), True)]
    )
    def test_only_numbered_devices_of_the_server_count(
        self, nvml: Nvml, devices: tuple[str, ...], counts: bool
    ) -> None:
        nvml.used[0] = 70 * GIB
        assert bool(GpuMemory(devices).in_use()) is counts

    def test_gpu_memory_is_unknown_without_nvml(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, None)
        assert GpuMemory().in_use() == ""
        assert kept(GpuMemory()) == []


class TestAfter:
    def test_released_memory_is_no_leak(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        assert kept(GpuMemory()) == []

    @pytest.mark.parametrize(
        ("more", "leaks"), [(TOLERANCE_BYTES, False), (TOLERANCE_BYTES + 1, True)]
    )
    def test_more_than_before_is_one(self, nvml: Nvml, more: int, leaks: bool) -> None:
        memory = GpuMemory()
        nvml.used[1] += more
        assert bool(kept(memory)) is leaks

    def test_release_of_memory_is_waited_for(
        self, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = GpuMemory()
        nvml.used[0] = 12 * GIB
        monkeypatch.setattr(
            "loadgen.engines.launch.shutdown.time.sleep",
            lambda seconds: nvml.used.__setitem__(0, 0),
        )
        assert memory.not_released(timeout_s=60.0) == []

    def test_new_process_on_the_gpu_leaves_a_leak_unknown(self, nvml: Nvml) -> None:
        memory = GpuMemory()
        nvml.used[0], nvml.computing[0] = 12 * GIB, [os.getpid()]
        assert kept(memory) == []


class TestServer:
    """The same, of a server."""

    def test_out_of_memory_beside_other_processes_is_gpu_in_use(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        with pytest.raises(EngineFailed) as failed:
            fail("ValueError: Free memory on device (9/80) is less than desired")
        assert failed.value.crash.kind == "gpu_in_use"
        assert "GPU 0: 70.0 of 140.0 GiB" in failed.value.crash.cause
        assert "is less than desired" in failed.value.crash.cause
        assert failed.value.transient

    def test_other_failure_does_not_name_the_gpu(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        with pytest.raises(EngineFailed) as failed:
            fail("ValueError: no such thing")
        assert "GPU" not in failed.value.crash.cause

    def test_engine_whose_memory_is_not_released_has_leaked(
        self, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("loadgen.engines.launch.shutdown.MEMORY_RELEASE_S", 0.0)
        server = Launcher().start(Fake(), "some/model")
        nvml.used[0] = 12 * GIB
        with pytest.raises(Leaked, match=r"GPU 0 has 12\.0 GiB more in use than before the start"):
            server.stop()
        assert gone(server.pid)
        nvml.used[0] = 0
        server.stop()
