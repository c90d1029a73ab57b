"""docs/mistakes.md: each mistake is made for real and prints what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.docs.mistakes import MISTAKES, Mistake, rows_of_the_page, servers, told


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, str]]:
    with servers() as found:
        yield found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_mistake_prints_what_the_page_says(
    mistake: Mistake, ports: dict[str, str], tmp_path: Path
) -> None:
    assert told(mistake, ports, tmp_path) == rows_of_the_page()[mistake.what], (
        "python -m tests.slow.docs.mistakes"
    )


def test_the_page_has_no_other() -> None:
    assert list(rows_of_the_page()) == [mistake.what for mistake in MISTAKES]


@pytest.mark.parametrize("row", rows_of_the_page().values(), ids=lambda row: row[0])
def test_refusal_is_one_line_with_problem_and_remedy(row: tuple[str, ...]) -> None:
    _, _, printed, code = row
    if code == "2":
        assert "<br>" not in printed
        assert printed.startswith(("`` loadgen ", "`` loadgen: "))
        assert "; " in printed
