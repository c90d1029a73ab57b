"""The edits of `make mutants` still fit the source: each replaced text is there exactly once."""

import pytest

from bench.mutants import mutant
from bench.mutants.lies import LIES
from tests.helpers.source import ROOT


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_lie_can_be_told(lie: mutant.Mutant) -> None:
    for edit in lie.edits:
        assert (ROOT / edit.file).read_text().count(edit.old) == 1, edit.file
        assert edit.old != edit.new


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_what_notices_a_lie_exists(lie: mutant.Mutant) -> None:
    if isinstance(lie.caught_by, mutant.Test):
        file, _, name = lie.caught_by.node.partition("::")
        assert f"def {name.rpartition('::')[2].partition('[')[0]}" in (ROOT / file).read_text()
