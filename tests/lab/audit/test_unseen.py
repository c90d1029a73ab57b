"""The page on the audit tells how it did on pages that it had not seen, as the judgement has it."""

import json
import re
from collections import Counter

from loadgen.lab.audit.kinds import ORDER
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


def test_what_is_found_now_is_what_was_judged() -> None:
    text = " ".join((ROOT / "docs" / "audit.md").read_text().split())
    told = re.search(
        r"now finds (\d+) of the (\d+) findings, and (\d+) of the (\d+) of both readers\. "
        r"Its (\d+) inconsistent findings are true; of its (\d+) notes (\d+) are true, (\d+) "
        r"debatable and (\d+) false",
        text,
    )
    assert told is not None
    of_all = [bool(each["now"]) for each in JUDGED["readers"]]
    of_both = [bool(each["now"]) for each in JUDGED["readers"] if each["by"] == "both"]
    wrong = Counter(each["verdict"] for each in JUDGED["now"] if each["level"] == "error")
    notes = Counter(each["verdict"] for each in JUDGED["now"] if each["level"] == "note")
    assert set(wrong) == {"true"}
    counted = [sum(of_all), len(of_all), sum(of_both), len(of_both), wrong["true"], notes.total()]
    assert [int(number) for number in told.groups()] == [
        *counted,
        *(notes[v] for v in ("true", "debatable", "false")),
    ]


def test_what_is_found_now_is_found_by_a_rule_of_that_page() -> None:
    found = {(each["page"], each["rule"]) for each in JUDGED["now"]}
    assert {rule for _, rule in found} <= set(ORDER)
    for each in JUDGED["readers"]:
        assert not each["now"] or (each["page"], each["now"]) in found
        assert each["now"] or not each["found"]
