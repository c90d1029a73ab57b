"""docs/result.md: its tables are made of the schema."""

from tests.documents import found_between
from tests.schema.document import BEGIN, DOCUMENT, END, written


def test_the_tables_are_those_of_the_schema() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == written(), "python -m tests.schema.document"
