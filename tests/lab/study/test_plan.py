"""The plan of a study: its starts, their order and the winners that it expects."""

from typing import Any

import pytest

from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.spec.strict_model import AtFault
from tests.helpers.study_files import commands, planned, step, study

ENGINES = {"name": "engine", "choice": {"a": {}, "b": {"engine": "sglang"}}}
QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
CACHED = {"name": "cache", "choice": {"off": {"knobs": {"prefix_cache": False}}}}
SEQS = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
VLLM = "vllm serve Qwen/Qwen3-8B"


def refusal(*stages: dict[str, Any], **parts: Any) -> str:
    with pytest.raises(AtFault) as refused:
        planned(*stages, **parts)
    return str(refused.value)


# -- steps


def test_an_engine_that_cannot_empty_its_caches_is_started_for_each_workload() -> None:
    made = planned(
        SEQS,
        engines={"llamacpp": {}},
        models={"m": "model.gguf"},
        baseline={"engine": "llamacpp", "model": "m"},
    )
    alone, both = made.steps[0].arms[0], made.steps[-1].arms[0]
    assert (alone.batches, both.batches) == ((("short",),), (("short",), ("long",)))
    assert (
        both.seconds[0] - sum(span.min_s for span in both.loads.values() if span)
        == 2 * both.until_ready.min_s
    )


def test_the_baseline_is_held_against_itself_first_and_against_the_winner_last() -> None:
    made = planned(QUANTIZED | {"expect": "fp8"})
    assert [step.name for step in made.steps] == ["noise", "quantization", "confirmation"]
    noise, _, confirmation = made.steps
    assert (noise.min_starts, noise.max_starts, commands(noise)) == (3, 3, {"baseline": VLLM})
    assert commands(confirmation) == {"baseline": VLLM, "quantization/fp8": f"{VLLM}-FP8"}


def test_the_other_workloads_are_run_in_the_end_and_where_a_stage_asks_for_them() -> None:
    made = planned(QUANTIZED | {"expect": "fp8"}, SEQS | {"workloads": ["long"]})
    assert [step.arms[0].workloads for step in made.steps] == [
        ("short",),
        ("short",),
        ("short", "long"),
        ("short", "long"),
    ]


def test_stage_without_arms_starts_no_server() -> None:
    for stage, why in (
        (SEQS | {"where": "max_seqs > 1000"}, "no combination meets its condition `where`"),
        ({"name": "seqs", "choice": {"as it is": {}}}, "it tries only the arm that it starts from"),
    ):
        found = step(stage)
        assert (found.starts, found.seconds) == ((0, 0), (0.0, 0.0))
        assert found.notes == (f"{why}: nothing is started",)


def test_without_a_winner_the_baseline_alone_is_confirmed() -> None:
    assert list(commands(planned(SEQS).steps[-1])) == ["baseline"]
    assert list(commands(planned(ENGINES | {"expect": "a"}).steps[-1])) == ["baseline"]


def test_every_stage_runs_the_arm_it_starts_from_beside_its_own() -> None:
    found = step(SEQS)
    assert commands(found) == {
        "baseline": VLLM,
        "max_seqs=64": f"{VLLM} --max-num-seqs 64",
        "max_seqs=128": f"{VLLM} --max-num-seqs 128",
    }
    assert [arm.start for arm in found.arms] == [True, False, False]


def test_an_arm_that_is_served_as_the_one_it_starts_from_stands_for_it() -> None:
    found = step(ENGINES)
    assert [(arm.name, arm.start) for arm in found.arms] == [("a", True), ("b", False)]


# -- where a stage starts


def test_a_stage_starts_from_the_winner_that_is_expected() -> None:
    found = step(QUANTIZED | {"expect": "fp8"}, SEQS)
    assert found.starts_from == ("quantization/fp8",)
    assert commands(found)["max_seqs=64"] == f"{VLLM}-FP8 --max-num-seqs 64"


def test_stage_without_expected_winner_keeps_its_start() -> None:
    assert step(QUANTIZED, SEQS).starts_from == ("baseline",)


def test_a_stage_may_start_from_the_baseline_or_from_any_arm_of_an_earlier_one() -> None:
    won = QUANTIZED | {"expect": "fp8"}
    assert (
        commands(step(won, SEQS | {"from": "baseline"}))["max_seqs=64"]
        == f"{VLLM} --max-num-seqs 64"
    )
    found = step(QUANTIZED, SEQS | {"from": "quantization/fp8"})
    assert found.starts_from == ("quantization/fp8",)
    assert commands(found)["max_seqs=64"] == f"{VLLM}-FP8 --max-num-seqs 64"


def test_arms_that_are_kept_continue() -> None:
    found = step(ENGINES | {"expect": ["b", "a"]}, QUANTIZED, keep=2)
    assert commands(found) == {
        "engine/b": "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B",
        "engine/a": VLLM,
        "fp8 on engine/b": "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B-FP8",
        "fp8 on engine/a": f"{VLLM}-FP8",
    }


# -- grids


def test_a_grid_has_every_combination_that_its_condition_holds_of() -> None:
    grid = {"tensor_parallel": [1, 2, 4], "replicas": [1, 2, 4]}
    found = step({"name": "s", "grid": grid, "where": "tensor_parallel * replicas == devices"})
    assert [arm.name for arm in found.arms][1:] == [
        "tensor_parallel=1 replicas=4",
        "tensor_parallel=2 replicas=2",
        "tensor_parallel=4 replicas=1",
    ]
    assert [len(arm.launches) for arm in found.arms] == [1, 4, 2, 1]


def test_null_in_a_grid_is_the_engines_own_default() -> None:
    found = step({"name": "s", "grid": {"prefix_cache": [None, True, False]}})
    assert commands(found) == {
        "prefix_cache=default": VLLM,
        "prefix_cache=true": f"{VLLM} --enable-prefix-caching",
        "prefix_cache=false": f"{VLLM} --no-enable-prefix-caching",
    }


def test_models_may_be_values_of_a_grid() -> None:
    found = step({"name": "s", "grid": {"model": ["bf16", "fp8"]}})
    assert commands(found) == {"model=bf16": VLLM, "model=fp8": f"{VLLM}-FP8"}
    assert "stages.0.grid.model: unknown model 'awq'" in refusal(
        {"name": "s", "grid": {"model": ["awq"]}}
    )


@pytest.mark.parametrize("replicas", [0, 1.5, "two", None])
def test_replicas_in_a_grid_are_numbers_of_servers(replicas: object) -> None:
    message = f"stages.0.grid.replicas: {replicas!r} is not a number of servers; give 1 or more"
    assert refusal({"name": "s", "grid": {"replicas": [replicas]}}) == message


def test_a_grid_has_its_bounds() -> None:
    grid = {name: list(range(1, 41)) for name in ("max_seqs", "max_batched_tokens", "context_len")}
    assert "stages.0.grid: 64000 combinations" in refusal({"name": "s", "grid": grid})


# -- arms that are alike


def test_arms_of_a_stage_that_are_served_alike_are_refused_with_both_names() -> None:
    raw = {"x": {"knobs": {"tensor_parallel": 2}}, "y": {"raw": ["-tp=2"]}}
    assert refusal({"name": "s", "choice": raw}).startswith(
        "stages.0.choice.y: y is served in the same way as x; leave one"
    )


def test_an_arm_that_an_earlier_stage_had_is_named() -> None:
    found = step(QUANTIZED, {"name": "again", "choice": {"same": {"model": "fp8"}}})
    assert {arm.name: arm.same_as for arm in found.arms} == {
        "baseline": None,
        "same": "quantization/fp8",
    }


# -- together


def test_winners_of_earlier_stages_are_tried_together() -> None:
    stages = [QUANTIZED | {"expect": "fp8"}, CACHED | {"expect": "off", "from": "baseline"}]
    found = step(*stages, {"name": "both", "interactions": ["quantization", "cache"]})
    assert commands(found) == {
        "baseline": VLLM,
        "quantization && cache": f"{VLLM}-FP8 --no-enable-prefix-caching",
    }


def test_interactions_of_three_stages_leave_each_out() -> None:
    stages = [
        QUANTIZED | {"expect": "fp8"},
        CACHED | {"expect": "off"},
        SEQS | {"expect": "max_seqs=64"},
    ]
    found = step(*stages, {"name": "all", "interactions": ["quantization", "cache", "seqs"]})
    assert commands(found) == {
        "baseline": VLLM,
        "quantization && cache && seqs": f"{VLLM}-FP8 --max-num-seqs 64 --no-enable-prefix-caching",
        "cache && seqs": f"{VLLM} --max-num-seqs 64 --no-enable-prefix-caching",
        "quantization && seqs": f"{VLLM}-FP8 --max-num-seqs 64",
        "quantization && cache": f"{VLLM}-FP8 --no-enable-prefix-caching",
    }


def test_stages_without_a_winner_have_no_part_in_it() -> None:
    found = step(
        QUANTIZED | {"expect": "fp8"},
        CACHED,
        {"name": "both", "interactions": ["quantization", "cache"]},
    )
    assert list(commands(found)) == ["baseline"]
    assert found.notes == ("fewer than two of these stages have a winner",)


def test_a_combination_that_an_engine_refuses_is_left_out_with_its_reason() -> None:
    fast = {
        "name": "fast",
        "choice": {"fast": {"knobs": {"performance_mode": "throughput"}}},
        "expect": "fast",
    }
    engine = {"name": "e", "from": "baseline", "choice": {"b": {"engine": "trtllm"}}, "expect": "b"}
    found = step(
        engine, fast | {"from": "baseline"}, {"name": "both", "interactions": ["e", "fast"]}
    )
    assert list(commands(found)) == ["baseline"]
    assert "e && fast is left out: " in found.notes[0]
    assert "trtllm has no such knob" in found.notes[0]


def test_a_stage_stands_once_in_a_combination() -> None:
    assert "stages.1.interactions: seqs is named twice" in refusal(
        SEQS, {"name": "x", "interactions": ["seqs", "seqs"]}
    )


# -- drawn as it goes

JOINT = {
    "name": "joint",
    "joint": {
        "max_seqs": {"log2": [16, 64]},
        "max_batched_tokens": {"int": [2048, 8192], "step": 1024},
        "prefix_cache": {"choice": [True, False]},
    },
    "trials": 5,
}


def test_a_joint_stage_starts_up_to_so_many_arms() -> None:
    found = step(JOINT)
    assert (found.kind, found.trials, list(commands(found))) == ("joint", 5, ["baseline"])
    # the start and the best of what was drawn, as often as decisions take, and each trial once
    assert found.starts == (2 * 2 + 5, 2 * 7 + 5)


def test_expected_draw_continues() -> None:
    won = {"max_seqs": 32, "max_batched_tokens": 4096, "prefix_cache": False}
    made = planned(JOINT | {"expect": won}, QUANTIZED)
    assert commands(made.steps[2])["fp8"] == (
        f"{VLLM}-FP8 --max-num-batched-tokens 4096 --max-num-seqs 32 --no-enable-prefix-caching"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_seqs", 33),
        ("max_seqs", 128),
        ("max_batched_tokens", 4000),
        ("prefix_cache", 3),
        ("kv_dtype", "fp8"),
    ],
)
def test_expected_value_outside_the_draw_is_refused(name: str, value: object) -> None:
    assert f"stages.0.expect.{name}: {value!r} is never drawn" in refusal(
        JOINT | {"expect": {name: value}}
    )


def test_the_ends_of_its_ranges_are_knobs_and_values_of_the_engine() -> None:
    assert "stages.0.joint.max_seq: unknown knob; did you mean max_seqs?" in refusal(
        JOINT | {"joint": {"max_seq": {"log2": [16, 64]}}}
    )
    wide = {"tensor_parallel": {"log2": [1, 8]}}
    assert "stages.0.joint.tensor_parallel: 8 devices wide, and each replica has 4" in refusal(
        JOINT | {"joint": wide}
    )


# -- the box


def test_more_devices_than_the_box_has_are_refused() -> None:
    assert "stages.0.choice.x: 5 devices, and the hardware has 4" in refusal(
        {"name": "s", "choice": {"x": {"devices": [0, 1, 2, 3, 4]}}}
    )
    assert "4 devices cannot be shared equally by 3 replicas" in refusal(
        {"name": "s", "grid": {"replicas": [3]}}
    )


def test_an_engine_that_does_not_answer_at_the_host_is_refused_there() -> None:
    engines = {"vllm": {"version": "0.17.1"}, "mindie": {"version": "2.1RC1"}}
    stage = {"name": "s", "choice": {"x": {"engine": "mindie"}}}
    message = (
        "engines.mindie.host: MindIE does not answer at 127.0.0.1; give an address of this "
        "machine's network"
    )
    assert refusal(stage, engines=engines) == message


def test_hub_name_that_an_engine_does_not_download_is_refused_at_its_arm() -> None:
    engines = {"vllm": {"version": "0.17.1"}, "mindie": {"version": "2.1RC1", "host": "10.0.0.1"}}
    message = refusal({"name": "s", "choice": {"x": {"engine": "mindie"}}}, engines=engines)
    assert message.startswith(
        "stages.0.choice.x: model: MindIE downloads nothing, and Qwen/Qwen3-8B is not a folder; "
    )


def test_a_server_is_no_wider_than_its_devices() -> None:
    wide = {
        "name": "s",
        "grid": {"tensor_parallel": [2], "pipeline_parallel": [2], "replicas": [2]},
    }
    assert "stages.0.grid.tensor_parallel: 4 devices wide, and each replica has 2" in refusal(wide)
    assert refusal(wide | {"grid": {"tensor_parallel": [8]}}).startswith(
        "stages.0.grid.tensor_parallel: 8 devices wide"
    )


def test_a_workload_that_no_context_holds_is_noted() -> None:
    found = step({"name": "s", "grid": {"context_len": [1024, 8192]}, "workloads": ["long"]})
    assert [arm.notes for arm in found.arms] == [
        (),
        ("long asks 4,200 tokens of a context of 1,024",),
        (),
    ]


def test_a_workload_that_the_engines_own_context_does_not_hold_is_noted() -> None:
    found = step(
        {"name": "s", "choice": {"x": {"engine": "mindie"}}, "workloads": ["very-long"]},
        engines={
            "vllm": {"version": "0.17.1"},
            "mindie": {"version": "2.1RC1", "host": "10.0.0.1"},
        },
        models={"bf16": "./Qwen3-8B"},
        workloads={"short": "short", "very-long": "very-long"},
    )
    assert [arm.notes for arm in found.arms] == [
        (),
        ("very-long asks 32,100 tokens of a context of 8,192",),
    ]


# -- order and time


def test_each_block_has_every_arm_once_and_its_order_is_the_seeds() -> None:
    found = step({"name": "s", "grid": {"max_seqs": list(range(1, 11))}})
    blocks = [found.order(seed, block) for seed in (1, 2) for block in (0, 1)]
    assert all(sorted(block) == sorted(arm.name for arm in found.arms) for block in blocks)
    assert len({tuple(block) for block in blocks}) == 4
    assert found.order(1, 0) == blocks[0]


def test_the_time_is_that_of_all_starts_and_their_workloads() -> None:
    parts: dict[str, Any] = {
        "decision": {"repeats": {"least": 2, "most": 3}},
        "hardware": {"name": "b", "devices": 2},
    }
    parts["workloads"] = {"short": {"duration": 100, "request_rate": 1}}
    made = plan(study(SEQS, **parts), lambda engine, model: 20.0)
    assert [step.seconds for step in made.steps] == [(360, 360), (720, 1080), (240, 360)]
    assert made.seconds == (1320, 1800)
    assert made.gpu_hours == (1320 / 3600 * 2, 1800 / 3600 * 2)
    assert made.without_estimate == []


@pytest.mark.parametrize(
    ("stage", "rounds", "waits"),
    [
        (SEQS, 1, 3 + 3 * 3 + 3),  # each start: noise, three arms, the baseline
        (SEQS, 2, (3 + 3 + 3) * 2),  # each round of a block
        (
            {
                "name": "j",
                "joint": {"max_seqs": {"log2": [64, 256]}},
                "trials": 4,
                "sampler": "random",
            },
            1,
            3 + 10 + 3,
        ),
    ],
)
def test_time_of_waits_for_a_quiet_machine_is_bounded(
    stage: dict[str, Any], rounds: int, waits: int
) -> None:
    decision = {"repeats": {"least": 2, "most": 3}, "rounds": rounds}
    made = plan(study(stage, hardware={"name": "b"}, decision=decision, budget={"quiet_wait": 7.0}))
    assert made.max_quiet_wait_s == 7.0 * waits


def test_workload_without_estimate_is_named() -> None:
    made = planned(SEQS, workloads={"short": {"workload": "short", "dataset_name": "prose"}})
    assert made.without_estimate == ["short"]
    assert made.steps[0].seconds == (180, 900)


# -- what cannot start, or changes nothing


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--step-bas-ms 5", "--step-bas-ms: unknown; did you mean --step-base-ms?"),
        ("--step-base-ms fast", "--step-base-ms: 'fast' is not a number"),
        ("--step-base-ms 0", "--step-base-ms: 0 is out of range; give 0.001 or more"),
        ("--num-kv-tokens 10", "--num-kv-tokens: 10 is less than --max-model-len 65536"),
        ("--fault nothing", "--fault: unknown fault 'nothing'"),
        ("--help", "--help: unknown"),
    ],
)
def test_flags_that_the_simulator_refuses_are_refused_in_one_line(flag: str, message: str) -> None:
    simulated = {
        "engines": {"sim": {}},
        "models": {"m": "sim"},
        "baseline": {"engine": "sim", "model": "m"},
    }
    text = refusal({"name": "s", "choice": {"a": {"raw": [flag]}}}, **simulated)
    assert text.startswith(f"stages.0.choice.a: {message}")
    assert "\n" not in text


def test_simulated_crash_at_the_start_is_planned() -> None:
    simulated = {
        "engines": {"sim": {}},
        "models": {"m": "sim"},
        "baseline": {"engine": "sim", "model": "m"},
    }
    assert commands(step({"name": "s", "choice": {"a": {"raw": ["--fault oom_kv"]}}}, **simulated))


def test_arm_whose_values_change_nothing_is_noted() -> None:
    baseline = {"engine": "vllm", "model": "bf16", "knobs": {"max_seqs": 64}}
    notes = {arm.name: arm.notes for arm in step(SEQS, baseline=baseline).arms}
    assert notes == {
        "max_seqs=64": ("its values change nothing: it is served like baseline",),
        "max_seqs=128": (),
    }
    assert [arm.notes for arm in step(ENGINES).arms] == [(), ()]  # it names the arm it starts from


def test_arm_that_is_the_baseline_again_is_named() -> None:
    found = step(
        QUANTIZED | {"expect": "fp8"}, {"name": "back", "choice": {"bf16": {"model": "bf16"}}}
    )
    assert {arm.name: arm.same_as for arm in found.arms} == {
        "quantization/fp8": None,
        "bf16": "noise/baseline",
    }
