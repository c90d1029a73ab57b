"""The badge of the page of a run, and the reasons and checks below it."""

from typing import Any

import pytest

from loadgen.checks import Check
from loadgen.config.settings import RunSettings
from loadgen.document import Items, Paragraph, Table
from tests.helpers.html_page import Page
from tests.helpers.run_page_parts import (
    folds,
    has,
    listed,
    texts,
    words,
)
from tests.helpers.saved_json import document, html
from tests.helpers.saved_results import INVALID, SUSPECT, ran


def badge(*arguments: Any, **changes: Any) -> tuple[str, str]:
    """Return the colour and the text of the badge of a result."""
    (found,) = document([ran(*arguments, **changes)]).answers
    return found.kind, words(found.line)


@pytest.mark.parametrize(
    ("checks", "kind", "first"),
    [
        ((), "tip", "OK"),
        ((SUSPECT,), "warning", "SUSPECT: loop stalls (4.1 ms)"),
        ((INVALID, SUSPECT), "danger", "INVALID: engine lost (killed by SIGKILL), loop stalls"),
    ],
)
def test_badge_has_the_state_in_words_and_in_colour(
    checks: tuple[Any, ...], kind: str, first: str
) -> None:
    assert badge(None, *checks)[0] == kind
    assert badge(None, *checks)[1].startswith(f"{first} \N{MIDDLE DOT} 60/60 ok \N{MIDDLE DOT} ")


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        (
            {"failures": 33},
            "danger",
            "FAILED: 33 of 60 requests failed (503: 33) \N{MIDDLE DOT} 9.91 req/s (target 10)",
        ),
        ({"failures": 60}, "danger", "FAILED: 60 of 60 requests failed (503: 60)"),
        (
            {"overloaded": True},
            "warning",
            "OVERLOADED: the server completed 9.96 of 10 req/s \N{MIDDLE DOT} 60/60 ok",
        ),
        ({"partial": "interrupted"}, "warning", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"insecure": True}, "warning", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"simulated": True}, "info", "OK \N{MIDDLE DOT} 60/60 ok"),
        ({"simulated": True, "failures": 33}, "danger", "FAILED: 33 of 60"),
        ({"simulated": True, "overloaded": True}, "warning", "OVERLOADED"),
    ],
)
def test_the_state_leads_the_badge_and_what_is_worst_colours_it(
    changes: dict[str, Any], kind: str, said: str
) -> None:
    found = badge(**changes)
    assert found[0] == kind
    assert found[1].startswith(said)
    assert found[1].endswith("SIMULATED, not a real server") is bool(changes.get("simulated"))


@pytest.mark.parametrize(
    ("limits", "kind", "said"),
    [
        ("ttft_p99<1s", "tip", "SLO met: ttft_p99<1s"),
        ("ttft_p99<1s,e2el_p50<1ms", "danger", "SLO MISSED: e2el_p50<1ms (104 ms)"),
    ],
)
def test_badge_names_the_limits_of_the_slo(limits: str, kind: str, said: str) -> None:
    found = badge(RunSettings(slo=limits))
    assert found[0] == kind
    assert said in found[1].split(" \N{MIDDLE DOT} ")


def test_few_failures_are_a_doubt_and_no_failure() -> None:
    kind, text = badge(RunSettings(max_error_rate=0.1), failures=3)
    assert (kind, text.split(" \N{MIDDLE DOT} ")[:2]) == (
        "warning",
        ["OK", "3 of 60 requests failed (503: 3)"],
    )


def test_failed_checks_are_listed_with_their_remedy() -> None:
    result = ran(None, INVALID, SUSPECT)
    note = folds(result)["Reasons and advice"]
    assert note.kind == "danger"
    page = texts(result)
    finding = page.index("engine lost")
    assert page[finding : finding + 6] == [
        *("engine lost", ": killed by SIGKILL, limit the same process", "-> read the engine's log"),
        *("loop stalls", ": 4.1 ms, limit 0.8 ms", "-> free a core"),
    ]
    assert any(title.endswith("; 2 of 5 checks passed, 1 note") for title in folds(result))


def test_notes_are_told_apart_from_what_failed() -> None:
    assert "Bear in mind" in folds(ran())
    assert not has("Reasons and advice", ran())
    assert not has("Bear in mind", ran(checks=[]))


def test_every_check_is_there_folded() -> None:
    (title,) = (title for title in folds(ran(None, SUSPECT)) if title.startswith("All checks"))
    checks, *rest = folds(ran(None, SUSPECT))[title].blocks
    assert isinstance(checks, Table)
    assert checks.head == ("group", "check", "", "value", "limit")
    assert [[words(cell[0]) for cell in row] for row in checks.rows] == [
        ["C", "loop stalls", "failed", "4.1 ms", "0.8 ms"],
        ["A", "requests not ended once", "passed", "60 of 60", "one outcome for each"],
        ["B", "lag p99", "passed", "0.100 ms", "1.000 ms"],
        ["D", "too few for percentiles", "noted", "60 values are too few for p99", "662"],
    ]
    assert [words(each.text) for each in rest if isinstance(each, Paragraph)] == [
        "Groups: C did the client distort the times?; A accounting; B was everything sent on "
        "time?; D are there enough values, and was the load steady?",
        "Not applicable: targets fail unevenly",
    ]


def test_commands_in_an_advice_are_code_as_they_are_in_what_is_printed() -> None:
    typed = Check("sent", False, "1 request", "0", "see what `loadgen doctor` says", group="B")
    page = Page(html([ran(None, typed)]))
    assert ("code", "loadgen doctor") in page.texts
    assert not any("`" in text for tag, text in page.texts if tag == "li")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"simulated": True}, "SIMULATED ENGINE"),
        ({"partial": "interrupted"}, "PARTIAL: interrupted."),
        ({"insecure": True}, "INSECURE"),
    ],
)
def test_reasons_say_what_happened(changes: dict[str, Any], said: str) -> None:
    (reasons,) = folds(ran(**changes))["Reasons and advice"].blocks
    assert isinstance(reasons, Items)
    (reason,) = listed(reasons)
    assert reason.startswith(said)
