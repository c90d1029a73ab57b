"""The edits of `make mutants` still fit the source: each replaced text is there exactly once."""

import pytest

from tests.helpers.source import ROOT
from tests.qa.mutants.lies import LIES
from tests.qa.mutants.mutant import Mutant


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_lie_can_be_told(lie: Mutant) -> None:
    for edit in lie.edits:
        assert (ROOT / edit.file).read_text().count(edit.old) == 1, edit.file
        assert edit.old != edit.new
