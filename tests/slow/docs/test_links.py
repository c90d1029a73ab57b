"""Every link of the README and docs/ leads to a file and a heading, as GitHub and MkDocs name
it.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.source import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^()\s]+)\)")
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """What can stand behind # for a page: its headings in lower case, with hyphens for spaces
    and nothing for signs.
    """
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )


def links(page: Path) -> list[str]:
    return [
        link
        for link in LINK.findall(BLOCK.sub("", page.read_text()))
        if not re.match("[a-z]+:", link)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        found = (page.parent / name).resolve() if name else page
        assert found.exists(), f"{link}: there is no such file"
        assert not anchor or anchor in anchors(found), f"{link}: {found.name} has no such heading"


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_stay_inside_the_site(page: Path) -> None:
    docs = ROOT / "docs"
    for link in links(page):
        assert docs in (
            (page.parent / link.partition("#")[0]).resolve(),
            *(page.parent / link).resolve().parents,
        ), link


def test_every_page_can_be_found_in_the_navigation() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])


def test_a_page_has_one_name() -> None:
    nav = dict(
        re.findall(r"^ +- (.+): ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    )
    listed = re.findall(r"\[([^\]]+)\]\(([\w/-]+\.md)\)", (ROOT / "docs/index.md").read_text())
    for title, name in zip(nav, nav.values(), strict=True):
        page = (ROOT / "docs" / name).read_text()
        assert page.startswith(f"# {title}\n"), name
        assert name == "index.md" or (title, name) in listed, name
