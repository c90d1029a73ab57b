"""GPU memory: who holds it when a server starts is named, and what is not given back at its end is a leak."""

import os

import pytest

from loadgen.engines import EngineFailed, Launcher
from loadgen.engines.launch.gpu_memory import TOLERANCE_BYTES, GpuMemory
from loadgen.engines.launch.shutdown import Leaked
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
    def test_gpus_that_nobody_uses_are_nobodys(self, nvml: Nvml) -> None:
        assert GpuMemory().in_use() == ""

    def test_who_holds_one_is_named(self, nvml: Nvml) -> None:
        nvml.used[1], nvml.computing[1] = 70 * GIB, [os.getpid()]
        said = GpuMemory().in_use()
        assert said.startswith("GPU 1: 70.0 of 140.0 GiB were in use before the start, by process ")
        assert f"process {os.getpid()} (" in said

    def test_one_whose_holder_cannot_be_seen_is_in_use_all_the_same(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        assert GpuMemory().in_use().endswith("by processes of other users")

    def test_a_trifle_is_in_nobodys_way(self, nvml: Nvml) -> None:
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

    def test_without_nvml_nothing_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, None)
        assert GpuMemory().in_use() == ""
        assert kept(GpuMemory()) == []


class TestAfter:
    def test_all_of_it_given_back_is_no_leak(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        assert kept(GpuMemory()) == []

    @pytest.mark.parametrize(("more", "leaks"), [(TOLERANCE_BYTES, False), (TOLERANCE_BYTES + 1, True)])
    def test_more_than_before_is_one(self, nvml: Nvml, more: int, leaks: bool) -> None:
        memory = GpuMemory()
        nvml.used[1] += more
        assert bool(kept(memory)) is leaks

    def test_it_is_waited_for(self, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
        memory = GpuMemory()
        nvml.used[0] = 12 * GIB
        monkeypatch.setattr("loadgen.engines.launch.gpu_memory.time.sleep", lambda seconds: nvml.used.__setitem__(0, 0))
        assert memory.not_released(timeout_s=60.0) == []

    def test_where_somebody_new_computes_nobody_can_tell(self, nvml: Nvml) -> None:
        memory = GpuMemory()
        nvml.used[0], nvml.computing[0] = 12 * GIB, [os.getpid()]
        assert kept(memory) == []


class TestServer:
    """The same, of a server."""

    def test_one_that_runs_out_of_memory_where_others_are_says_so(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        with pytest.raises(EngineFailed) as failed:
            fail("ValueError: Free memory on device (9/80) is less than desired")
        assert failed.value.crash.kind == "gpu_in_use"
        assert "GPU 0: 70.0 of 140.0 GiB" in failed.value.crash.cause
        assert "is less than desired" in failed.value.crash.cause
        assert failed.value.transient

    def test_one_that_fails_otherwise_does_not(self, nvml: Nvml) -> None:
        nvml.used[0] = 70 * GIB
        with pytest.raises(EngineFailed) as failed:
            fail("ValueError: no such thing")
        assert "GPU" not in failed.value.crash.cause

    def test_one_whose_memory_is_not_given_back_has_leaked(self, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("loadgen.engines.launch.shutdown.MEMORY_RELEASE_S", 0.0)
        server = Launcher().start(Fake(), "some/model")
        nvml.used[0] = 12 * GIB
        with pytest.raises(Leaked, match=r"GPU 0 has 12\.0 GiB more in use than before the start"):
            server.stop()
        assert gone(server.pid)
        nvml.used[0] = 0
        server.stop()
