"""Documents: blocks that are written for a terminal, as Markdown for MkDocs or GitHub, and as HTML
that needs no other file; their charts.

The package exports the blocks of a document. Text reports need only them, and charts take 0.02 s to
import.
"""

from loadgen.document.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Document,
    Drawing,
    Fact,
    Facts,
    Heading,
    Items,
    Line,
    Note,
    NoteKind,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
)

__all__ = [
    "Badge",
    "Block",
    "Cell",
    "Code",
    "Document",
    "Drawing",
    "Fact",
    "Facts",
    "Heading",
    "Items",
    "Line",
    "Note",
    "NoteKind",
    "Paragraph",
    "Span",
    "Table",
    "Tone",
    "cell",
    "line",
    "prose",
]
