"""docs/mistakes.md: each mistake is made for real and prints what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.docs.mistakes import (
    MISTAKES,
    REFUSED,
    Mistake,
    Told,
    sections_of_the_page,
    servers,
    told,
)


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, str]]:
    with servers() as found:
        yield found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_mistake_prints_what_the_page_says(
    mistake: Mistake, ports: dict[str, str], tmp_path: Path
) -> None:
    assert told(mistake, ports, tmp_path) == sections_of_the_page()[mistake.what], (
        "python -m tests.slow.docs.mistakes"
    )


def test_the_page_has_no_other() -> None:
    assert list(sections_of_the_page()) == [mistake.what for mistake in MISTAKES]


@pytest.mark.parametrize("one", sections_of_the_page().values(), ids=lambda one: one.what)
def test_refusal_is_one_line_with_problem_and_remedy(one: Told) -> None:
    if one.code == REFUSED:
        (line,) = one.printed
        assert line.startswith(("loadgen ", "loadgen: "))
        assert "; " in line
