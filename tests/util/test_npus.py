"""The names of NPUs are read from what npu-smi prints."""

import os
from pathlib import Path

import pytest

from loadgen.util import npus
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests/data/npu_smi"


@pytest.mark.parametrize(
    ("recorded", "names"),
    [("910b3.txt", ["910B3", "910B3"]), ("ascend910.txt", ["Ascend910", "Ascend910"])],
)
def test_each_chip_of_a_recorded_output_has_its_name(recorded: str, names: list[str]) -> None:
    assert npus.parse((RECORDED / recorded).read_text()) == names


def test_output_without_a_table_has_no_chip() -> None:
    assert npus.parse("DrvMngGetConsoleLogLevel failed\n") == []


def test_machine_without_the_program_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert npus.names() is None
