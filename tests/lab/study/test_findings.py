"""Conclusions are derived once, so that text and report agree."""

from collections.abc import Callable
from typing import Any

import pytest

from loadgen.lab.study.execute.findings import ArmResult, Findings, Verdict
from loadgen.lab.study.execute.trial import Failure, TrialRequest
from loadgen.lab.study.plan.plan import CONFIRMATION
from loadgen.lab.study.report.answer import answer
from loadgen.lab.study.report.report_model import ReportModel
from tests.helpers.study_files import planned, study
from tests.helpers.study_walks import Came, walked

CRASH = Failure("oom_load", "no memory", transient=False)
FASTER: dict[str, Any] = {
    "name": "seqs",
    "choice": {"fp8 64": {"model": "fp8", "knobs": {"max_seqs": 64}}},
}
ALONE: dict[str, Any] = {"name": "alone", "from": "baseline", "choice": {"fp8": {"model": "fp8"}}}
SHORT = {"decision": {"repeats": {"least": 2, "most": 2}}}


def gained(request: TrialRequest) -> Came:
    return (1250.0 if "fp8" in request.arm else 1000.0) * (1 + 0.001 * request.block)


def found(
    truth: Callable[[TrialRequest], Came] = gained, *stages: dict[str, Any], starts: int = 1000
) -> Findings:
    return walked(study(*(stages or (FASTER,)), **SHORT), truth, starts)


def concluded(findings: Findings) -> tuple[bool | None, str | None, str]:
    """Whether the winner is confirmed, whom a report calls the winner, and the answer."""
    winner = ReportModel(findings, {}).winner
    return findings.confirmed, winner and winner.name, answer(findings).text


def test_a_finalist_that_fresh_starts_show_to_be_better_is_the_winner() -> None:
    confirmed, winner, line = concluded(found())
    assert (confirmed, winner) == (True, "seqs/fp8 64")
    assert line.startswith("WINNER: seqs/fp8 64 +25.0%")


def test_study_without_a_finalist_has_no_conclusion() -> None:
    findings = found(lambda request: 1000.0)
    assert findings.finalist is None
    line = "NO WINNER: no arm was better than the baseline | study finished"
    assert concluded(findings) == (None, None, line)


def test_a_finalist_is_the_best_so_far_until_its_confirmation_is_over() -> None:
    confirmed, winner, line = concluded(found(starts=3 + 4 + 2))
    assert (confirmed, winner) == (None, "seqs/fp8 64")
    assert line.startswith("NOT FINISHED: ")


def test_finalist_pruned_by_a_failed_part_is_not_confirmed() -> None:
    def truth(request: TrialRequest) -> Came:
        return CRASH if request.step == "alone" and request.arm == "fp8" else gained(request)

    findings = found(truth, FASTER, ALONE)
    assert findings.finalist is not None
    assert findings.finalist.verdict is Verdict.PRUNED
    confirmed, winner, line = concluded(findings)
    assert (confirmed, winner) == (False, None)
    assert line.startswith("NO WINNER: gain of seqs/fp8 64 (pruned, ")


def test_failed_confirmation_of_the_baseline_is_not_over() -> None:
    def truth(request: TrialRequest) -> Came:
        return (
            CRASH if request.step == CONFIRMATION and request.arm == "baseline" else gained(request)
        )

    confirmed, winner, line = concluded(found(truth))
    assert (confirmed, winner) == (None, "seqs/fp8 64")
    assert line == "NOT FINISHED: confirmation: baseline fails, oom_load: no memory"


@pytest.mark.parametrize(
    ("verdict", "misses", "feasible"),
    [
        (Verdict.REFERENCE, 0, True),
        (Verdict.NOT_SIGNIFICANT, 1, True),
        (Verdict.NOT_SIGNIFICANT, 2, False),  # of four: it must hold more often than not
        (Verdict.INFEASIBLE, 0, False),
        (Verdict.FAILED, 0, False),
    ],
)
def test_an_arm_is_feasible_that_runs_and_holds_what_is_demanded(
    verdict: Verdict, misses: int, feasible: bool
) -> None:
    arm = planned().steps[0].arms[0]
    assert ArmResult(arm, verdict, values=(1.0, 2.0, 3.0, 4.0), misses=misses).feasible is feasible


def test_an_arm_that_held_and_then_failed_is_none_that_holds() -> None:
    missed = {"loadgen": {"slo": [{"limit": "ttft_p99<500ms", "value": 600.0, "met": False}]}}

    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm:
            return 1000.0 if request.block == 0 else CRASH
        return missed

    objective = {"workload": "short", "slo": "ttft_p99<500ms"}
    findings = walked(study(FASTER, objective=objective, **SHORT), truth)
    assert findings.steps[1].arm("fp8 64").verdict is Verdict.FAILED
    assert findings.nothing_feasible
