"""docs/exit-codes.md tells of every exit code, as `loadgen --help` does."""

from tests.helpers.documents import found_between
from tests.slow.docs.exit_codes import BEGIN, DOCUMENT, END, exit_codes


def test_the_codes_are_those_of_the_help() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == exit_codes(), (
        "python -m tests.slow.docs.exit_codes"
    )
