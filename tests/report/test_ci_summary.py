"""The summary for continuous integration: what a reviewer sees of a run on GitHub, in which
order.
"""

from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.report import ci_summary, gate
from tests.helpers import saved_json
from tests.helpers.saved_results import INVALID, SUSPECT, ran, sweep

GOLDEN = Path(__file__).parent / "golden"
SLO = RunSettings(
    request_rate=10.0,
    slo="ttft_p99<25ms,tpot_mean<50ms,error_rate<5%",
    base_url="http://gpu:8000",
    label="nightly",
)


def of(*checks, settings=SLO, **changes):
    return saved_json.result(ran(settings, *checks, **changes))


def markdown(*checks, **changes) -> str:
    return ci_summary.markdown(of(*checks, **changes))


def test_a_failing_run_is_summarized() -> None:
    assert markdown(SUSPECT, failures=2) == (GOLDEN / "ci-summary.md").read_text()


def test_a_passing_run_has_no_failed_checks() -> None:
    text = markdown(settings=RunSettings(request_rate=10.0))
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# model org/tiny: 10 req/s", "## Gate: passed", "## Figures"]
    assert "FAILED" not in text


def test_what_one_must_know_is_an_alert_before_the_gate() -> None:
    text = markdown(simulated=True, insecure=True)
    assert text.count("> [!WARNING]\n> **") == 2
    assert text.index("> **SIMULATED ENGINE") < text.index("> **INSECURE") < text.index("## Gate")


def test_a_run_without_an_answer_has_no_latencies() -> None:
    text = markdown(failures=60)
    assert "## Figures" in text
    assert "Latency (ms)" not in text


def test_an_older_result_has_no_client_errors() -> None:
    (ttft,) = [
        line for line in markdown(client_error_ms=None).splitlines() if line.startswith("| TTFT")
    ]
    assert ttft.endswith("| n/a |")


def test_a_series_is_its_page_without_charts() -> None:
    series = saved_json.from_dict(sweep((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False)))
    text = ci_summary.markdown(series)
    assert "svg" not in text
    assert text.startswith("# Sweep over the request rate: model org/tiny\n")
    assert "> **FOUND: 2 req/s is the highest rate that met ttft_p99" in text
    assert "\n| 4 | **MISSED** |" in text
    assert "!!!" not in text


@pytest.mark.parametrize(
    ("checks", "errors", "failures"), [((), 0, 1), ((INVALID,), 3, 1), ((SUSPECT,), 0, 1)]
)
def test_the_suite_of_a_run_has_a_case_for_each_demand(checks, errors, failures) -> None:
    suite = ci_summary.suite(of(*checks))
    met = [demand.met for demand in suite.demands]
    assert (met.count(None), met.count(False)) == (errors, failures)
    assert (suite.command, suite.name, suite.timestamp) == (
        "run",
        "model org/tiny at http://gpu:8000: 10 req/s",
        "2025-01-02T03:04:05",
    )
    assert suite.properties.keys() == {"model", "target", "label", "summary"}
    assert 'name="tpot_mean&lt;50ms"' in gate.junit_xml([suite])


def test_the_suite_leaves_out_what_is_not_known() -> None:
    assert ci_summary.suite(of(settings=RunSettings())).properties.keys() == {"model", "summary"}
