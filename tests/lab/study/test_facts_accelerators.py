"""The accelerators of a machine are compared with the hardware that a study names."""

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.execute.facts import NPU_SMI, NVML, Accelerators, is_named
from loadgen.lab.study.spec.study import Hardware
from loadgen.util import accelerators
from tests.helpers import fake_nvml

H100 = "NVIDIA H100 SXM 80GB"


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (H100, "NVIDIA H100 80GB HBM3"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"),
        ("NVIDIA A100 SXM 80GB", "NVIDIA A100-SXM4-80GB"),
        ("8x NVIDIA H200", "NVIDIA H200"),
        ("GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("one accelerator", "NVIDIA L4"),
    ],
)
def test_gpu_that_may_be_the_named_one(wanted: str, name: str) -> None:
    assert is_named(wanted, name, shortened=False)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (H100, "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA A100 40GB", "NVIDIA A100-SXM4-80GB"),
        (H100, "NVIDIA H100 PCIe"),
        ("NVIDIA A10", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA L40", "NVIDIA L40S"),
        ("Ascend 910B", "NVIDIA H100 80GB HBM3"),
    ],
)
def test_gpu_that_is_another_one(wanted: str, name: str) -> None:
    assert not is_named(wanted, name, shortened=False)


def test_npu_has_a_longer_or_a_shorter_name() -> None:
    assert is_named("Ascend 910B", "910B3", shortened=True)
    assert is_named("Ascend 910C", "Ascend910", shortened=True)
    assert not is_named("Ascend 910B", "310P3", shortened=True)


class TestCheck:
    """Of a machine, against a study."""

    def refusal(self, found: Accelerators, name: str, devices: int) -> str:
        with pytest.raises(BadInput) as refused:
            found.check(Hardware(name=name, devices=devices))
        return str(refused.value)

    def test_counts_only_devices_of_the_name(self) -> None:
        mixed = Accelerators(NVML, ("NVIDIA H100 80GB HBM3", "NVIDIA T400"))
        mixed.check(Hardware(name=H100, devices=1))
        assert self.refusal(mixed, H100, 2).startswith(
            "hardware.devices: the study has 2, but this machine has 1"
        )

    def test_names_what_is_there(self) -> None:
        assert self.refusal(Accelerators(NPU_SMI, ("910B3", "910B3")), H100, 1).startswith(
            f"hardware.name: is {H100}, but npu-smi finds 910B3 on this machine"
        )
        assert "NVML finds no accelerator" in self.refusal(Accelerators(NVML, ()), H100, 1)

    def test_says_nothing_without_a_tool_or_of_no_device(self) -> None:
        Accelerators(None, ()).check(Hardware(name=H100, devices=8))
        Accelerators(NVML, ("NVIDIA T400",)).check(Hardware(name="a CPU", devices=0))


class TestFound:
    """Of this machine, by the tools that it has."""

    def test_by_nvml(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_nvml.install(monkeypatch, fake_nvml.Fake(name="NVIDIA H200"))
        assert Accelerators.found() == Accelerators(NVML, ("NVIDIA H200", "NVIDIA H200"))

    def test_by_npu_smi(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_nvml.install(monkeypatch, None)
        monkeypatch.setattr(accelerators, "npu_names", lambda: ["910B3"])
        assert Accelerators.found() == Accelerators(NPU_SMI, ("910B3",))

    def test_by_no_tool(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_nvml.install(monkeypatch, fake_nvml.Fake(driver=False))
        monkeypatch.setattr(accelerators, "npu_names", lambda: None)
        assert Accelerators.found() == Accelerators(None, ())
