"""docs/numbers.md defines each printed number once, as the page of a run does."""

from loadgen.metrics.snapshot import LATENCIES
from loadgen.report.sections import ABOUT, latencies, term
from tests.helpers.documents import found_between
from tests.slow.docs.numbers import BEGIN, DOCUMENT, END, GROUPS, definitions


def test_the_definitions_are_those_of_the_page_of_a_run() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == definitions(), (
        "python -m tests.slow.docs.numbers"
    )


def test_every_row_of_the_report_is_defined_under_its_name() -> None:
    defined = [one for group in GROUPS.values() for one in group]
    for metric, title in (latencies.TITLES | latencies.WAITS).items():
        assert (title, ABOUT[metric]) in defined


def test_definitions_name_the_clock_due_or_sent() -> None:
    of_two = {metric for metric, about in ABOUT.items() if "{clock}" in about}
    assert of_two == {name.removesuffix("_due") for name in LATENCIES if name.endswith("_due")}
    assert "from the scheduled send, when the schedule wants the request sent, until" in (
        term("ttft_due", "TTFT").about or ""
    )
    assert "from the actual send, when its last byte leaves this machine, until" in (
        term("e2el_sent", "E2EL").about or ""
    )
