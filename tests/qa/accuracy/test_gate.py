"""The gate of docs/ci.md: what its pairs say, and how sure that is."""

import pytest

from bench.accuracy import gate


@pytest.mark.parametrize(
    ("count", "of", "bound"), [(0, 60, 0.0487), (1, 20, 0.2161), (2, 20, 0.2826), (20, 20, 1.0)]
)
def test_bound_is_that_of_clopper_and_pearson(count: int, of: int, bound: float) -> None:
    assert gate.upper_bound(count, of) == pytest.approx(bound, abs=1e-4)


def test_quick_form_shows_both_kinds_of_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.main(["--quick"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "| " in line]
    counts = {
        row[0].strip("| "): sum(int(cell.strip(" |")) for cell in row[2:]) for row in rows[2:]
    }
    assert counts == {"equal": 2, "steps 10% longer": 2}
