"""Writer of documents as Markdown and as HTML; all texts are escaped."""

import base64
import hashlib
import html as escapes
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec.structs import replace

from loadgen.document import (
    Cell,
    Code,
    Document,
    Drawing,
    Heading,
    Line,
    Span,
    Tone,
    without_drawings,
)
from loadgen.document.charts import svg
from loadgen.document.charts.chart import Chart
from loadgen.util.terminal_text import printable, printable_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context

TEMPLATES = Path(__file__).with_name("templates")
# Syntax of Markdown anywhere, without an underscore inside a word, and at the beginning of a line.
MARKDOWN_SYNTAX = re.compile(r"([\\`*\[\]<#|~]|(?<![^\W_])_|_(?![^\W_]))")
LINE_START_SYNTAX = re.compile(r"^(\d*)(>|[-+.)](?= |$))")
ENTITY = re.compile(r"&(?=#?\w+;)")
# As GitHub has them.
ALERTS = {"note": "NOTE", "tip": "TIP", "info": "NOTE", "warning": "WARNING", "danger": "CAUTION"}
# As MkDocs' pages show gains and losses.
COLOURS = {Tone.GOOD: "lightgreen", Tone.BAD: "lightcoral"}
FENCE = re.compile("^ *(`{3,})", re.MULTILINE)


def markdown(document: Document, figures: str) -> str:
    """Write the document for MkDocs with its admonitions, collapsible blocks and tables.

    Args:
        document: The document.
        figures: Folder of its pictures, relative to the page.
    """
    return _rendered(
        "document.md.j2", _environment(escape=False), document=document, figures=figures
    )


def github(document: Document) -> str:
    """Write the document as Markdown for GitHub: notes are its alerts, or folds; charts are left
    out.
    """
    environment = _environment(escape=False, github=True)
    without_charts = replace(document, blocks=without_drawings(document.blocks))
    return _rendered("document.md.j2", environment, document=without_charts, figures="")


def chart_files(document: Document) -> dict[str, str]:
    """Return the SVG of the charts that its Markdown shows, by the names of their files."""
    return {
        f"{block.name}.svg": chart_svg(block.chart)
        for block in document.all_blocks
        if isinstance(block, Drawing)
    }


def chart_svg(chart: Chart) -> str:
    """Write the chart as an SVG file, in colours for paper."""
    return svg.svg_file(chart, _template("colours.css") + _template("charts.css"))


def html(document: Document) -> str:
    """Write the document as one HTML page that loads nothing: style and charts are in it.

    It has a script only for charts and copyable lines. All content is visible without the script.
    """
    blocks = list(document.all_blocks)
    charts = any(isinstance(block, Drawing) for block in blocks)
    script = charts or any(isinstance(block, Code) and block.copyable for block in blocks)
    return _rendered(
        "document.html.j2",
        _environment(escape=True),
        document=document,
        anchors=_anchors(document),
        numbers=count(1),
        charts=charts,
        script=Markup(_template("page.js")) if script else "",
    )


def fragment(document: Document) -> str:
    """Write the blocks of the document as HTML without a style or a script of its own, to stand
    in another page.
    """
    return _rendered(
        "fragment.html.j2", _environment(escape=True), document=document, numbers=count(1)
    )


def _rendered(template: str, environment: "Environment", **values: object) -> str:
    return environment.get_template(template).render(values).strip() + "\n"


@cache
def _template(name: str) -> str:
    return (TEMPLATES / name).read_text()


@cache
def _environment(*, escape: bool, github: bool = False) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": _plain,
        "code": lambda text: printable_lines(text.rstrip("\n")),
        "text": lambda text: _escaped(_plain(text)),
        "words": lambda parts: "".join(part.text for part in parts),
        "fence": _fence,
        "markdown": partial(_markdown_line, github=github),
        "markdown_cell": lambda cell: "<br>".join(
            _markdown_line(line, cell=True, github=github) for line in cell
        ),
        "html": pass_context(_html_line),
        "html_cell": pass_context(_html_cell),
        "svg": pass_context(_svg),
        "readout": lambda chart: Markup(svg.readout(chart)),
        "alert": ALERTS.__getitem__,
        "sha256": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
    }
    environment.globals["github"] = github
    return environment


def _plain(text: str) -> str:
    """Put a text on one line, without control characters."""
    return printable(" ".join(text.split()) if "\n" in text else text)


def _escaped(text: str) -> str:
    return ENTITY.sub("&amp;", MARKDOWN_SYNTAX.sub(r"\\\1", text))


def _fence(text: str) -> str:
    """Make a fence that is longer than any in the text."""
    return "`" * max([3, *(len(fence) + 1 for fence in FENCE.findall(text))])


def _markdown_line(parts: Line, *, cell: bool = False, github: bool = False) -> str:
    text = "".join(_markdown_span(part, cell=cell, github=github) for part in parts)
    return text if cell else LINE_START_SYNTAX.sub(r"\1\\\2", text)


def _markdown_span(span: Span, *, cell: bool, github: bool) -> str:
    text = _plain(span.text)
    if span.tone is Tone.CODE and ("`" in text or (cell and "|" in text)):
        # Readers do not agree on either inside backticks.
        code = escapes.escape(text).replace("|", "&#124;").replace("`", "&#96;")
        written = f"<code>{code}</code>"
    elif span.tone is Tone.CODE:
        written = f"`{text}`"
    elif span.tone is Tone.STRONG or (github and span.tone in COLOURS):  # GitHub removes colours
        written = f"**{_escaped(text)}**"
    elif span.tone in COLOURS:
        written = f'<span style="background-color:{COLOURS[span.tone]};">{_escaped(text)}</span>'
    else:
        written = _escaped(text)
    if span.about:
        about = escapes.escape(_plain(span.about)).replace("|", "&#124;")
        written = f'<abbr title="{about}">{written}</abbr>'
    return f"[{written}]({span.address})" if span.link else written


def _html_line(context: "Context", parts: Line) -> Markup:
    return Markup().join(_html_span(part, context["numbers"]) for part in parts)


def _html_cell(context: "Context", lines: Cell) -> Markup:
    return Markup("<br>").join(_html_line(context, parts) for parts in lines)


def _html_span(span: Span, numbers: Iterator[int]) -> Markup:
    text = _plain(span.text)
    tag = {Tone.CODE: "code", Tone.STRONG: "strong"}.get(span.tone)
    if tag is not None:
        written = Markup(f"<{tag}>{{}}</{tag}>").format(text)
    elif span.tone is Tone.PLAIN:
        written = Markup("{}").format(text)
    else:
        written = Markup('<span class="{}">{}</span>').format(span.tone, text)
    if span.about:
        key = f"about-{next(numbers)}"
        term = Markup(
            '<dfn tabindex="0" aria-describedby="{0}">{1}</dfn><span role="tooltip" '
            'id="{0}">{2}</span>'
        )
        written = Markup('<span class="term">{}</span>').format(
            term.format(key, written, _plain(span.about))
        )
    return Markup('<a href="{}">{}</a>').format(span.address, written) if span.link else written


def _svg(context: "Context", chart: Chart) -> Markup:
    return Markup(svg.svg(chart, f"chart-{next(context['numbers'])}"))


def _anchors(document: Document) -> dict[int, str]:
    """Names of the headings by their places: words of their texts, numbered where two are alike."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    alike: Counter[str] = Counter()
    for place, block in enumerate(document.blocks):
        if isinstance(block, Heading):
            name = first = "-".join(re.findall(r"\w+", block.text.lower())) or "part"
            while name in taken:
                alike[first] += 1
                name = f"{first}-{alike[first] + 1}"
            taken.add(name)
            names[place] = name
    return names
