"""Pages of other authors than GPUStack's: what is found in them is true, and all of it is found."""

import re

import pytest

from loadgen.lab.audit.finding import ORDER
from tests.helpers.excerpts import EXCERPTS, FROZEN
from tests.helpers.excerpts import found as found_in
from tests.helpers.source import ROOT


def test_what_is_expected_is_of_rules_that_exist() -> None:
    rules = {rule for page in EXCERPTS.values() for _, rule, _ in (*page["true"], *page["false"])}
    assert rules <= set(ORDER)


@pytest.mark.parametrize("page", EXCERPTS)
def test_all_that_is_found_is_true_and_all_that_is_true_is_found(page: str) -> None:
    raised, missed = found_in(page)
    expected = {(part, rule) for part, rule, _ in EXCERPTS[page]["true"]}
    assert [each for each in raised if each[:2] not in expected] == []
    assert missed == []


def test_the_documentation_tells_what_came_out_on_the_frozen_pages() -> None:
    text = " ".join((ROOT / "docs" / "audit.md").read_text().split())
    told = re.search(
        r"(\d+) were refused, .* found (\d+) inconsistent causes, all true and all on one page, "
        r"and (\d+) notes, both true.*down to (\d+) % may",
        text,
    )
    assert told is not None
    verdicts = [page[3] for page in FROZEN if page[3] != "nothing to check"]
    found = [each for page in verdicts for each in page]
    causes = [each for each in found if each[2] == "inconsistent"]
    assert len(FROZEN) == 30
    assert {each[3] for each in found} == {"true"}
    assert len([page for page in verdicts if any(each in causes for each in page)]) == 1
    lower = 0.025 ** (1 / len(causes))  # of a share that was seen to be whole
    assert [int(number) for number in told.groups()] == [
        len(FROZEN) - len(verdicts),
        len(causes),
        len(found) - len(causes),
        round(100 * lower),
    ]
