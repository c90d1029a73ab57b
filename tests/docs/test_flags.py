"""docs/flags.md tells of every flag, as the parser does."""

from tests.docs.flag_table import BEGIN, DOCUMENT, END, flag_table
from tests.documents import found_between


def test_the_table_is_what_the_settings_say() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == flag_table(), "python -m tests.docs.flag_table"
