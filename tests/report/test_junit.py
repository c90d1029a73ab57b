"""JUnit XML: a test case for each demand, readable whatever a server said."""

from xml.etree import ElementTree

from loadgen.report import gate
from loadgen.report.gate import Demand, Suite

MIXED = (
    Demand("a<1", True, "0.5"),
    Demand("b<1", False, "MISSED (2)"),
    Demand("c<1", None, "INVALID"),
)


def test_a_suite_counts_its_cases() -> None:
    root = ElementTree.fromstring(
        gate.junit_xml(
            [
                Suite("run", "one", MIXED, 12.25, "2025-01-02T03:04:05"),
                Suite("run", "two", MIXED[:1]),
            ]
        )
    )
    assert root.attrib == {
        "name": "loadgen",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    one, two = root
    counts = {"tests": "3", "failures": "1", "errors": "1", "skipped": "0", "time": "12.250"}
    assert one.attrib == {"name": "one", "timestamp": "2025-01-02T03:04:05", **counts}
    assert two.get("timestamp") is None
    assert len(two) == 1


def test_a_missed_demand_is_a_failure_and_one_not_judged_an_error() -> None:
    (suite,) = ElementTree.fromstring(gate.junit_xml([Suite("compare", "one", MIXED)]))
    met, missed, unknown = suite
    assert [case.attrib for case in suite] == [
        {"classname": "loadgen.compare", "name": name, "time": "0"}
        for name in ("a<1", "b<1", "c<1")
    ]
    assert [(one.tag, one.text) for one in met] == [("system-out", "0.5")]
    assert [(one.tag, one.get("message")) for one in (*missed, *unknown)] == [
        ("failure", "MISSED (2)"),
        ("error", "INVALID"),
    ]


def test_properties_stand_before_the_cases() -> None:
    (suite,) = ElementTree.fromstring(
        gate.junit_xml([Suite("run", "one", MIXED, properties={"model": "a/model"})])
    )
    assert [one.tag for one in suite] == ["properties", *["testcase"] * 3]
    assert [one.attrib for one in suite[0]] == [{"name": "model", "value": "a/model"}]


def test_text_that_is_no_xml_is_escaped() -> None:
    nasty = "\x00\x1b[31m<b>&\ud800\uffff"
    text = gate.junit_xml(
        [Suite("run", nasty, (Demand(nasty, True, nasty), Demand(nasty, False, nasty)))]
    )
    (suite,) = ElementTree.fromstring(text)
    assert suite.get("name") == "\\x00\\x1b[31m<b>&\\ud800\\uffff"
