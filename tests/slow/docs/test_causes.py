"""docs/explain.md tells of every cause."""

from tests.helpers.documents import found_between
from tests.slow.docs.causes import BEGIN, DOCUMENT, END, causes


def test_the_causes_are_those_of_the_catalogue() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == causes(), (
        "python -m tests.slow.docs.causes"
    )
