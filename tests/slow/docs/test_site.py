"""The site builds without a warning and loads no external resource."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import environment
from tests.helpers.source import ROOT

# What a browser fetches by itself: not what a reader may click on.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+rel=["']?(?:stylesheet|preconnect)[^>]+href=["']?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build/site"


def test_every_page_is_in_it(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        made = site / ("index.html" if name.name == "index" else f"{name}/index.html")
        assert made.is_file(), name


def test_pages_load_no_external_resource(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not FETCHED.search(page.read_text()), page.relative_to(site)
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", style.read_text()), (
            style.relative_to(site)
        )


def test_the_marks_of_blocks_are_not_seen(site: Path) -> None:
    marks = re.compile(
        r"&lt;!-- |(?<!<!-- )\bneeds: (?:accelerator|engine|environment|hub|minutes|others|ray)\b"
    )
    for page in site.rglob("*.html"):
        assert not marks.search(page.read_text()), page.relative_to(site)


def test_a_pipe_inside_code_in_a_table_is_shown_without_a_backslash(site: Path) -> None:
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", page.read_text(), re.DOTALL)
        assert not [cell for cell in cells if re.search(r"<code>[^<]*\\\|", cell)], page


@pytest.mark.parametrize(
    "word",
    [
        *("Ollama", "Azure", "Kubernetes", "API key", "Embeddings", "Plots", "SUSPECT"),
        *("OVERLOADED", "TOO FEW", "Prometheus", "LoRA", "ShareGPT"),
    ],
)
def test_what_a_user_types_is_in_a_heading(site: Path, word: str) -> None:
    found = json.loads((site / "search.json").read_text())["items"]
    assert any(word in item["title"] for item in found)
