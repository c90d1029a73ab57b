"""Pages: documents written as Markdown for MkDocs and as HTML that needs no other file."""

from loadgen.pages.document import (
    Block,
    Cell,
    Code,
    Document,
    Figure,
    Heading,
    Items,
    Line,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
)
from loadgen.pages.writing import html, markdown

__all__ = [
    "Block",
    "Cell",
    "Code",
    "Document",
    "Figure",
    "Heading",
    "Items",
    "Line",
    "Note",
    "Paragraph",
    "Span",
    "Table",
    "Tone",
    "cell",
    "html",
    "line",
    "markdown",
]
