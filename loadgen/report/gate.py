"""Gate: the demands that the exit code of a run depends on, whether each is met, and JUnit XML
of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from xml.etree import ElementTree

from loadgen.report.result import RunResult
from loadgen.report.run_state import failures_text, has_failed, has_too_few, state_text
from loadgen.report.sections import verdict
from loadgen.util.terminal_text import printable


@dataclass(frozen=True, slots=True)
class Demand:
    """One demand.

    Attributes:
        name: What is demanded, such as a limit of an SLO.
        met: Whether it is met; None: the run does not show it.
        finding: What was found, in words.
    """

    name: str
    met: bool | None
    finding: str


def demands(result: RunResult) -> list[Demand]:
    """Judge a run by all that its exit code depends on."""
    settings = result.provenance.settings
    label = str(result.verdict)
    demanded = "verdict VALID" if settings.strict else "verdict not INVALID"
    is_good = label == "VALID" or (label == "SUSPECT" and not settings.strict)
    demands = [Demand(demanded, is_good, "; ".join([label, *result.reasons()]))]
    if result.partial:
        demands.append(Demand("run not ended early", False, result.partial))
    gone = result.no_answer_since_s
    finding = failures_text(result)
    finding += "" if gone is None else f"; the server stopped answering at {gone:.1f} s"
    most = f"{100 * settings.max_error_rate:.4g}%"
    demands.append(Demand(f"failed requests <= {most}", not has_failed(result), finding))
    cannot_tell = label == "INVALID" or has_too_few(result)
    for row, line in zip(result.slo, verdict.slo_lines(result), strict=True):
        finding = line.partition(": ")[2]
        if cannot_tell:
            finding = f"cannot tell: {state_text(result)}"
        demands.append(Demand(row.limit, None if cannot_tell else row.met, finding))
    return demands


def outcome(demands: Sequence[Demand]) -> str:
    """Return the outcome of a gate: passed, FAILED, or "cannot tell" if what is missing decides."""
    states = {demand.met for demand in demands}
    return "FAILED" if False in states else "cannot tell" if None in states else "passed"


@dataclass(frozen=True, slots=True)
class Suite:
    """Demands on one thing.

    Attributes:
        command: The command that judged: run or compare.
        name: What the demands are on, such as a run.
        demands: A test case each; one that cannot be judged is an error.
        seconds: How long it took.
        timestamp: When it began, as ISO 8601; empty: unknown.
        properties: What else is known of it.
    """

    command: str
    name: str
    demands: Sequence[Demand]
    seconds: float = 0.0
    timestamp: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def junit_xml(suites: Sequence[Suite]) -> str:
    """Write suites as a JUnit file."""
    root = _element(
        "testsuites",
        name="loadgen",
        **_counts(list(chain.from_iterable(suite.demands for suite in suites))),
    )
    for suite in suites:
        at = {"timestamp": suite.timestamp} if suite.timestamp else {}
        counts = _counts(suite.demands) | {"time": f"{suite.seconds:.3f}"}
        element = _element("testsuite", name=suite.name, **counts, **at)
        if suite.properties:
            properties = ElementTree.SubElement(element, "properties")
            properties.extend(
                _element("property", name=name, value=value)
                for name, value in suite.properties.items()
            )
        at = {"classname": f"loadgen.{suite.command}"}
        for demand in suite.demands:
            # The time of the suite is that of the run, which all of its cases share.
            case = _element("testcase", **at, name=demand.name, time="0")
            if demand.met:
                ElementTree.SubElement(case, "system-out").text = printable(demand.finding)
            else:
                kind = "error" if demand.met is None else "failure"
                case.append(_element(kind, message=demand.finding))
            element.append(case)
        root.append(element)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(demands: Sequence[Demand]) -> dict[str, str]:
    states = [demand.met for demand in demands]
    counts = {
        "tests": len(states),
        "failures": states.count(False),
        "errors": states.count(None),
        "skipped": 0,
    }
    return {name: str(count) for name, count in counts.items()}


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    """Make an element; control characters in a server's text are escaped."""
    return ElementTree.Element(tag, {name: printable(value) for name, value in attributes.items()})
