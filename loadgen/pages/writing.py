"""Writing: a document as Markdown and as HTML; nothing in its texts is taken for either language."""

import base64
import html as escapes
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loadgen.pages.document import Document, Heading, Line, Span, Tone
from loadgen.terminal import printable, printable_lines

TEMPLATES = Path(__file__).with_name("templates")
# What Markdown would read as its own, anywhere and at the beginning of a line; not an underscore inside a word.
OWN = re.compile(r"([\\`*\[\]<#|~]|(?<![^\W_])_|_(?![^\W_]))")
LEAD = re.compile(r"^(\d*)(>|[-+.)](?= |$))")
ENTITY = re.compile(r"&(?=#?\w+;)")
COLOURS = {Tone.GOOD: "lightgreen", Tone.BAD: "lightcoral"}  # as MkDocs' pages show gains and losses
FENCE = re.compile("^ *(`{3,})", re.MULTILINE)


def markdown(document: Document, figures: str) -> str:
    """The document for MkDocs with its admonitions, collapsible blocks and tables.

    Args:
        document: Which.
        figures: Folder of the pictures, relative to the page.
    """
    template = _environment(escape=False).get_template("document.md.j2")
    return template.render(document=document, figures=figures).strip() + "\n"


def html(document: Document) -> str:
    """The document as one page that loads nothing: style and pictures are in it."""
    template = _environment(escape=True).get_template("document.html.j2")
    return template.render(document=document, anchors=_anchors(document)).strip() + "\n"


@cache
def _environment(*, escape: bool) -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "plain": _plain,
        "code": lambda text: printable_lines(text.rstrip("\n")),
        "text": lambda text: _escaped(_plain(text)),
        "fence": _fence,
        "markdown": _markdown_line,
        "markdown_cell": lambda cell: "<br>".join(_markdown_line(each, cell=True) for each in cell),
        "html": _html_line,
        "html_cell": lambda cell: Markup("<br>").join(map(_html_line, cell)),
        "base64": lambda data: base64.b64encode(data).decode(),
    }
    return made


def _plain(text: str) -> str:
    """On one line, without anything that is no character."""
    return printable(" ".join(text.split()) if "\n" in text else text)


def _escaped(text: str) -> str:
    return ENTITY.sub("&amp;", OWN.sub(r"\\\1", text))


def _fence(text: str) -> str:
    """A fence that nothing in the text ends."""
    return "`" * max([3, *(len(found) + 1 for found in FENCE.findall(text))])


def _markdown_line(parts: Line, *, cell: bool = False) -> str:
    text = "".join(_markdown_span(part, cell=cell) for part in parts)
    return text if cell else LEAD.sub(r"\1\\\2", text)


def _markdown_span(span: Span, *, cell: bool) -> str:
    text = _plain(span.text)
    if span.tone is Tone.CODE:
        if "`" in text or (cell and "|" in text):  # readers do not agree on either inside backticks
            return f"<code>{escapes.escape(text).replace('|', '&#124;').replace('`', '&#96;')}</code>"
        return f"`{text}`"
    if span.tone is Tone.STRONG:
        return f"**{_escaped(text)}**"
    if span.tone in COLOURS:
        return f'<span style="background-color:{COLOURS[span.tone]};">{_escaped(text)}</span>'
    return _escaped(text)


def _html_line(parts: Line) -> Markup:
    return Markup().join(map(_html_span, parts))


def _html_span(span: Span) -> Markup:
    text = _plain(span.text)
    tag = {Tone.CODE: "code", Tone.STRONG: "strong"}.get(span.tone)
    if tag is not None:
        return Markup(f"<{tag}>{{}}</{tag}>").format(text)
    if span.tone is Tone.PLAIN:
        return Markup("{}").format(text)
    return Markup('<span class="{}">{}</span>').format(span.tone, text)


def _anchors(document: Document) -> dict[int, str]:
    """Names of the headings by their places: words of their texts, numbered where two are alike."""
    found: dict[int, str] = {}
    for place, block in enumerate(document.blocks):
        if isinstance(block, Heading):
            name = first = "-".join(re.findall(r"\w+", block.text.lower())) or "part"
            number = 1
            while name in found.values():
                number += 1
                name = f"{first}-{number}"
            found[place] = name
    return found
