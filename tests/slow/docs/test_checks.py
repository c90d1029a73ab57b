"""docs/checks.md names every check in its group and no other."""

import re

from loadgen.checks import examine
from tests.helpers.documents import cells_of
from tests.helpers.run_facts import run_data, steady
from tests.helpers.source import ROOT

PAGE = ROOT / "docs" / "checks.md"
SOURCES = "".join(path.read_text() for path in (ROOT / "loadgen" / "checks").glob("*.py"))


def told() -> list[tuple[str, str]]:
    """The group and the name of each row of the page's table."""
    text = PAGE.read_text().partition("## The checks")[2].partition("\n## ")[0]
    found, group = list[tuple[str, str]](), ""
    for first, *_ in cells_of(text):
        if heading := re.match(r"\*\*([A-Z]) ", first):
            group = heading[1]
        else:
            found.append((group, first))
    return found


def test_the_page_has_every_check_that_a_run_is_put_to() -> None:
    made = {(check.group, check.name) for check in examine(run_data([steady()]))}
    assert made - set(told()) == set()


def test_every_documented_check_exists() -> None:
    assert len(told()) == len(set(told())) > 40
    assert [name for _, name in told() if f'"{name}"' not in SOURCES] == []
