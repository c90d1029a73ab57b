"""The checks in the console report: what failed, what to do, and all of them in a table."""

from loadgen.checks import Check
from tests.helpers.console_lines import cells, section
from tests.helpers.console_reports import below, red


def test_the_verdict_counts_the_checks_that_applied():
    checks = [
        Check("x", True, "1", "1", "y", group="A"),
        Check("z", None, "n/a", "capped", "y", group="B"),
    ]
    assert (
        "All checks: VALID, timing error of loadgen at most 0.25 ms (p99 E2EL); 1 of 1 checks "
        "passed" in below(checks=checks)
    )


def test_a_check_that_failed_says_what_was_seen_what_was_allowed_and_what_to_do():
    lines = below(checks=[red(), Check("x", True, "1", "1", "y", group="A")])
    assert section(lines, "Reasons and advice") == [
        "rate off schedule: 90.00 req/s, limit within 0.5%",
        "-> free a core",
    ]
    assert (
        "All checks: SUSPECT, timing error of loadgen at most 0.25 ms (p99 E2EL); 1 of 2 checks "
        "passed" in lines
    )


def test_checks_that_fail_for_one_reason_get_its_advice_once():
    other = Check("loop stalls", False, "9 ms", "2 ms", "stop the hog", group="C")
    lines = below(checks=[red(), red(), other])
    assert [line.partition(":")[0] for line in section(lines, "Reasons and advice")] == [
        *("rate off schedule", "rate off schedule", "-> free a core"),
        *("loop stalls", "-> stop the hog"),
    ]
    assert any(line.endswith("; 0 of 3 checks passed") for line in lines)


def test_notes_come_after_what_failed_and_leave_the_verdict_alone():
    note = Check(
        "enough", False, "5 values are few", "at least 9", "send more", counts=False, group="D"
    )
    lines = below(checks=[note, Check("x", True, "1", "1", "y", group="A")])
    assert section(lines, "Bear in mind") == ["enough: 5 values are few", "-> send more"]
    assert not any(line.startswith("Reasons and advice") for line in lines)
    assert (
        "All checks: VALID, timing error of loadgen at most 0.25 ms (p99 E2EL); 1 of 2 checks "
        "passed, 1 note" in lines
    )
    lines = below(checks=[note, note, red()])
    failed, noted = lines.index("Reasons and advice"), lines.index("Bear in mind")
    assert failed < noted
    assert [line.partition(":")[0] for line in section(lines, "Bear in mind")] == [
        *("enough", "-> send more"),
        *("enough", "-> send more"),
    ]
    assert (
        "All checks: SUSPECT, timing error of loadgen at most 0.25 ms (p99 E2EL); 0 of 3 checks "
        "passed, 2 notes" in lines
    )


def test_every_check_is_listed_with_what_became_of_it():
    checks = [
        red(),
        Check("x", True, "1", "2", "y", group="A"),
        Check("z", None, "n/a", "capped", "y", group="B"),
        Check("few", False, "5", "at least 9", "more", counts=False, group="D"),
        Check("stalls", False, "9 ms", "2 ms", "go", counts=False, explains=True, group="C"),
    ]
    lines = below(checks=checks)
    head, *rows, about, others = section(lines, "All checks: ")
    assert cells(head) == ["group", "check", "value", "limit"]
    assert [cells(row) for row in rows] == [
        ["B", "rate off schedule", "failed", "90.00 req/s", "within 0.5%"],
        ["A", "x", "passed", "1", "2"],
        ["D", "few", "noted", "5", "at least 9"],
        ["C", "stalls", "explains", "9 ms", "2 ms"],
    ]
    assert about == (
        "Groups: B was everything sent on time?; A accounting; D are there enough values, and was "
        "the load steady?; C did the client distort the times?"
    )
    assert others == "Not applicable: z"


def test_the_checks_come_last_before_the_state():
    *_, others, before, state = below(checks=[Check("z", None, "n/a", "capped", "y", group="B")])
    assert (others, before, state[:4]) == ("Not applicable: z", "", "OK |")
    titles = [line for line in below(checks=[red()]) if line.startswith(("The client: ", "All "))]
    assert [title.partition(":")[0] for title in titles] == ["The client", "All checks"]


def test_symptoms_of_the_client_explain_late_sends_and_nothing_else():
    symptom = Check(
        "loop stalls", False, "9 ms", "2 ms", "stop the hog", counts=False, explains=True, group="C"
    )
    cut = Check("run cut short", False, "5 cancelled", "0", "let it end", group="B")
    lines = below(checks=[red(), symptom])
    assert section(lines, "Reasons and advice")[-1] == "explained by: loop stalls 9 ms"
    assert not any("explained by" in line for line in below(checks=[cut, symptom]))
