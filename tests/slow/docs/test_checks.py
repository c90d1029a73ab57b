"""docs/checks.md names every check in its group, with its effect, and no other."""

import re

from loadgen.checks import Check, examine
from tests.helpers.run_facts import run_data, steady
from tests.helpers.source import ROOT

PAGE = ROOT / "docs" / "checks.md"
SOURCES = "".join(path.read_text() for path in (ROOT / "loadgen" / "checks").glob("*.py"))
ENTRY = re.compile(
    r"^### (?P<group>[A-Z])\. |^#### (?P<name>.+)\n\n\*\*(?P<effect>INVALID|SUSPECT|note|explains)",
    re.MULTILINE,
)


def told() -> dict[tuple[str, str], str]:
    """The effect of each entry of the page, by its group and its name."""
    text = PAGE.read_text().partition("## The checks\n")[2].partition("\n## ")[0]
    found, group = dict[tuple[str, str], str](), ""
    for entry in ENTRY.finditer(text):
        if entry["group"]:
            group = entry["group"]
        else:
            assert (group, entry["name"]) not in found
            found[group, entry["name"]] = entry["effect"]
    assert len(found) == text.count("\n#### ")
    return found


def effect(check: Check) -> str:
    if check.explains:
        return "explains"
    if not check.counts:
        return "note"
    return "INVALID" if check.group == "A" else "SUSPECT"


def test_the_page_has_every_check_that_a_run_is_put_to() -> None:
    assert {(check.group, check.name) for check in examine(run_data([steady()]))} - set(
        told()
    ) == set()


def test_every_documented_check_exists() -> None:
    assert len(told()) > 40
    assert [name for _, name in told() if f'"{name}"' not in SOURCES] == []


def test_the_page_tells_the_effect_of_each_check() -> None:
    checks = [check for check in examine(run_data([steady()])) if check.ok is not None]
    assert len(checks) > 20
    assert {check.name: told()[check.group, check.name] for check in checks} == {
        check.name: effect(check) for check in checks
    }
