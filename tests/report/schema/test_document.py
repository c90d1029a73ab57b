"""docs/result.md: its tables are made of the schema."""

from tests.helpers.documents import found_between
from tests.report.schema.document import BEGIN, DOCUMENT, END, written


def test_the_tables_are_those_of_the_schema() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == written(), (
        "python -m tests.report.schema.document"
    )
