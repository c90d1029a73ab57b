"""Findings of published results: expected winners, arms found by configuration, no comparison."""

from typing import Any

from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.findings import ArmResult, Findings, Verdict
from loadgen.lab.study.execute.trial import Failure, Trial, TrialRequest
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.report import findings_text
from loadgen.lab.study.report.answer import answer
from loadgen.lab.study.spec.study import Study
from tests.helpers.console_lines import cells
from tests.helpers.study_files import study
from tests.helpers.study_walks import trial

ENGINE: dict[str, Any] = {
    "name": "engine",
    "choice": {"vllm": {}, "sglang": {"engine": "sglang"}},
    "expect": "sglang",
}
SEQS: dict[str, Any] = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
JOINT: dict[str, Any] = {
    "name": "joint",
    "joint": {"max_seqs": {"log2": [64, 256]}},
    "expect": {"max_seqs": 128},
}


def planned(of: Study, step: str, name: str) -> PlannedArm:
    """An arm, of the plan in which every stage is won by what it expects."""
    return next(
        arm for each in plan(of).steps if each.name == step for arm in each.arms if arm.name == name
    )


def one(of: Study, step: str, name: str, came: Any, block: int = 0, **parts: Any) -> Trial:
    """A published result of an arm."""
    if not isinstance(came, Failure):
        own = {
            "servers": 1,
            "published": {"completed": 1000},
            "provenance": {"command": "vllm serve X"},
        }
        came = {"total": came} if isinstance(came, int | float) else dict(came)
        came = {**came, "loadgen": own | came.get("loadgen", {})}
    return trial(
        TrialRequest(step, block, name),
        came,
        **({"config": planned(of, step, name).identity} | parts),
    )


def found(findings: Findings, step: str, name: str) -> ArmResult:
    return next(each for each in findings.steps if each.step.name == step).arm(name)


def test_the_run_of_a_configuration_stands_in_every_step_that_has_it() -> None:
    of = study(ENGINE, SEQS)
    trials = [one(of, "engine", "vllm", 1000.0, 0), one(of, "engine", "sglang", 1200.0, 1)]
    findings = publications.published_findings(of, trials)
    assert found(findings, "seqs", "engine/sglang").values == (1200.0,)
    assert found(findings, "seqs", "engine/sglang").verdict is Verdict.REFERENCE
    assert found(findings, "confirmation", "baseline").values == (1000.0,)
    assert found(findings, "confirmation", "engine/sglang").verdict is Verdict.AUTHORS_CHOICE
    assert findings.confirmed is None


def test_status_says_that_the_author_adopted_and_nothing_confirmed() -> None:
    of = study(ENGINE)
    trials = [one(of, "engine", "vllm", 1000.0, 0), one(of, "engine", "sglang", 1200.0, 1)]
    lines = findings_text.as_text(publications.published_findings(of, trials)).splitlines()
    (row,) = [cells(line) for line in lines if line.startswith("  sglang ")]
    assert row[-1] == "chosen by the author, 1,200.0 tok/s in a single run"
    assert (
        "confirmation (not run: results of the baseline, and of the arm that the author chose)"
        in lines
    )
    place = lines.index("FINISHED: engine/sglang: chosen by the author, not confirmed")
    assert lines[place + 1].startswith("next: measure it yourself: `loadgen tune run` ")


def test_author_may_have_adopted_an_arm_that_misses_the_limits_of_the_study() -> None:
    of = study(ENGINE)
    failing = {"total": 1200.0, "completed": 514}
    trials = [one(of, "engine", "vllm", 1000.0, 0), one(of, "engine", "sglang", failing, 1)]
    findings = publications.published_findings(of, trials)
    said = answer(findings).text
    assert findings.confirmed is False
    assert said.startswith("FINISHED: engine/sglang (infeasible, success rate 51.4%, ")
    assert "): the author's choice is not allowed by its results" in said


def test_the_best_that_was_not_expected_is_not_adopted() -> None:
    of = study(ENGINE, SEQS)
    trials = [
        one(of, "engine", "vllm", 1000.0, 0),
        one(of, "engine", "sglang", 900.0, 1),
        one(of, "seqs", "max_seqs=64", 2000.0, 2),
    ]
    findings = publications.published_findings(of, trials)
    assert [step.won for step in findings.steps] == [("sglang",), (), ("engine/sglang",)]
    assert found(findings, "seqs", "max_seqs=64").verdict is Verdict.PUBLISHED


def test_stage_is_not_won_by_an_unpublished_or_failed_arm() -> None:
    of = study(ENGINE, SEQS)
    nothing = publications.published_findings(of, [one(of, "engine", "vllm", 1000.0)])
    failed = publications.published_findings(
        of,
        [
            one(of, "engine", "vllm", 1000.0),
            one(of, "engine", "sglang", Failure("crash", "no kernel", False), 1),
        ],
    )
    for findings in (nothing, failed):
        assert [step.won for step in findings.steps] == [(), (), ()]
        assert findings.steps[1].reference == "baseline"
    assert (found(nothing, "engine", "sglang").verdict, found(nothing, "engine", "sglang").why) == (
        Verdict.NOT_RUN,
        "no results published",
    )
    assert (found(failed, "engine", "sglang").verdict, found(failed, "engine", "sglang").why) == (
        Verdict.FAILED,
        "crash: no kernel",
    )


def test_runs_that_were_given_to_an_arm_count_for_it_and_their_command_is_told() -> None:
    of = study(ENGINE)
    other = planned(of, "engine", "sglang").identity
    findings = publications.published_findings(
        of, [one(of, "confirmation", "baseline", 1000.0, config=other)]
    )
    assert found(findings, "confirmation", "baseline").values == (1000.0,)
    assert found(findings, "confirmation", "baseline").why == "short: of `vllm serve X`"
    assert found(findings, "engine", "vllm").values == ()
    assert found(findings, "engine", "sglang").values == (1000.0,)


def test_where_an_arm_has_a_run_of_its_own_none_is_given_to_it() -> None:
    of = study(ENGINE)
    other = planned(of, "engine", "sglang").identity
    trials = [
        one(of, "engine", "vllm", 900.0),
        one(of, "confirmation", "baseline", 1000.0, 1, config=other),
        one(of, "confirmation", "baseline", 500.0, 2, config=other, workloads=("long",)),
    ]
    baseline = found(publications.published_findings(of, trials), "confirmation", "baseline")
    assert baseline.values == (900.0,)
    assert baseline.why == "long: of `vllm serve X`"


def test_a_stage_shows_the_runs_of_its_own_workloads() -> None:
    of = study(ENGINE)
    trials = [
        one(of, "engine", "vllm", 1000.0, 0),
        one(of, "confirmation", "baseline", 500.0, 1, workloads=("long",)),
    ]
    findings = publications.published_findings(of, trials)
    assert [list(each.runs) for each in found(findings, "engine", "vllm").trials] == [["short"]]
    assert [list(each.runs) for each in found(findings, "confirmation", "baseline").trials] == [
        ["short"],
        ["long"],
    ]


def test_arm_that_misses_the_limits_is_infeasible() -> None:
    of = study(ENGINE)
    trials = [one(of, "engine", "sglang", {"total": 1500.0, "completed": 500})]
    assert (
        found(publications.published_findings(of, trials), "engine", "sglang").verdict
        is Verdict.INFEASIBLE
    )


def test_expected_arm_of_a_drawn_stage_wins() -> None:
    of = study(JOINT)
    trials = [one(of, "joint", "baseline", 1000.0, 0), one(of, "joint", "max_seqs=128", 1100.0, 1)]
    findings = publications.published_findings(of, trials)
    assert findings.steps[0].won == ("max_seqs=128",)
    assert found(findings, "confirmation", "joint/max_seqs=128").values == (1100.0,)


def test_arm_has_the_share_of_its_devices_only() -> None:
    two = {"name": "two", "choice": {"pair": {"replicas": 2}}}
    of = study(two)  # of four devices, on one of which the baseline computes
    trials = [one(of, "two", "baseline", 1000.0, 0), one(of, "two", "pair", 800.0, 1)]
    findings = publications.published_findings(of, trials)
    assert found(findings, "two", "baseline").values == (1000.0,)
    assert found(findings, "two", "pair").values == (1600.0,)
    both = [one(of, "two", "pair", {"total": 1500.0, "loadgen": {"servers": 2}})]
    assert (
        found(publications.published_findings(of, both), "two", "pair").planned.spec.replicas == 2
    )


def test_study_is_infeasible_if_every_result_misses_limits() -> None:
    of = study(ENGINE)
    half = {"completed": 514}
    findings = publications.published_findings(
        of, [one(of, "engine", "vllm", half, 0), one(of, "engine", "sglang", half, 1)]
    )
    assert findings.nothing_feasible
    assert not found(findings, "engine", "vllm").feasible
    better = publications.published_findings(
        of, [one(of, "engine", "vllm", half, 0), one(of, "engine", "sglang", 900.0, 1)]
    )
    assert not better.nothing_feasible
