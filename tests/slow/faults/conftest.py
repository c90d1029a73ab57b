"""What the tests of the library share."""

import pytest


@pytest.fixture(autouse=True)
def _spelling(arguments_in_errors: None) -> None:
    """A program calls the library."""
