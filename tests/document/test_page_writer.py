"""Documents as Markdown and HTML: equal contents and escaped text."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from loadgen.document import (
    Answer,
    Block,
    Code,
    Colour,
    Document,
    Drawing,
    Fact,
    Facts,
    Heading,
    Items,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    page_writer,
    prose,
    terminal_writer,
)
from loadgen.document.charts.chart import Chart, Curve, Heat, Panel
from loadgen.document.charts.scale import Linear
from tests.helpers.html_page import Page

SCALE = Linear("s", 0.0, 1.0)
DRAWING = Drawing(
    "rates",
    Chart("Rates", "Rates [1]", "time", SCALE, (Panel("r", SCALE, (Curve("r", [0], [1]),)),), [0]),
)
HEAT_MAP = Drawing(
    "gaps",
    Chart("Gaps", "Gaps", "time", SCALE, (Panel("g", SCALE, (Heat("g", 0, 1, [0, 1], [[1]]),)),)),
)
NASTY = "a|b `c` <script>alert(1)</script> *d* [e](f) _g_ #h &amp; \x1b[31m\nnext"


def markdown(*blocks: Block) -> str:
    """What blocks are below the title."""
    return page_writer.markdown(Document("Title", blocks), "charts").removeprefix("# Title\n\n")


# -- Markdown for GitHub


def github(*blocks: Block) -> str:
    """What blocks are below the title."""
    return page_writer.github(Document("Title", blocks)).removeprefix("# Title\n\n")


@pytest.mark.parametrize(
    ("kind", "alert"),
    [("tip", "TIP"), ("info", "NOTE"), ("warning", "WARNING"), ("danger", "CAUTION")],
)
def test_a_note_is_an_alert(kind, alert: str) -> None:
    note = Note(kind, "A *b*", (Items((line("x"), line("y"))), Code("1\n\n2")))
    assert (
        github(note)
        == f"> [!{alert}]\n> **A \\*b\\***\n>\n> - x\n> - y\n> \n> ```\n> 1\n> \n> 2\n> ```\n"
    )
    assert github(Note(kind, "A", ())) == f"> [!{alert}]\n> **A**\n"


def test_an_answer_is_an_alert_and_the_next_step_stands_below() -> None:
    assert (
        github(Answer((("FAILED", Colour.RED), ("3 failed", Colour.NONE)), "run `it` again"))
        == "> [!CAUTION]\n> **FAILED \\| 3 failed**\n\n**next:** run `it` again\n"
    )


@pytest.mark.parametrize(
    ("colours", "simulated", "kind"),
    [
        ((Colour.YELLOW, Colour.RED), True, "danger"),
        ((Colour.GREEN, Colour.YELLOW), True, "warning"),
        ((Colour.GREEN, Colour.NONE), True, "info"),
        ((Colour.GREEN, Colour.NONE), False, "tip"),
    ],
)
def test_the_worst_part_of_an_answer_colours_it(colours, simulated: bool, kind: str) -> None:
    parts = tuple(("words", colour) for colour in colours)
    assert Answer(parts, simulated=simulated).kind == kind


def test_every_form_has_title_answer_next_step_and_blocks_in_this_order() -> None:
    answer = Answer((("OK", Colour.GREEN),), "go on")
    document = Document("Title", (Paragraph.of("below"),), (answer,), "about", "origin")
    texts = {
        "html": page_writer.html(document).partition("<body>")[2],
        "markdown": page_writer.markdown(document, ""),
        "github": page_writer.github(document),
        "terminal": terminal_writer.report(document),
    }
    for form, text in texts.items():
        places = [text.index(part) for part in ("Title", "about", "OK", "next:", "go on", "below")]
        assert places == sorted(places), form


@pytest.mark.parametrize(("folded", "tag"), [(True, "<details>"), (False, "<details open>")])
def test_a_folded_note_can_be_opened(folded: bool, tag: str) -> None:
    note = Note("info", "A <b>", (Paragraph(line("x")),), folded)
    assert github(note) == f"{tag}\n<summary>A &lt;b&gt;</summary>\n\nx\n\n</details>\n"


def test_gains_and_losses_are_bold_without_colours() -> None:
    assert (
        github(Paragraph(line(Span("+1%", Tone.GOOD), " ", Span("-1%", Tone.BAD))))
        == "**+1%** **-1%**\n"
    )


def test_charts_are_left_out_with_headings_that_have_nothing_else() -> None:
    blocks = (
        Heading(2, "A"),
        DRAWING,
        Heading(2, "B"),
        Heading(3, "C"),
        Paragraph(line("x")),
        Heading(2, "D"),
        DRAWING,
    )
    assert github(*blocks) == "## B\n\n### C\n\nx\n"
    assert "svg" not in github(Note("info", "A", (DRAWING,), folded=True))


# -- Markdown


def test_blocks_stand_apart() -> None:
    assert markdown(Heading(2, "One"), Paragraph(line("text")), Code("x = 1\n", "python")) == (
        "## One\n\ntext\n\n```python\nx = 1\n```\n"
    )


def test_lists_are_numbered_where_that_is_asked_for() -> None:
    lines = (line("a"), line("b"))
    assert markdown(Items(lines)) == "- a\n- b\n"
    assert markdown(Items(lines, numbered=True)) == "1. a\n2. b\n"


def test_text_between_paired_backticks_is_code() -> None:
    assert prose("see `ulimit -n` and `a`.") == line(
        "see ", Span("ulimit -n", Tone.CODE), " and ", Span("a", Tone.CODE), "."
    )
    assert prose("a lone ` is none") == line("a lone ` is none")


def test_a_gain_is_green_and_a_loss_is_red() -> None:
    assert markdown(
        Paragraph(
            line(Span("+1%", Tone.GOOD), " ", Span("-1%", Tone.BAD), " ", Span("0%", Tone.QUIET))
        )
    ) == (
        '<span style="background-color:lightgreen;">+1%</span> '
        '<span style="background-color:lightcoral;">-1%</span> 0%\n'
    )


def test_a_cell_has_lines() -> None:
    table = Table(
        ("A", "B"), ((cell("1", line(Span("x", Tone.STRONG))), cell(Span("y", Tone.CODE))),)
    )
    assert markdown(table) == "| A | B |\n| --- | --- |\n| 1<br>**x** | `y` |\n"


@pytest.mark.parametrize(("folded", "mark"), [(None, "!!!"), (True, "???"), (False, "???+")])
def test_a_note_is_an_admonition_with_its_blocks_below_it(folded: bool | None, mark: str) -> None:
    note = Note("tip", 'A "b"', (Code("x\n\ny", "bash"), Paragraph(line("z"))), folded)
    assert (
        markdown(note) == f"{mark} tip \"A 'b'\"\n    ```bash\n    x\n\n    y\n    ```\n\n    z\n"
    )


def test_columns_of_numbers_stand_at_the_right() -> None:
    table = Table(("A", "B", "C"), ((cell("x"), cell("1"), cell("2")),), text_columns=1)
    assert markdown(table).splitlines()[1] == "| --- | ---: | ---: |"
    page = Page(page_writer.html(Document("Title", (table,))))
    assert [
        tag for tag, name, value in page.attributes if (name, value) == ("class", "number")
    ] == ["th", "th", "td", "td"]


def test_numbers_to_see_at_once_are_a_list_with_what_they_mean() -> None:
    facts = Facts(
        (Fact(Span("TTFT", about="Time | to"), "20 ms", "p99 30 ms"), Fact(Span("Rate"), "5"))
    )
    assert (
        markdown(facts)
        == '- <abbr title="Time &#124; to">TTFT</abbr>: **20 ms** p99 30 ms\n- Rate: **5**\n'
    )
    texts = Page(page_writer.html(Document("Title", (facts,)))).texts
    assert {
        ("dfn", "TTFT"),
        ("span", "Time | to"),
        ("dd", "20 ms"),
        ("dd", "p99 30 ms"),
        ("dt", "Rate"),
    } <= set(texts)


def test_definition_of_a_term_is_reached_by_keyboard() -> None:
    term = Span("TTFT", about="Time to first token")
    page = Page(
        page_writer.html(
            Document("Title", (Paragraph(line(term, term)), Table(("A",), ((cell(term),),))))
        )
    )
    terms = [(name, value) for tag, name, value in page.attributes if tag == "dfn"]
    assert [value for name, value in terms if name == "tabindex"] == ["0"] * 3
    described = [value for name, value in terms if name == "aria-describedby"]
    assert described == [
        value for tag, name, value in page.attributes if (tag, name) == ("span", "id")
    ]
    assert len(set(described)) == 3
    assert not [each for each in page.attributes if each[1] == "title"]


def test_a_link_leads_to_a_file_beside_the_page_and_nowhere_else() -> None:
    text = Paragraph(line(Span("a run", link="r 1.html"), Span("x", link="javascript:alert(1)")))
    assert markdown(text) == "[a run](r%201.html)[x](javascript%3Aalert%281%29)\n"
    page = Page(page_writer.html(Document("Title", (text,))))
    assert [value for tag, name, value in page.attributes if name == "href"] == [
        "r%201.html",
        "javascript%3Aalert%281%29",
    ]


def test_a_drawing_is_in_the_page_or_beside_its_markdown() -> None:
    assert markdown(DRAWING) == "![Rates \\[1\\]](charts/rates.svg)\n"
    document = Document("Title", (Note("tip", "In", (DRAWING,)),))
    files = page_writer.chart_files(document)
    assert list(files) == ["rates.svg"]
    assert files["rates.svg"].startswith("<svg xmlns=")
    labels = [
        value
        for _, name, value in Page(page_writer.html(document)).attributes
        if name == "aria-label"
    ]
    assert labels == ["Rates: Rates [1]"] * 2  # for wide and for narrow screens


def test_two_drawings_have_ids_of_their_own() -> None:
    page = Page(page_writer.html(Document("Title", (HEAT_MAP, HEAT_MAP))))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)) >= 4


def test_long_commands_are_wrapped_and_aligned_text_is_not() -> None:
    command, text = (
        page_writer.html(Document("Title", (Code("a b", language),))) for language in ("bash", "")
    )
    assert '<pre class="command"><code>a b</code></pre>' in command
    assert "<pre><code>a b</code></pre>" in text
    assert re.search(r"pre\.command {[^}]*white-space: pre-wrap", command)


def test_script_is_present_only_if_needed_and_policy_allows_one() -> None:
    quiet, lively = (
        page_writer.html(Document("Title", (Code("x", copyable=copyable),)))
        for copyable in (False, True)
    )
    assert "<script" not in quiet
    assert "script-src" not in quiet
    (script,) = re.findall(r"<script>(.*?)</script>", lively, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (
        value
        for tag, name, value in Page(lively).attributes
        if (tag, name) == ("meta", "content") and value and "src" in value
    )
    assert (
        policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src "
        f"'sha256-{digest}'"
    )


def test_text_is_escaped_in_markdown() -> None:
    assert markdown(Paragraph(line(NASTY))) == (
        r"a\|b \`c\` \<script>alert(1)\</script> \*d\* \[e\](f) \_g\_ \#h &amp;amp; \\x1b\[31m next"
        + "\n"
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
def test_line_start_cannot_begin_a_list_or_quotation(text: str, written: str) -> None:
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
    texts = Page(page_writer.html(Document("Title", blocks))).texts
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


def test_text_is_escaped_in_html() -> None:
    parts = (
        *(Heading(2, NASTY), Heading(2, "other"), Paragraph(line(NASTY, Span(NASTY, Tone.CODE)))),
        *(Code(NASTY), Note("tip", NASTY, ()), Answer(((NASTY, Colour.RED),))),
    )
    table = Table((NASTY,), ((cell(Span(NASTY, Tone.BAD)),),))
    chart = Drawing("x", replace(DRAWING.chart, about=NASTY))
    text = page_writer.html(Document(NASTY, (*parts, table)))
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.texts}
    assert "\x1b" not in text
    shown = [found for _, found in page.texts if "<script>" in found]
    # Title twice, contents, heading, paragraph, code in it, code, note, badge, the table's two.
    assert len(shown) == 11
    drawn = Page(page_writer.html(Document("Title", (chart,))))
    labels = [value for _, _, value in drawn.attributes if value and "<script>" in value]
    assert len(labels) == 2
    assert "script" not in {tag for tag, _ in drawn.texts if "alert" in _}


def test_html_loads_no_resource() -> None:
    headings = (Heading(2, "One"), Heading(2, "Two"))
    plain, charted = (
        page_writer.html(Document("Title", (*headings, *blocks))) for blocks in ((), (HEAT_MAP,))
    )
    for text, loaded in ((plain, ["a", "a"]), (charted, ["a", "a", "image", "use"])):
        attributes = Page(text).attributes
        loads = [
            (tag, value)
            for tag, name, value in attributes
            if name in ("src", "href", "srcset", "data")
        ]
        assert [tag for tag, _ in loads] == loaded
        assert loads[:2] == [("a", "#one"), ("a", "#two")]
        assert all(
            (value or "").startswith(("data:image/png;base64,", "#")) for _, value in loads[2:]
        )
        for loading in ("@import", "<link", "http:", "https:"):
            assert loading not in text.replace("http://www.w3.org/2000/svg", "")  # a namespace
    for loading in ("url(", "<script"):
        assert loading not in plain


def test_contents_stand_before_the_first_of_several_parts() -> None:
    answers, parts = (Answer((("OK", Colour.GREEN),)),), (Heading(2, "One"), Paragraph.of("text"))
    text = page_writer.html(Document("Title", (*parts, Heading(2, "Two")), answers))
    assert text.index("OK") < text.index("<nav>") < text.index('<h2 id="one">')
    assert "<nav>" not in page_writer.html(Document("Title", parts, answers))


def test_an_answer_has_its_colour_and_its_text() -> None:
    answer = Answer((("FAILED", Colour.RED), ('3 "of" 10', Colour.NONE)))
    text = page_writer.html(Document("Title", (), (answer,)))
    line = "<strong>FAILED</strong> \N{MIDDLE DOT} 3 &#34;of&#34; 10"
    assert f'<p class="badge danger">{line}</p>' in text
    assert markdown(answer) == "!!! danger \"FAILED | 3 'of' 10\"\n"


def test_headings_that_are_alike_have_anchors_of_their_own() -> None:
    page = Page(
        page_writer.html(
            Document("Title", (Heading(2, "A b"), Heading(2, "A b"), Heading(2, "...")))
        )
    )
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert ids == ["a-b", "a-b-2", "part"]
    assert [value for tag, name, value in page.attributes if tag == "a"] == [
        f"#{each}" for each in ids
    ]
