"""GPUs: the values that NVML reports."""

import pytest

from loadgen.util import gpus
from loadgen.util.gpus import MemoryUse, Nvml
from tests.helpers.fake_nvml import GIB, Fake, install


@pytest.fixture
def installed(monkeypatch):
    return lambda module: install(monkeypatch, module)


def test_each_gpu_tells_watts_megahertz_a_share_and_bytes(installed):
    nvml = installed(Fake())
    with Nvml.opened() as reader:
        assert reader is not None
        read = reader.read()
    told = {"power_w": 412.5, "sm_clock_mhz": 1980.0, "busy_share": 0.87, "memory_bytes": float(100 * GIB)}
    assert read == [{"name": "H200"} | told] * 2
    assert set(gpus.QUANTITIES) == set(told)
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
    assert read == [MemoryUse(100 * GIB, 140 * GIB, frozenset({4, 17})), MemoryUse(100 * GIB, 140 * GIB, frozenset())]


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
