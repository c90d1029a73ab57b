"""The decisions of a study follow from its trials: adopted and excluded arms, with reasons."""

from typing import Any

import pytest

from loadgen.lab.study.execute.findings import Findings, Verdict
from loadgen.lab.study.execute.trial import INVALID, Failure, TrialRequest
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.planner import Planner
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, arm, levels, noise, trial, verdicts, walked

SEQS = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
CACHE = {"name": "cache", "choice": {"off": {"knobs": {"prefix_cache": False}}}}
QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
REPEATS = {"decision": {"repeats": {"least": 2, "most": 4}}}
DETERMINISTIC = Failure("oom_kv", "No available memory for the cache blocks", transient=False)
PASSING = Failure("killed", "a worker died", transient=True)


# -- who wins


def test_better_arm_is_adopted_and_confirmed_by_fresh_starts() -> None:
    found = walked(study(QUANTIZED, **REPEATS), levels(fp8=1200.0))
    assert verdicts(found, "quantization") == {"baseline": "reference", "fp8": "adopted"}
    assert verdicts(found, "confirmation") == {
        "baseline": "reference",
        "quantization/fp8": "adopted",
    }
    last = arm(found, "confirmation", "quantization/fp8")
    assert last.comparison is not None
    assert last.comparison.effect == pytest.approx(0.2, abs=0.01)
    assert last.comparison.low > 0.01
    assert set(last.trials[0].runs) == {"short", "long"}


def test_the_next_stage_starts_from_the_winner() -> None:
    found = walked(study(QUANTIZED, CACHE, **REPEATS), levels(fp8=1200.0))
    assert list(verdicts(found, "cache")) == ["quantization/fp8", "off"]


def test_an_arm_that_is_alike_is_not_adopted_and_the_baseline_stays() -> None:
    found = walked(study(QUANTIZED, **REPEATS), levels())
    assert verdicts(found, "quantization")["fp8"] == "not significant"
    assert list(verdicts(found, "confirmation")) == ["baseline"]


def test_an_arm_that_is_worse_is_called_so_and_started_no_more() -> None:
    found = walked(study(SEQS, **REPEATS), levels(**{"max_seqs=64": 500.0, "max_seqs=128": 1010.0}))
    assert verdicts(found, "seqs")["max_seqs=64"] == "worse"
    assert len(arm(found, "seqs", "max_seqs=64").trials) == 3
    assert len(arm(found, "seqs", "max_seqs=128").trials) == 4


def test_arm_with_fewer_settings_wins_a_tie() -> None:
    two = {
        "name": "two",
        "choice": {"both": {"model": "fp8", "knobs": {"max_seqs": 64}}, "one": {"model": "fp8"}},
    }
    found = walked(study(two, **REPEATS), levels(both=1202.0, one=1200.0))
    assert verdicts(found, "two") == {"baseline": "reference", "both": "better", "one": "adopted"}


def test_keep_lets_several_go_on() -> None:
    many = SEQS | {"grid": {"max_seqs": [64, 128, 256]}}
    truth = levels(**{"max_seqs=64": 1200.0, "max_seqs=128": 1100.0, "max_seqs=256": 1050.0})
    found = walked(study(many, CACHE, keep=2, **REPEATS), truth)
    kept = next(step for step in found.steps if step.step.name == "seqs").won
    assert kept == ("max_seqs=64", "max_seqs=128")
    assert [name for name in verdicts(found, "cache") if name.startswith("seqs/")] == [
        f"seqs/{name}" for name in kept
    ]


def test_where_less_is_better_the_shorter_time_wins() -> None:
    def truth(request: TrialRequest) -> Came:
        return {"median_e2el_ms": (4000.0 if "fp8" in request.arm else 5000.0) * noise(request)}

    found = walked(
        study(QUANTIZED, objective={"metric": "e2el_p50", "workload": "short"}, **REPEATS), truth
    )
    adopted = arm(found, "quantization", "fp8")
    assert adopted.verdict is Verdict.ADOPTED
    assert adopted.comparison is not None
    assert adopted.comparison.effect == pytest.approx(0.25, abs=0.01)  # 5,000 / 4,000


def test_interactions_try_the_winners_together() -> None:
    stages = (
        QUANTIZED,
        CACHE | {"from": "baseline"},
        {"name": "all", "interactions": ["quantization", "cache"]},
    )
    found = walked(
        study(*stages, **REPEATS), levels(**{"&&": 1500.0, "fp8": 1200.0, "off": 1100.0})
    )
    assert verdicts(found, "all") == {"baseline": "reference", "quantization && cache": "adopted"}


def test_stage_ends_when_its_winner_is_known() -> None:
    many = SEQS | {"grid": {"max_seqs": [64, 128, 256]}}
    truth = levels(**{"max_seqs=64": 1200.0, "max_seqs=128": 1015.0, "max_seqs=256": 1014.0})
    found = walked(study(many, **REPEATS), truth)
    late = arm(found, "seqs", "max_seqs=128")
    assert (late.verdict, len(late.trials)) == (Verdict.NOT_SIGNIFICANT, 3)
    assert late.why.endswith("; max_seqs=64 is better")


def test_stage_goes_on_until_as_many_winners_are_known_as_it_keeps() -> None:
    many = SEQS | {"grid": {"max_seqs": [64, 128, 256]}}
    truth = levels(**{"max_seqs=64": 1200.0, "max_seqs=128": 1015.0, "max_seqs=256": 1014.0})
    found = walked(study(many, keep=2, **REPEATS), truth)
    assert len(arm(found, "seqs", "max_seqs=128").trials) == 4


@pytest.mark.parametrize(
    ("level", "spread", "reason"),
    [
        (1000.0, 0.001, "a gain of 1.0% is ruled out"),
        (1008.0, 0.002, "a gain below 1.0% is not ruled out"),
        (1008.0, 0.02, "a gain of 1.0% is neither shown nor ruled out"),
    ],
)
def test_arm_without_a_gain_says_what_is_ruled_out(
    level: float, spread: float, reason: str
) -> None:
    def truth(request: TrialRequest) -> Came:
        sign = 1 if (request.block + ("fp8" in request.arm)) % 2 else -1
        return (level if "fp8" in request.arm else 1000.0) * (1 + sign * spread)

    out = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert (out.verdict, out.why) == (Verdict.NOT_SIGNIFICANT, reason)


def test_plain_gain_is_adopted_after_two_blocks_with_the_noise_of_earlier_steps() -> None:
    found = walked(study(QUANTIZED), levels(fp8=1200.0))
    assert len(arm(found, "quantization", "fp8").trials) == 2


# -- what is out


def test_an_arm_that_fails_for_good_is_started_once_and_its_line_is_kept() -> None:
    def truth(request: TrialRequest) -> Came:
        return DETERMINISTIC if "fp8" in request.arm else 1000.0 * noise(request)

    failed = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert (failed.verdict, failed.why, len(failed.trials)) == (
        Verdict.FAILED,
        "oom_kv: No available memory for the cache blocks",
        1,
    )


@pytest.mark.parametrize("kind", ["killed", INVALID])
def test_a_failure_that_may_pass_is_tried_once_more(kind: str) -> None:
    passing = Failure(kind, "it may pass", transient=True)

    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm and request.attempt == 0:
            return passing
        return (1200.0 if "fp8" in request.arm else 1000.0) * noise(request)

    found = walked(study(QUANTIZED, **REPEATS), truth)
    adopted = arm(found, "quantization", "fp8")
    assert adopted.verdict is Verdict.ADOPTED
    assert [each.request.attempt for each in adopted.trials] == [0, 1, 0, 1]


def test_arm_that_fails_again_is_failed_without_a_value() -> None:
    def truth(request: TrialRequest) -> Came:
        return PASSING if "fp8" in request.arm else 1000.0 * noise(request)

    failed = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert (failed.verdict, failed.values, len(failed.trials)) == (Verdict.FAILED, (), 2)


def test_arm_containing_a_failed_change_is_pruned() -> None:
    def truth(request: TrialRequest) -> Came:
        return DETERMINISTIC if request.arm == "fp8" else 1000.0 * noise(request)

    more = {
        "name": "more",
        "choice": {"fp8 without cache": {"model": "fp8", "knobs": {"prefix_cache": False}}},
    }
    found = walked(study(QUANTIZED, more, **REPEATS), truth)
    pruned = arm(found, "more", "fp8 without cache")
    assert (pruned.verdict, pruned.trials) == (Verdict.PRUNED, ())
    assert "model=fp8" in pruned.why


def test_transient_failure_prunes_no_arm() -> None:
    def truth(request: TrialRequest) -> Came:
        return PASSING if request.arm == "fp8" else 1000.0 * noise(request)

    more = {
        "name": "more",
        "choice": {"fp8 without cache": {"model": "fp8", "knobs": {"prefix_cache": False}}},
    }
    found = walked(study(QUANTIZED, more, **REPEATS), truth)
    assert arm(found, "more", "fp8 without cache").trials


def test_too_few_successes_are_infeasible_however_fast() -> None:
    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm:
            return {"total": 2000.0, "completed": 514}
        return 1000.0 * noise(request)

    out = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert (out.verdict, out.why) == (
        Verdict.INFEASIBLE,
        "success rate 51.4%, at least 99.0% is required",
    )


def missing(limit: str, value: float) -> dict[str, Any]:
    return {"slo": [{"limit": limit, "value": value, "met": False}]}


def test_an_arm_beyond_its_limits_is_infeasible() -> None:
    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm:
            return {"total": 2000.0, "loadgen": missing("ttft_p99<500ms", 612.34)}
        return 1000.0 * noise(request)

    objective = {"workload": "short", "slo": "ttft_p99<500ms"}
    out = arm(
        walked(study(QUANTIZED, objective=objective, **REPEATS), truth), "quantization", "fp8"
    )
    assert (out.verdict, out.why) == (Verdict.INFEASIBLE, "ttft_p99<500ms is 612.3 ms")


def test_slower_arm_within_limits_beats_a_baseline_beyond_them() -> None:
    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm:
            return 900.0 * noise(request)
        return {"total": 1000.0 * noise(request), "loadgen": missing("ttft_p99<500ms", 612.0)}

    objective = {"workload": "short", "slo": "ttft_p99<500ms"}
    found = walked(study(QUANTIZED, objective=objective, **REPEATS), truth)
    won = arm(found, "quantization", "fp8")
    assert (won.verdict, won.why) == (Verdict.ADOPTED, "it meets limits that baseline misses")
    assert not found.nothing_feasible


def test_where_no_arm_is_within_the_limits_the_findings_say_so() -> None:
    objective = {"workload": "short", "slo": "ttft_p99<500ms"}
    found = walked(
        study(QUANTIZED, objective=objective, **REPEATS),
        lambda request: {"total": 1000.0, "loadgen": missing("ttft_p99<500ms", 612.0)},
    )
    assert found.nothing_feasible


# -- what is the same


def resolved(study_: Any, told: dict[str, dict[str, Any]], truth: Any) -> Findings:
    """What a study finds whose servers tell these configurations, by what the arm's name holds."""
    walk = Walk(study_, Planner(study_))
    while (request := walk.request) is not None:
        says = next((says for name, says in told.items() if name in request.arm), told[""])
        walk.add(
            trial(
                request,
                truth(request),
                walk.planned.workloads,
                server_config=says,
                config=walk.planned.identity,
            )
        )
    return walk.found()


def test_a_knob_that_cannot_bind_makes_an_arm_the_same_as_the_other() -> None:
    told = {
        "max_seqs=2000": {"max_num_seqs": 2000},
        "max_seqs=64": {"max_num_seqs": 64},
        "": {"max_num_seqs": 1000},
    }
    many = SEQS | {"grid": {"max_seqs": [64, 2000]}}  # of a thousand requests
    found = resolved(study(many, **REPEATS), told, levels(**{"max_seqs=64": 700.0}))
    same = arm(found, "seqs", "max_seqs=2000")
    assert (same.verdict, same.why, len(same.trials)) == (Verdict.SAME_AS, "baseline", 1)
    assert arm(found, "seqs", "max_seqs=64").verdict is Verdict.WORSE


def test_a_value_that_is_the_default_makes_an_arm_the_same() -> None:
    told = {"": {"enable_prefix_caching": False}}
    found = resolved(study(CACHE, **REPEATS), told, levels())
    # VLLM's flag says no_enable_prefix_caching: nothing told.
    assert verdicts(found, "cache")["off"] != "same as"


def test_unreported_server_config_is_not_the_same() -> None:
    found = resolved(study(SEQS, **REPEATS), {"": {"port": 1}}, levels())
    assert "same as" not in verdicts(found, "seqs").values()


# -- how far it has come


def test_a_study_that_was_interrupted_goes_on_where_it_was() -> None:
    truth = levels(fp8=1200.0)
    whole = walked(study(QUANTIZED, CACHE, **REPEATS), truth)
    starts = len(whole.trials)
    for stopped in range(starts):
        part = walked(study(QUANTIZED, CACHE, **REPEATS), truth, stopped)
        assert part.open == "not run yet"
        assert len(part.trials) == stopped
        assert all(each in whole.trials for each in part.trials)


def test_arms_that_were_not_reached_say_why() -> None:
    found = walked(study(QUANTIZED, **REPEATS), levels(), 3)
    assert arm(found, "quantization", "fp8").verdict is Verdict.NOT_RUN
    assert arm(found, "quantization", "fp8").why == "not run yet"


def test_an_arm_that_has_run_and_is_not_decided_is_open() -> None:
    found = walked(study(QUANTIZED, **REPEATS), levels(), 5)
    assert (arm(found, "quantization", "fp8").verdict, found.steps[-1].open) == (
        Verdict.OPEN,
        "not run yet",
    )


def test_a_baseline_that_fails_ends_the_study_with_its_line() -> None:
    found = walked(study(QUANTIZED, **REPEATS), lambda request: DETERMINISTIC)
    assert found.open == "noise: baseline fails, oom_kv: No available memory for the cache blocks"
    assert len(found.trials) == 1


def test_the_baseline_against_itself_gives_the_noise_before_the_first_stage() -> None:
    values = [1000.0, 1010.0, 1020.0]
    found = walked(study(QUANTIZED, **REPEATS), lambda request: values[request.block], 3)
    assert found.steps[0].noise is not None
    assert found.steps[0].noise.df == 2
    # Of ln 1000, ln 1010, ln 1020.
    assert found.steps[0].noise.sd == pytest.approx(0.0099, abs=1e-4)
    assert found.steps[1].least_effect is not None
    assert found.steps[1].least_effect > 0.03


def test_blocks_that_only_one_arm_of_a_stage_needed_count_in_its_noise() -> None:
    seqs = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}

    def truth(request: TrialRequest) -> Came:
        level = {"max_seqs=64": 500.0, "max_seqs=128": 1010.0}.get(request.arm, 1000.0)
        return level * (1 + 0.01 * (request.block % 2) * (request.arm != "baseline"))

    found = next(
        step for step in walked(study(seqs, **REPEATS), truth).steps if step.step.name == "seqs"
    )
    starts = {arm.name: len(arm.values) for arm in found.arms}
    assert starts["max_seqs=64"] < starts["max_seqs=128"] == starts["baseline"]
    assert found.noise is not None
    # Three treatments in the first blocks, two in the others: a degree of freedom of each block for
    # each rival.
    assert found.noise.df == starts["max_seqs=64"] - 1 + starts["max_seqs=128"] - 1


def test_noise_of_a_stage_whose_rivals_failed_is_that_of_the_reference() -> None:
    def truth(request: TrialRequest) -> Came:
        return DETERMINISTIC if "fp8" in request.arm else 1000.0 * (1 + 0.01 * request.block)

    found = next(
        step
        for step in walked(study(QUANTIZED, **REPEATS), truth).steps
        if step.step.name == "quantization"
    )
    assert len(found.arm("baseline").values) == 2
    assert found.noise is not None
    assert found.noise.df == 1


def test_every_block_has_an_order_of_its_own() -> None:
    seen: dict[int, list[str]] = {}

    def truth(request: TrialRequest) -> Came:
        if request.step == "seqs":
            seen.setdefault(request.block, []).append(request.arm)
        return 1000.0 * noise(request)

    walked(
        study(
            SEQS | {"grid": {"max_seqs": [64, 128, 256, 512]}}, decision={"repeats": {"most": 7}}
        ),
        truth,
    )
    assert len({tuple(order) for order in seen.values()}) > 1
    assert {frozenset(order) for order in list(seen.values())[:2]} == {frozenset(seen[0])}


# -- combinations that are drawn


JOINT = {
    "name": "joint",
    "joint": {"max_seqs": {"log2": [16, 1024]}, "max_batched_tokens": {"log2": [2048, 16384]}},
}


def peak(request: TrialRequest) -> Came:
    """Best at 256 sequences and 8,192 tokens."""
    if "max_seqs=" not in request.arm:
        return 500.0 * noise(request)
    said = dict(part.split("=") for part in request.arm.split("/")[-1].split())
    off = abs(int(said["max_seqs"]).bit_length() - 9) + abs(
        int(said["max_batched_tokens"]).bit_length() - 14
    )
    return 1000.0 * 0.8**off * noise(request)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_joint_stage_tries_what_a_sampler_draws_and_then_the_best_in_blocks(sampler: str) -> None:
    found = walked(study(JOINT | {"trials": 12, "sampler": sampler}, **REPEATS), peak)
    drawn = next(step for step in found.steps if step.step.kind == "drawn")
    assert 2 <= len(drawn.arms) <= 12  # what is drawn twice is started once
    best = max(drawn.arms, key=lambda arm: arm.values[0])
    assert drawn.won == (best.name,)
    assert verdicts(found, "joint") == {"baseline": "reference", best.name: "adopted"}


def test_a_joint_stage_draws_the_same_when_it_is_walked_again() -> None:
    first, second = (walked(study(JOINT | {"trials": 8}, **REPEATS), peak) for _ in range(2))
    assert [each.request for each in first.trials] == [each.request for each in second.trials]


def test_joint_stage_without_usable_draws_keeps_the_baseline() -> None:
    def truth(request: TrialRequest) -> Came:
        return DETERMINISTIC if "max_seqs=" in request.arm else 1000.0 * noise(request)

    found = walked(study(JOINT | {"trials": 4}, **REPEATS), truth)
    assert {
        str(arm.verdict) for step in found.steps if step.step.kind == "drawn" for arm in step.arms
    } == {"failed"}
    assert list(verdicts(found, "confirmation")) == ["baseline"]
