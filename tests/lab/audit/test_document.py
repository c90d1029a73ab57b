"""docs/audit.md names every rule and no other."""

import re

import pytest

from loadgen.lab.audit.finding import ORDER
from tests.helpers.audited_pages import PAGES, published
from tests.helpers.source import ROOT
from tests.helpers.thinning import thinned

NAMES = sorted(path.stem for path in PAGES.glob("[a-z]*.md"))
TOLD = {
    name
    for part in (ROOT / "docs" / "audit.md").read_text().split("## Rules")[1:]
    for names in re.findall(r"^#### (.+)$", part, re.MULTILINE)
    for name in re.findall(r"`([a-z-]+)`", names)
}
MODULES = (ROOT / "loadgen" / "lab" / "audit").rglob("*.py")
SOURCES = "".join(path.read_text() for path in MODULES)


@pytest.mark.parametrize("page", thinned(NAMES, 4))
def test_every_rule_found_is_documented(page: str) -> None:
    assert {finding.rule for finding in published(page)} <= TOLD


def test_every_rule_is_documented_and_has_its_place_in_the_order() -> None:
    assert set(ORDER) == TOLD


def test_every_documented_rule_exists() -> None:
    assert len(TOLD) > 30
    assert [name for name in sorted(TOLD) if f'"{name}"' not in SOURCES] == []
