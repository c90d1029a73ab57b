"""Public names and signatures equal the recorded ones; changes are intended and in the changelog."""

import difflib

import loadgen
from tests.slow.packaging.public_api import RECORDED, lines


def test_names_and_signatures_are_those_that_were_recorded() -> None:
    recorded = RECORDED.read_text().splitlines()
    changed = [
        line
        for line in difflib.unified_diff(recorded, list(lines()), n=0, lineterm="")
        if line[:3] not in ("---", "+++")
    ]
    assert not changed, "\n".join(
        [
            "the public API is another one than was recorded:",
            *changed,
            "if that is meant: `python -m tests.slow.packaging.public_api`",
        ]
    )


def test_every_public_name_has_a_home_and_a_docstring() -> None:
    names = [name for name in loadgen.__all__ if name != "__version__"]
    assert sorted(names) == sorted(loadgen._HOMES)
    for name in names:
        assert getattr(loadgen, name).__doc__, name
