"""Document: a title, the answer, and blocks, written for a terminal, as Markdown or as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Self
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from loadgen.document.charts.chart import Chart


class Tone(StrEnum):
    """How a piece of text is meant."""

    PLAIN = "plain"
    STRONG = "strong"
    CODE = "code"
    GOOD = "good"  # a gain
    BAD = "bad"  # a loss
    QUIET = "quiet"  # neither


class Colour(IntEnum):
    """A colour of a terminal (ECMA-48): red for failures, yellow for doubts."""

    NONE = 0
    RED = 31
    GREEN = 32
    YELLOW = 33


class Span(Struct, frozen=True):
    """A piece of a line, with nothing escaped.

    Attributes:
        text: The text.
        tone: How it is meant.
        about: An explanation, shown on demand.
        link: The path of a file that it links to, relative to the page.
        fragment: The part of that file; empty: its beginning.
    """

    text: str
    tone: Tone = Tone.PLAIN
    about: str = ""
    link: str = ""
    fragment: str = ""

    @property
    def address(self) -> str:
        """The address that it links to; empty: none."""
        return quote(self.link) + (f"#{quote(self.fragment)}" if self.fragment else "")


NoteKind = Literal["note", "tip", "info", "warning", "danger"]  # of a note, as MkDocs names them
Line = tuple[Span, ...]
Cell = tuple[Line, ...]  # of a table: lines below each other
Part = tuple[str, Colour]  # of the line of an answer
SEPARATOR = " | "  # between two parts


def line(*parts: str | Span) -> Line:
    """Make a line of pieces."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def prose(text: str) -> Line:
    """Make a line of a text in which `backticks` mark code."""
    parts = enumerate(re.split("`([^`]+)`", text))
    return tuple(
        Span(part, Tone.CODE if number % 2 else Tone.PLAIN) for number, part in parts if part
    )


def cell(*lines: Line | Span | str) -> Cell:
    """Make a cell of lines."""
    return tuple(part if isinstance(part, tuple) else line(part) for part in lines)


class Heading(Struct, frozen=True):
    """A heading.

    Attributes:
        level: 1 is the title of the page.
        text: What it says.
    """

    shape: ClassVar = "heading"
    level: int
    text: str


class Paragraph(Struct, frozen=True):
    """A paragraph.

    Attributes:
        text: Its line.
    """

    shape: ClassVar = "paragraph"
    text: Line

    @classmethod
    def of(cls, *parts: str | Span) -> Self:
        """Make a paragraph of pieces."""
        return cls(line(*parts))


class Items(Struct, frozen=True):
    """A list.

    Attributes:
        items: Each of a line, or of several below each other.
        numbered: Whether the items have numbers.
    """

    shape: ClassVar = "items"
    items: tuple[Line | Cell, ...]
    numbered: bool = False

    @property
    def cells(self) -> Iterator[Cell]:
        """The lines of each item."""
        for item in self.items:
            several = tuple(part for part in item if isinstance(part, tuple))
            yield several or (tuple(part for part in item if isinstance(part, Span)),)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Make a list of texts, without the spaces around them."""
        return cls(tuple(line(text.strip()) for text in texts))


class Code(Struct, frozen=True):
    """Lines that are shown as they are.

    Attributes:
        text: The lines.
        language: As Markdown's fences name it; long lines of bash are wrapped on a page.
        copyable: Whether the page offers to copy them.
    """

    shape: ClassVar = "code"
    text: str
    language: str = ""
    copyable: bool = False


class Table(Struct, frozen=True):
    """A table with a line of headings.

    Attributes:
        head: The headings.
        rows: Each as long as that.
        text_columns: How many columns have text; those after them have numbers. None: all have
            text.
        remarks: Whether the last column has text in any case.
    """

    shape: ClassVar = "table"
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int | None = None
    remarks: bool = False

    @classmethod
    def of(
        cls,
        head: Sequence[str],
        rows: Iterable[Iterable[Cell | Span | str]],
        text_columns: int | None = None,
        *,
        remarks: bool = False,
    ) -> Self:
        """Make a table; a cell of one line may be its text."""
        cells = (
            tuple(part if isinstance(part, tuple) else cell(part) for part in row) for row in rows
        )
        return cls(tuple(head), tuple(cells), text_columns, remarks)

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Whether each column has numbers, which are aligned on the right."""
        columns = len(self.head)
        first = columns if self.text_columns is None else self.text_columns
        end = columns - 1 if self.remarks else columns
        return tuple(first <= place < end for place in range(columns))


class Fact(Struct, frozen=True):
    """One of the main numbers of a page.

    Attributes:
        name: Its name.
        value: The number with its unit.
        beside: A remark of a few words.
    """

    name: Span
    value: str
    beside: str = ""


class Facts(Struct, frozen=True):
    """The main numbers of a page, side by side at its top.

    Attributes:
        facts: The numbers, from the left.
    """

    shape: ClassVar = "facts"
    facts: tuple[Fact, ...]


class Drawing(Struct, frozen=True):
    """A chart.

    Attributes:
        name: The name of its file, without the ending.
        chart: What is drawn.
    """

    shape: ClassVar = "drawing"
    name: str
    chart: Chart


class Answer(Struct, frozen=True):
    """What a report found, the state first, and what to do next.

    Attributes:
        parts: The parts of its line, one at least.
        next_step: What to do, in one sentence in which `backticks` mark code; empty: nothing.
        simulated: Whether loadgen's own simulator was measured.
    """

    shape: ClassVar = "answer"
    parts: tuple[Part, ...]
    next_step: str = ""
    simulated: bool = False

    @property
    def text(self) -> str:
        """All parts in one line, which can be pasted."""
        return SEPARATOR.join(text for text, _ in self.parts)

    @property
    def line(self) -> Line:
        """Its parts on a page."""
        (first, _), *others = self.parts
        return line(Span(first, Tone.STRONG), *(f" \N{MIDDLE DOT} {text}" for text, _ in others))

    @property
    def following(self) -> Line:
        """The line of the next step; empty if there is none."""
        if not self.next_step:
            return ()
        return (Span("next:", Tone.STRONG), Span(" "), *prose(self.next_step))

    @property
    def kind(self) -> NoteKind:
        """Its colour on a page: red for failures, amber for doubts, blue for the simulator, else
        green.
        """
        colours = {colour for _, colour in self.parts}
        if Colour.RED in colours:
            return "danger"
        if Colour.YELLOW in colours:
            return "warning"
        return "info" if self.simulated else "tip"


class Note(Struct, frozen=True):
    """Blocks set apart, as MkDocs' admonitions are.

    Attributes:
        kind: How it looks.
        title: What stands above it.
        blocks: What is in it.
        folded: Whether it is closed until a reader opens it; None: it cannot be closed.
    """

    shape: ClassVar = "note"
    kind: NoteKind
    title: str
    blocks: tuple[Block, ...]
    folded: bool | None = None

    @classmethod
    def fold(cls, title: str, *blocks: Block, kind: NoteKind = "note") -> Self:
        """Make a note that is closed until a reader opens it."""
        return cls(kind, title, blocks, folded=True)


Block = Heading | Paragraph | Items | Code | Table | Facts | Drawing | Answer | Note


class Document(Struct, frozen=True):
    """A report, in the order in which every writer writes it.

    Attributes:
        title: What was measured.
        answers: What was found: one answer, or one for each candidate.
        blocks: What follows, from above.
        about: What more there is to say of what was measured, in a line below the title.
        origin: When, where and with what its figures were measured: a quiet line at its end.
    """

    title: str
    blocks: tuple[Block, ...]
    answers: tuple[Answer, ...] = ()
    about: str = ""
    origin: str = ""

    @property
    def opening(self) -> tuple[Block, ...]:
        """What stands below the title, and above the blocks."""
        about = (Paragraph.of(self.about),) if self.about else ()
        return (*about, *self.answers)

    @property
    def all_blocks(self) -> Iterator[Block]:
        """All blocks in order, those inside of notes too."""
        return _flattened(self.blocks)


def without_drawings(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks without charts, and without headings and notes that have nothing else."""
    kept: list[Block] = []
    for block in reversed(blocks):
        if isinstance(block, Drawing):
            continue
        if isinstance(block, Heading):
            after = kept[-1] if kept else None  # `kept` begins with the last block
            if after is None or (isinstance(after, Heading) and after.level <= block.level):
                continue
        if isinstance(block, Note) and block.blocks:
            inside = without_drawings(block.blocks)
            if inside:
                kept.append(replace(block, blocks=inside))
            continue
        kept.append(block)
    return tuple(reversed(kept))


def _flattened(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Note):
            yield from _flattened(block.blocks)
