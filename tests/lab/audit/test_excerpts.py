"""Pages of other authors than GPUStack's: what is found in them is true, and all of it is found."""

import pytest

from loadgen.lab.audit.finding import ORDER
from tests.helpers.excerpts import EXCERPTS, found


def test_what_is_expected_is_of_rules_that_exist() -> None:
    rules = {rule for page in EXCERPTS.values() for _, rule, _ in (*page["true"], *page["false"])}
    assert rules <= set(ORDER)


@pytest.mark.parametrize("page", EXCERPTS)
def test_all_that_is_found_is_true_and_all_that_is_true_is_found(page: str) -> None:
    raised, missed = found(page)
    expected = {(part, rule) for part, rule, _ in EXCERPTS[page]["true"]}
    assert [each for each in raised if each[:2] not in expected] == []
    assert missed == []
