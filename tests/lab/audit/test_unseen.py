"""The page on the audit tells how it did on pages that it had not seen, as the judgement has it."""

import json
import re
from collections import Counter

from loadgen.lab.audit.finding import ORDER
from tests.helpers.audited_pages import PAGES
from tests.helpers.source import ROOT

LOST = ("qwen3-32b-h100", 71)  # a name that TensorRT-LLM, which served it, does not look at
JUDGED = json.loads((PAGES / "unseen.json").read_text())


TEXT = " ".join((ROOT / "docs" / "audit.md").read_text().split())


def told(pattern: str) -> list[int]:
    """The numbers of a sentence of the page."""
    found = re.search(pattern, TEXT)
    assert found is not None, pattern
    return [int(number) for number in found.groups()]


def verdicts(when: str, level: str) -> Counter[str]:
    """The verdicts on what the audit found, `audit` for the first time or `now`."""
    return Counter(each["verdict"] for each in JUDGED[when] if each["level"] == level)


def test_what_was_found_then_is_what_was_judged() -> None:
    errors, notes = verdicts("audit", "error"), verdicts("audit", "note")
    by_readers = [each["found"] for each in JUDGED["readers"]]
    assert told(
        r"found (\d+) mistakes, and the audit found (\d+) of them \(42 %\)\. Of its (\d+) "
        r"inconsistent findings (\d+) were true; of its (\d+) notes (\d+) were true and (\d+) "
        r"debatable"
    ) == [
        *(len(by_readers), sum(by_readers), errors.total(), errors["true"]),
        *(notes.total(), notes["true"], notes["debatable"]),
    ]


def test_what_is_found_now_is_what_was_judged() -> None:
    errors, notes = verdicts("now", "error"), verdicts("now", "note")
    by_readers = [bool(each["now"]) for each in JUDGED["readers"]]
    assert set(errors) == {"true"}
    assert told(
        r"now finds (\d+) of the (\d+); its (\d+) inconsistent findings are true, and of its (\d+) "
        r"notes (\d+) are true, (\d+) debatable and (\d+) false"
    ) == [
        *(sum(by_readers), len(by_readers), errors["true"], notes.total()),
        *(notes[verdict] for verdict in ("true", "debatable", "false")),
    ]


def test_what_is_found_now_is_found_by_a_rule_of_that_page() -> None:
    found = {(each["page"], each["rule"]) for each in JUDGED["now"]}
    assert {rule for _, rule in found} <= set(ORDER)
    for each in JUDGED["readers"]:
        assert not each["now"] or (each["page"], each["now"]) in found
        assert each["now"] or not each["found"] or (each["page"], each["line"]) == LOST
