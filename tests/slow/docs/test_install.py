"""What is said of installing loadgen: its bare name is not ours on the package index."""

import re
from pathlib import Path

import pytest

from tests.helpers.source import FOLDERS, ROOT

BY_NAME = re.compile(r"pip install\b[^`|\n]*[\s'\"]loadgen(?![\w/.-])|loadgen\[\w+\]")


def texts() -> list[Path]:
    """Pages, examples, and the modules that print messages."""
    pages = [path for ending in ("md", "html") for path in (ROOT / "docs").rglob(f"*.{ending}")]
    examples = [
        path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".yml", ".yaml")
    ]
    sources = [path for folder in FOLDERS.values() for path in folder.rglob("*.py")]
    return [*ROOT.glob("*.md"), *pages, *examples, *sources]


def test_docs_never_install_loadgen_by_its_bare_name() -> None:
    told = {
        f"{path}: {found[0]}" for path in texts() for found in BY_NAME.finditer(path.read_text())
    }
    assert not told


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("pip install loadgen", True),
        ("pip install 'loadgen[tune]'", True),
        ("`loadgen[ray]`", True),
        ("pip install --no-deps loadgen; in a clone", True),
        ("pip install .", False),
        ("pip install /loadgen faker", False),
        ("pip install git+https://git.example.com/loadgen.git@v1", False),
        ("`pip install gguf`; loadgen reads it", False),
    ],
)
def test_an_install_by_name_is_recognised(text: str, is_one: bool) -> None:
    assert bool(BY_NAME.search(text)) == is_one
