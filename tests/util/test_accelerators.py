"""What NVML and npu-smi say about the accelerators of this machine."""

import os
from pathlib import Path

import pytest

from loadgen.util import accelerators
from loadgen.util.accelerators import MemoryUse, Nvml
from tests.helpers.fake_nvml import GIB, Fake, install
from tests.helpers.source import ROOT


@pytest.fixture
def installed(monkeypatch):
    return lambda module: install(monkeypatch, module)


def test_each_gpu_tells_watts_megahertz_a_share_and_bytes(installed):
    nvml = installed(Fake())
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.read()
    told = {
        "power_w": 412.5,
        "sm_clock_mhz": 1980.0,
        "busy_share": 0.87,
        "memory_bytes": float(100 * GIB),
    }
    assert read == [{"name": "H200"} | told] * 2
    assert set(accelerators.QUANTITIES) == set(told)
    assert not nvml.on, "NVML is shut down"


def test_a_name_may_come_as_bytes(installed):
    installed(Fake(name=b"H100 \xff"))
    with Nvml.opened() as reader:
        assert reader is not None
        assert reader.read()[0]["name"] == "H100 \ufffd"


def test_hidden_gpu_values_are_none_and_others_are_kept(installed):
    installed(Fake(hides=("power", "use")))
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.read()[0]
    assert (read["power_w"], read["busy_share"]) == (None, None)
    assert read["sm_clock_mhz"] == 1980


def test_memory_comes_with_those_who_compute_there(installed):
    nvml = installed(Fake())
    nvml.computing = [[17, 4], []]
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.memory()
    assert read == [
        MemoryUse(100 * GIB, 140 * GIB, frozenset({4, 17})),
        MemoryUse(100 * GIB, 140 * GIB, frozenset()),
    ]


@pytest.mark.parametrize("hidden", ["memory", "processes"])
def test_gpu_memory_is_none_where_a_part_is_hidden(installed, hidden):
    installed(Fake(hides=(hidden,)))
    with Nvml.opened() as reader:
        assert reader is not None
        assert reader.memory() == [None, None]


def test_no_reader_without_a_driver(installed):
    installed(Fake(driver=False))
    with Nvml.opened() as reader:
        assert reader is None


def test_no_reader_without_the_package(installed):
    installed(None)  # which makes importing it fail
    with Nvml.opened() as reader:
        assert reader is None


RECORDED = ROOT / "tests/data/npu_smi"


@pytest.mark.parametrize(
    ("recorded", "names"),
    [("910b3.txt", ["910B3", "910B3"]), ("ascend910.txt", ["Ascend910", "Ascend910"])],
)
def test_each_chip_of_a_recorded_output_has_its_name(recorded: str, names: list[str]) -> None:
    assert accelerators.parse_npus((RECORDED / recorded).read_text()) == names


def test_output_without_a_table_has_no_chip() -> None:
    assert accelerators.parse_npus("DrvMngGetConsoleLogLevel failed\n") == []


def test_machine_without_the_program_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert accelerators.npu_names() is None
