"""The printed comparison with a tool, as a whole: golden/ holds its sentences once."""

from pathlib import Path

import pytest

from loadgen.lab.tools.emulate import TOOLS, compare, render
from tests.helpers.compared_runs import recorded

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.integration
@pytest.mark.parametrize("name", TOOLS)
def test_rows_and_reasons_as_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        render(compare(recorded(Path("run.jsonl")), name)) == (GOLDEN / f"{name}.txt").read_text()
    )
