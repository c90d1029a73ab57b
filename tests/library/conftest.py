"""What the tests of the library share."""

from collections.abc import Iterator

import pytest

from loadgen.errors import Spelling, spelled


@pytest.fixture(autouse=True)
def arguments_in_errors() -> Iterator[None]:
    """Errors name settings as arguments, as those of a program do."""
    with spelled(Spelling()):
        yield
