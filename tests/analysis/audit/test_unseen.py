"""The page on the audit tells how it did on pages that it had not seen, as the judgement has it."""

import json
import re

from tests.helpers.audited_pages import PAGES
from tests.helpers.source import ROOT

JUDGED = json.loads((PAGES / "unseen.json").read_text())


def row(name: str) -> tuple[int, int]:
    """Of how many, and how many, in a row of the table."""
    text = (ROOT / "docs" / "audit.md").read_text()
    found = re.search(rf"^\| {re.escape(name)} \| (\d+) \| (\d+) ", text, re.MULTILINE)
    assert found is not None, name
    return int(found[1]), int(found[2])


def test_precision_is_what_was_judged() -> None:
    for name, level in (("inconsistent, and true", "error"), ("notes that are true", "note")):
        found = [each["verdict"] for each in JUDGED["audit"] if each["level"] == level]
        assert row(name) == (len(found), found.count("true"))


def test_recall_is_what_was_judged() -> None:
    of_all = [each["found"] for each in JUDGED["readers"]]
    of_both = [each["found"] for each in JUDGED["readers"] if each["by"] == "both"]
    assert row("findings of the readers that it found") == (len(of_all), sum(of_all))
    assert row("those that both readers found") == (len(of_both), sum(of_both))
