"""The gate of a run: its demands are met exactly where the exit code is 0, and the run came to
its end.
"""

import pytest

from loadgen.cli import exit_codes
from loadgen.config.settings import RunSettings
from loadgen.report import gate
from loadgen.report.gate import Demand
from tests.helpers import saved_json
from tests.helpers.saved_results import INVALID, SUSPECT, ran

SLO = RunSettings(request_rate=10.0, slo="ttft_p99<25ms,error_rate<5%")


def of(*checks, settings=SLO, **changes):
    return saved_json.result(ran(settings, *checks, **changes))


@pytest.mark.parametrize(
    ("made", "met"),
    [
        (of(settings=RunSettings()), [True, True]),
        (of(), [True, True, False, True]),
        (of(settings=SLO.replace(slo="ttft_p99<250ms")), [True, True, True]),
        (of(SUSPECT, settings=RunSettings()), [True, True]),
        (of(SUSPECT, settings=RunSettings(strict=True)), [False, True]),
        (of(INVALID), [False, True, None, None]),
        (of(failures=2), [True, False, False, True]),
        (of(failures=2, settings=RunSettings(max_error_rate=0.05)), [True, True]),
        (of(failures=60, settings=RunSettings(max_error_rate=1.0)), [True, False]),
        (of(no_answer_since_s=3.9, settings=RunSettings()), [True, False]),
        (
            of(
                slo=[{"limit": "ttft_p99<26ms", "value": 26.0, "client_error_ms": 0.1, "met": None}]
            ),
            [True, True, None],
        ),
    ],
)
def test_each_demand_is_met_missed_or_not_judged(made, met) -> None:
    demands = gate.demands(made)
    assert [demand.met for demand in demands] == met
    settings = made.provenance.settings
    code = exit_codes.code(made, strict=settings.strict, interrupted=False)
    assert (gate.outcome(demands) == "passed") == (code == 0)


def test_a_run_that_ended_early_passes_no_gate() -> None:
    """Whoever interrupts a run has the exit code of that; the files that it leaves are read
    later.
    """
    verdict, whole, failed = gate.demands(of(settings=RunSettings(), partial="interrupted"))
    assert whole == Demand("run not ended early", False, "interrupted")
    assert (verdict.met, failed.met) == (True, True)


def test_demands_say_what_was_found() -> None:
    verdict, failed, ttft, errors = gate.demands(of(SUSPECT, failures=2))
    assert verdict == Demand(
        "verdict not INVALID", True, "SUSPECT; loop stalls: 4.1 ms, limit 0.8 ms"
    )
    assert failed == Demand("failed requests <= 1%", False, "2 of 60 requests failed (503: 2)")
    assert (ttft.name, ttft.finding) == ("ttft_p99<25ms", "MISSED (3.33% of 60 requests failed)")
    assert (errors.name, errors.finding) == ("error_rate<5%", "met (3.333%)")


def test_the_allowed_share_of_failures_is_named() -> None:
    _, failed = gate.demands(of(settings=RunSettings(max_error_rate=0.005)))
    assert failed.name == "failed requests <= 0.5%"


def test_a_server_that_is_gone_is_said() -> None:
    _, failed = gate.demands(of(no_answer_since_s=3.9, settings=RunSettings()))
    assert failed.finding == "0 of 60 requests failed; the server stopped answering at 3.9 s"
