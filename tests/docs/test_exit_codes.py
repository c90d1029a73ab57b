"""docs/checks.md tells of every exit code, as `loadgen --help` does."""

from tests.docs.exit_codes import BEGIN, DOCUMENT, END, exit_codes
from tests.documents import found_between


def test_the_table_is_what_the_help_says() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == exit_codes(), "python -m tests.docs.exit_codes"
