"""The files of examples/ that pages show: `python -m tests.slow.docs.examples` puts them there
again.
"""

from pathlib import Path

from tests.helpers.documents import between
from tests.helpers.source import ROOT

EXAMPLES = ROOT / "examples"
SHOWN = {
    "library.md": ("embed.py", "watch.py", "test_slo.py"),
    "add-dataset.md": ("custom_dataset.py",),
    "add-engine.md": ("custom_engine.py",),
    "ci.md": ("github-action.yml",),
}
# By their ending: the language, and the test that holds them to what they say.
KINDS = {
    ".py": ("python", "tests/slow/docs/test_examples.py"),
    ".yml": ("yaml", "tests/slow/docs/test_action.py"),
}


def page(name: str) -> Path:
    """The file of a page."""
    return ROOT / "docs" / name


def marks(name: str) -> tuple[str, str]:
    """The lines of a page between which a file stands."""
    return f"<!-- examples/{name} -->", f"<!-- end of examples/{name} -->"


def shown(name: str) -> str:
    """A file as a page shows it, its name above it."""
    path = EXAMPLES / name
    language, test = KINDS[path.suffix]
    return f"`examples/{name}`:\n\n<!-- run by: {test} -->\n```{language}\n{path.read_text()}```"


def main() -> None:
    """Write all of them."""
    for name, files in SHOWN.items():
        for file in files:
            begin, end = marks(file)
            between(page(name), begin, shown(file), end)


if __name__ == "__main__":
    main()
