"""Documents as Markdown and as HTML: the same contents in both, and no text that either takes for its own."""

import base64
from html.parser import HTMLParser

import pytest

from loadgen import pages
from loadgen.pages import Block, Code, Document, Figure, Heading, Items, Note, Paragraph, Span, Table, Tone, cell, line

VOID = {"meta", "img", "br"}
NASTY = "a|b `c` <script>alert(1)</script> *d* [e](f) _g_ #h &amp; \x1b[31m\nnext"


def markdown(*blocks: Block) -> str:
    """What blocks are below the title."""
    return pages.markdown(Document("Title", blocks), "charts").removeprefix("# Title\n\n")


class Page(HTMLParser):
    """A page of HTML taken apart: its tags are balanced, or it is refused.

    Attributes:
        attributes: Those of all tags, as (tag, name, value).
        texts: Pieces of text by the tag that they stand in.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._open[-1] if self._open else "", data.strip()))


# -- Markdown


def test_blocks_stand_apart() -> None:
    assert markdown(Heading(2, "One"), Paragraph(line("text")), Code("x = 1\n", "python")) == (
        "## One\n\ntext\n\n```python\nx = 1\n```\n"
    )


def test_lists_are_numbered_where_that_is_asked_for() -> None:
    lines = (line("a"), line("b"))
    assert markdown(Items(lines)) == "- a\n- b\n"
    assert markdown(Items(lines, numbered=True)) == "1. a\n2. b\n"


def test_a_gain_is_green_and_a_loss_is_red() -> None:
    assert markdown(
        Paragraph(line(Span("+1%", Tone.GOOD), " ", Span("-1%", Tone.BAD), " ", Span("0%", Tone.QUIET)))
    ) == (
        '<span style="background-color:lightgreen;">+1%</span> '
        '<span style="background-color:lightcoral;">-1%</span> 0%\n'
    )


def test_a_cell_has_lines() -> None:
    table = Table(("A", "B"), ((cell("1", line(Span("x", Tone.STRONG))), cell(Span("y", Tone.CODE))),))
    assert markdown(table) == "| A | B |\n| --- | --- |\n| 1<br>**x** | `y` |\n"


@pytest.mark.parametrize(("folded", "mark"), [(None, "!!!"), (True, "???"), (False, "???+")])
def test_a_note_is_an_admonition_with_its_blocks_below_it(folded: bool | None, mark: str) -> None:
    note = Note("tip", 'A "b"', (Code("x\n\ny", "bash"), Paragraph(line("z"))), folded)
    assert markdown(note) == f"{mark} tip \"A 'b'\"\n    ```bash\n    x\n\n    y\n    ```\n\n    z\n"


def test_a_picture_lies_beside_the_page() -> None:
    assert markdown(Figure("noise", "Noise [1]", b"png")) == "![Noise \\[1\\]](charts/noise.png)\n"


def test_nothing_in_a_text_is_taken_for_markdown() -> None:
    assert markdown(Paragraph(line(NASTY))) == (
        r"a\|b \`c\` \<script>alert(1)\</script> \*d\* \[e\](f) \_g\_ \#h &amp;amp; \\x1b\[31m next" + "\n"
    )


def test_an_underscore_inside_a_word_and_two_ampersands_stay_as_they_are() -> None:
    assert markdown(Paragraph(line("max_seqs=64 && fp8"))) == "max_seqs=64 && fp8\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- a", r"\- a"),
        ("1. a", r"1\. a"),
        ("> a", r"\> a"),
        ("-1% a", "-1% a"),
        ("1.5 a", "1.5 a"),
        ("a > b", "a > b"),
    ],
)
def test_what_begins_a_line_begins_no_list_and_no_quotation(text: str, written: str) -> None:
    assert markdown(Paragraph(line(text))) == f"{written}\n"


@pytest.mark.parametrize("text", ["a|b", "a`b"])
def test_code_in_a_table_keeps_the_table_whole(text: str) -> None:
    (row,) = markdown(Table(("A",), ((cell(Span(text, Tone.CODE)),),))).splitlines()[2:]
    assert row == f"| <code>{text.replace('|', '&#124;').replace('`', '&#96;')}</code> |"


def test_a_fence_inside_code_does_not_end_it() -> None:
    assert markdown(Code("```\nx\n````\n")) == "`````\n```\nx\n````\n`````\n"


# -- HTML


def test_html_has_the_same_contents() -> None:
    blocks = (
        Heading(2, "One"),
        Paragraph(line("text ", Span("code", Tone.CODE))),
        Items((line("item"),)),
        Table(("Head",), ((cell(Span("+1%", Tone.GOOD)),),)),
        Note("warning", "Beware", (Code("x < y"),), folded=True),
    )
    texts = Page(pages.html(Document("Title", blocks))).texts
    for wanted in (
        ("h1", "Title"),
        ("h2", "One"),
        ("p", "text"),
        ("code", "code"),
        ("li", "item"),
        ("th", "Head"),
        ("span", "+1%"),
        ("summary", "Beware"),
        ("code", "x < y"),
    ):
        assert wanted in texts


def test_nothing_in_a_text_is_taken_for_html() -> None:
    parts = (Heading(2, NASTY), Paragraph(line(NASTY, Span(NASTY, Tone.CODE))), Code(NASTY), Note("tip", NASTY, ()))
    table = Table((NASTY,), ((cell(Span(NASTY, Tone.BAD)),),))
    text = pages.html(Document(NASTY, (*parts, table, Figure("x", NASTY, b"png"))))
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.texts}
    assert "\x1b" not in text
    shown = [found for _, found in page.texts if "<script>" in found]
    assert len(shown) == 10  # title twice, contents, heading, paragraph, code in it, code, note, the table's two
    assert ("img", "alt") in {(tag, name) for tag, name, value in page.attributes if value and "<script>" in value}


def test_html_loads_nothing() -> None:
    page = Page(text := pages.html(Document("Title", (Heading(2, "One"), Figure("x", "about", b"png")))))
    loads = [(tag, value) for tag, name, value in page.attributes if name in ("src", "href", "srcset", "data")]
    assert loads == [
        ("a", "#one"),
        ("img", "data:image/png;base64," + base64.b64encode(b"png").decode()),
    ]
    for loading in ("@import", "url(", "<script", "<link", "http:", "https:"):
        assert loading not in text


def test_headings_that_are_alike_have_anchors_of_their_own() -> None:
    page = Page(pages.html(Document("Title", (Heading(2, "A b"), Heading(2, "A b"), Heading(2, "...")))))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert ids == ["a-b", "a-b-2", "part"]
    assert [value for tag, name, value in page.attributes if tag == "a"] == [f"#{each}" for each in ids]
