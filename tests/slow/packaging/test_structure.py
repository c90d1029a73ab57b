"""Rules on the structure of the code beside those of import-linter and ruff in pyproject.toml."""

import re
import subprocess

import pytest

from tests.helpers.source import FOLDERS, ROOT

MAX_LINES = 450
MAX_TOP_MODULES = 6
MAX_SUBJECT = 72  # characters, of a commit
LAST_UNCHECKED = "df100115"  # older subjects stay as they are


def test_the_top_of_the_package_holds_few_modules() -> None:
    assert len(list((ROOT / "loadgen").glob("*.py"))) <= MAX_TOP_MODULES


def test_files_are_within_the_line_limit() -> None:
    for folder in FOLDERS.values():
        for path in (
            path for ending in ("py", "pyx", "pxd", "pxi") for path in folder.rglob(f"*.{ending}")
        ):
            lines = len(path.read_text().splitlines())
            assert lines <= MAX_LINES, f"{path.relative_to(ROOT)} has {lines} lines"


def test_every_target_of_the_makefile_that_is_no_file_has_a_rule() -> None:
    text = (ROOT / "Makefile").read_text()
    (names,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    for name in names.split():
        assert re.search(rf"^{name}:", text, re.MULTILINE), name


def test_marks_of_slow_tests_are_in_their_files() -> None:
    """`make test-all` collects the files that have such marks, and tests/workload."""
    tests = ROOT / "tests"
    elsewhere = [
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if not path.name.startswith("test_")
        and path.relative_to(tests).parts[0] not in ("slow", "qa")
        and re.search(r"real_data|mark\.slow", path.read_text())
    ]
    assert elsewhere == ["workload/conftest.py"]


def test_documents_have_no_merge_markers() -> None:
    places = [
        ROOT.glob("*.md"),
        *((ROOT / name).rglob("*.md") for name in ("docs", "loadgen", "engines", "bench")),
    ]
    for path in (path for place in places for path in place):
        assert not re.search(r"^(<{7}|>{7}) ", path.read_text(), re.MULTILINE), path


def test_documents_and_results_name_no_folder_of_a_machine() -> None:
    private = re.compile(r"(?<![\w.:/])/(?:root|home|work|Users)/")
    for path in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "bench").rglob("*.md"),
    ):
        found = private.search(path.read_text())
        assert found is None, f"{path.relative_to(ROOT)}: {found}"


def test_subjects_of_commits_are_short() -> None:
    log = ["git", "log", "--format=%h %s", f"{LAST_UNCHECKED}..HEAD"]
    commits = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    if commits.returncode:
        pytest.skip(f"the history is not here: {commits.stderr.strip()}")
    for line in commits.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        assert len(subject) <= MAX_SUBJECT, (
            f"{commit} has a subject of {len(subject)} characters: {subject}"
        )
