"""Objects that a process of our own freezes stay out of collections."""

import gc

import pytest

from loadgen.util import garbage_collection


@pytest.fixture(autouse=True)
def _thawed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(garbage_collection, "_frozen_for_good", False)
    gc.unfreeze()  # what tests/conftest.py froze
    yield
    gc.freeze()


@pytest.mark.integration
def test_objects_are_frozen_in_the_block_alone() -> None:
    with garbage_collection.freeze():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.integration
def test_what_is_frozen_for_good_stays_so_with_what_was_made_since() -> None:
    garbage_collection.freeze_for_good()
    before = gc.get_freeze_count()
    kept = [[number] for number in range(1000)]
    with garbage_collection.freeze():
        pass
    assert gc.get_freeze_count() >= before + len(kept)
