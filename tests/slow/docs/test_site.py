"""The site builds without a warning and loads no external resource."""

import json
import re
import shutil
from pathlib import Path

import pytest

from deploy import site
from tests.helpers.source import ROOT

# What a browser fetches by itself: not what a reader may click on.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+rel=["']?(?:stylesheet|preconnect)[^>]+href=["']?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    site.build(folder, folder / "build/site")
    return folder / "build/site"


@pytest.fixture(scope="module")
def pages(published: Path) -> Path:
    return published / site.VERSION


def test_every_page_is_in_it(pages: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        made = pages / ("index.html" if name.name == "index" else f"{name}/index.html")
        assert made.is_file(), name


def test_pages_load_no_external_resource(pages: Path) -> None:
    for page in pages.rglob("*.html"):
        assert not FETCHED.search(page.read_text()), page.relative_to(pages)
    for style in pages.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", style.read_text()), (
            style.relative_to(pages)
        )


def test_the_marks_of_blocks_are_not_seen(pages: Path) -> None:
    marks = re.compile(
        r"&lt;!-- |(?<!<!-- )\bneeds: (?:accelerator|engine|environment|hub|minutes|others|ray)\b"
    )
    for page in pages.rglob("*.html"):
        assert not marks.search(page.read_text()), page.relative_to(pages)


def test_a_pipe_inside_code_in_a_table_is_shown_without_a_backslash(pages: Path) -> None:
    for page in pages.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", page.read_text(), re.DOTALL)
        assert not [cell for cell in cells if re.search(r"<code>[^<]*\\\|", cell)], page


@pytest.mark.parametrize(
    "word",
    [
        *("Ollama", "Azure", "Kubernetes", "API key", "Embeddings", "Plots", "SUSPECT"),
        *("OVERLOADED", "TOO FEW", "Prometheus", "LoRA", "ShareGPT"),
    ],
)
def test_what_a_user_types_is_in_a_heading(pages: Path, word: str) -> None:
    found = json.loads((pages / "search.json").read_text())["items"]
    assert any(word in item["title"] for item in found)


def test_readers_can_choose_a_version(published: Path, pages: Path) -> None:
    (version,) = json.loads((published / "versions.json").read_text())
    assert (published / version["version"]) == pages
    assert f"url={version['version']}/" in (published / "index.html").read_text()
    assert '"provider":"mike"' in (pages / "index.html").read_text().replace(" ", "")


def test_language_models_find_every_page_as_markdown(published: Path) -> None:
    text = (published / "llms.txt").read_text()
    assert text.startswith("# loadgen\n\n> loadgen is an open-loop load generator")
    listed = re.findall(r"\]\(([\w/.-]+\.md)\)", text)
    assert all((published / page).is_file() for page in listed)
    wanted = {path.relative_to(published) for path in published.rglob("*.md")}
    assert {Path(page) for page in listed} >= wanted - {Path(site.VERSION, "index.md")}
