"""The files of the project that people and programs look for in its root."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from deploy import site
from loadgen.version import __version__
from tests.helpers.source import ROOT
from tests.slow.packaging.building import linted

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_has_the_form_that_github_reads() -> None:
    schema = "vendor.citation-file-format"
    linted("check-jsonschema", "--builtin-schema", schema, str(ROOT / "CITATION.cff"))


def test_the_citation_names_this_version_and_license() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"]) == (__version__, PROJECT["license"])


@pytest.mark.parametrize("page", ["AGENTS.md", "SECURITY.md", "deploy/README.md"])
def test_links_and_modules_of_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    folder = (ROOT / page).parent
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (folder / link).exists(), link
    for module in re.findall(r"`((?:tests|deploy|bench)(?:\.\w+)+)`", text):
        assert ROOT.joinpath(*module.split(".")).with_suffix(".py").is_file(), module
    for target in re.findall(r"`make ([\w-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_places_to_fill_are_listed_for_whoever_releases() -> None:
    """No address is known yet: of the project's repository, its index page, its images."""
    steps = ROOT / "deploy/README.md"
    listed = steps.read_text()
    assert "urls" in PROJECT or "`[project.urls]`" in listed
    texts = [path for path in ROOT.iterdir() if path.suffix in (".cff", ".md", ".yml")]
    texts += [path for name in ("deploy", "docs", "examples") for path in (ROOT / name).rglob("*")]
    for path in {*filter(Path.is_file, texts)} - {steps}:
        if re.search(rb"OWNER/loadgen|registry\.example\.com", path.read_bytes()):
            place = path.relative_to(ROOT)
            assert any(f"`{name}`" in listed for name in (place, *place.parents)), place


def test_pages_are_listed_once_for_language_models() -> None:
    index = "# A\n\nWhat it\nis.\n\nOther.\n\n## Pages\n\n- [B](b.md): one\n  two\n\n## C\n\nNo.\n"
    assert site.llms_txt(index) == (
        f"# A\n\n> What it is.\n\n## Pages\n\n- [B]({site.VERSION}/b.md): one two\n"
    )
