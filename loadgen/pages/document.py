"""Document: what a page says, block by block, in whatever language it will be written."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal


class Tone(StrEnum):
    """How a piece of text is meant."""

    PLAIN = "plain"
    STRONG = "strong"
    CODE = "code"
    GOOD = "good"  # a gain
    BAD = "bad"  # a loss
    QUIET = "quiet"  # neither


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line: its text as it is to be read, with nothing escaped."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]
Cell = tuple[Line, ...]  # of a table: lines below each other


def line(*parts: str | Span) -> Line:
    """A line of these pieces."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def cell(*lines: Line | Span | str) -> Cell:
    """A cell of these lines."""
    return tuple(each if isinstance(each, tuple) else line(each) for each in lines)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title of the page."""

    shape: ClassVar = "heading"
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    shape: ClassVar = "paragraph"
    text: Line


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    shape: ClassVar = "items"
    lines: tuple[Line, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are shown as they are; `language` as Markdown's fences name it."""

    shape: ClassVar = "code"
    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a line of headings; its rows are as long as that."""

    shape: ClassVar = "table"
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture.

    Attributes:
        name: Of its file, without the ending.
        about: What can be seen in it, for who cannot see it.
        png: The picture.
    """

    shape: ClassVar = "figure"
    name: str
    about: str
    png: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """Blocks set apart, as MkDocs' admonitions are.

    Attributes:
        kind: How it looks.
        title: What stands above it.
        blocks: What is in it.
        folded: Whether it is closed until one opens it; None: it cannot be closed.
    """

    shape: ClassVar = "note"
    kind: Literal["note", "tip", "info", "warning", "danger"]
    title: str
    blocks: "tuple[Block, ...]"
    folded: bool | None = None


Block = Heading | Paragraph | Items | Code | Table | Figure | Note


@dataclass(frozen=True, slots=True)
class Document:
    """A page: its title, and what follows."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def figures(self) -> list[Figure]:
        """All pictures, in order; none stands inside a note."""
        return [block for block in self.blocks if isinstance(block, Figure)]
