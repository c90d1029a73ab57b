"""An arm is its changes to a baseline; its identity does not depend on how its command is
written.
"""

import dataclasses
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.plan.study_engines import StudyEngines, identity
from loadgen.lab.study.spec.arm_spec import baseline
from loadgen.lab.study.spec.stages import Change
from loadgen.lab.study.spec.strict_model import convert
from tests.helpers.study_files import study

VLLM = {
    "version": "0.17.1",
    "knobs": {"context_len": 4096},
    "raw": ["--seed 1", "--enforce-eager"],
    "env": {"OMP_NUM_THREADS": 2},
}
STUDY = study(
    engines={"vllm": VLLM, "sglang": {"version": "0.5.9", "knobs": {"context_len": 8192}}}
)


def change(**parts: Any) -> Change:
    return convert(parts, Change)


def test_the_baseline_begins_with_what_is_set_of_its_engine() -> None:
    arm = baseline(STUDY)
    assert (arm.engine, arm.model, arm.knobs) == ("vllm", "bf16", {"context_len": 4096})
    assert arm.words == ("--seed", "1", "--enforce-eager")
    assert arm.env == {"OMP_NUM_THREADS": "2"}


def test_knobs_and_variables_are_added_replaced_and_with_null_taken_away() -> None:
    arm = baseline(STUDY).changed(change(knobs={"max_seqs": 8}, env={"A": "b"}), STUDY)
    assert arm.knobs == {"context_len": 4096, "max_seqs": 8}
    assert arm.env == {"OMP_NUM_THREADS": "2", "A": "b"}
    arm = arm.changed(
        change(knobs={"context_len": None, "max_seqs": 9}, env={"OMP_NUM_THREADS": None}), STUDY
    )
    assert arm.knobs == {"max_seqs": 9}
    assert arm.env == {"A": "b"}


def test_a_raw_flag_takes_the_place_of_the_one_of_its_name() -> None:
    arm = baseline(STUDY).changed(change(raw=["--seed=2", "--note 'two words'"]), STUDY)
    assert arm.words == ("--seed=2", "--enforce-eager", "--note", "two words")


def test_another_engine_begins_afresh_and_keeps_model_and_place() -> None:
    before = baseline(STUDY).changed(change(model="fp8", knobs={"max_seqs": 8}, replicas=2), STUDY)
    arm = before.changed(change(engine="sglang"), STUDY)
    assert (arm.knobs, arm.words, arm.env) == ({"context_len": 8192}, (), {})
    assert (arm.model, arm.replicas, arm.devices) == ("fp8", 2, ("0", "1", "2", "3"))
    assert before.changed(change(engine="vllm"), STUDY) == before


def test_another_engine_keeps_the_width_that_the_model_needs() -> None:
    wide = baseline(STUDY).changed(
        change(knobs={"tensor_parallel": 2, "pipeline_parallel": 2, "max_seqs": 8}), STUDY
    )
    arm = wide.changed(change(engine="sglang"), STUDY)
    assert arm.knobs == {"tensor_parallel": 2, "pipeline_parallel": 2, "context_len": 8192}
    assert arm.width == 4
    assert wide.changed(change(engine="sglang", knobs={"tensor_parallel": None}), STUDY).width == 2
    own = study(
        engines={"vllm": VLLM, "sglang": {"version": "0.5.9", "knobs": {"tensor_parallel": None}}}
    )
    assert (
        baseline(own)
        .changed(change(knobs={"tensor_parallel": 2}), own)
        .changed(change(engine="sglang"), own)
        .width
        == 1
    )


def test_replicas_share_all_devices_unless_some_are_named() -> None:
    arm = baseline(STUDY).changed(change(replicas=2), STUDY)
    assert arm.shares == [("0", "1"), ("2", "3")]
    arm = baseline(STUDY).changed(change(replicas=2, devices=[2, "3"]), STUDY)
    assert arm.shares == [("2",), ("3",)]
    served = StudyEngines(STUDY).launches(arm)
    assert [launch.env["CUDA_VISIBLE_DEVICES"] for launch in served] == ["2", "3"]
    assert baseline(STUDY).shares == [()]


def test_overrides_count_the_changed_settings() -> None:
    arm = baseline(STUDY)
    more = arm.changed(
        change(knobs={"max_seqs": 8}, raw=["--x"], env={"A": "b"}, replicas=2), STUDY
    )
    assert (arm.overrides, more.overrides) == (4, 8)


def key(*changes: dict[str, Any]) -> str:
    arm = baseline(STUDY)
    for each in changes:
        arm = arm.changed(change(**each), STUDY)
    return identity(arm, StudyEngines(STUDY).launches(arm))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"knobs": {"tensor_parallel": 2}}, {"raw": ["-tp 2"]}),
        ({"raw": ["-tp 2"]}, {"raw": ["--tensor-parallel-size=2"]}),
        (
            {"raw": ["--tensor_parallel_size 2", "-q fp8"]},
            {"knobs": {"quantization": "fp8", "tensor_parallel": 2}},
        ),
        ({"knobs": {"prefix_cache": True}}, {"raw": ["--enable-prefix-caching"]}),
        (
            {"knobs": {"speculative": {"method": "mtp", "num_speculative_tokens": 4}}},
            {"raw": ["""--speculative-config '{"num_speculative_tokens": 4, "method": "mtp"}'"""]},
        ),
        ({"replicas": 2}, {"replicas": 2, "devices": [0, 1, 2, 3]}),
    ],
)
def test_arms_that_say_the_same_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    "other",
    [
        {"knobs": {"tensor_parallel": 4}},
        {"model": "fp8"},
        {"engine": "sglang"},
        {"env": {"A": "b"}},
        {"replicas": 2},
        {"devices": [0]},
        {"raw": ["--seed 2"]},
    ],
)
def test_arms_that_differ_in_anything_are_not(other: dict[str, Any]) -> None:
    assert key() != key(other)


def test_identity_includes_generated_files() -> None:
    trtllm = study(engines={"vllm": VLLM, "trtllm": {"version": "1.2.0rc1"}})

    def written(on: bool) -> str:
        arm = baseline(trtllm).changed(change(engine="trtllm", knobs={"prefix_cache": on}), trtllm)
        return identity(arm, StudyEngines(trtllm).launches(arm))

    assert written(True) == written(True)
    assert written(True) != written(False)


def test_identity_includes_settings_outside_the_command() -> None:
    """Two engines that are spoken to alike, a number of servers, devices that an engine is not
    told.
    """
    both = study(engines={"vllm": {"version": "0.9.1"}, "vllm-ascend": {"version": "0.9.1"}})
    begun = baseline(both)
    found = []
    for each in (
        begun,
        begun.changed(change(engine="vllm-ascend"), both),
        begun.changed(change(replicas=2), both),
        begun.changed(change(devices=[0]), both),
    ):
        launch = dataclasses.replace(StudyEngines(both).launches(each)[0], env={})
        found.append(identity(each, [launch]))
    assert len(set(found)) == 4
    bare = study(hardware={"name": "no accelerators"})
    one, two = (baseline(bare).changed(change(replicas=replicas), bare) for replicas in (1, 2))
    assert identity(one, StudyEngines(bare).launches(one)) != identity(
        two, StudyEngines(bare).launches(two)
    )


def test_a_variable_that_says_what_a_knob_says_is_refused() -> None:
    older = study(engines={"vllm": {"version": "0.11.0"}})
    begun = baseline(older).changed(change(env={"VLLM_ATTENTION_BACKEND": "FLASHINFER"}), older)
    assert StudyEngines(older).launches(begun)[0].env["VLLM_ATTENTION_BACKEND"] == "FLASHINFER"
    twice = begun.changed(change(knobs={"attention_backend": "XFORMERS"}), older)
    with pytest.raises(
        BadInput, match="VLLM_ATTENTION_BACKEND: a knob or a flag sets the same; set it once"
    ):
        StudyEngines(older).launches(twice)


def test_the_version_that_is_expected_is_spoken_to() -> None:
    older = study(engines={"vllm": {"version": "0.11.0"}})
    arm = baseline(older).changed(change(knobs={"attention_backend": "FLASHINFER"}), older)
    (launch,) = StudyEngines(older).launches(arm)
    assert launch.env["VLLM_ATTENTION_BACKEND"] == "FLASHINFER"
    assert StudyEngines(older).engine(arm).version() == "0.11.0"


def test_variables_stand_beside_the_engines_own_and_may_replace_them() -> None:
    arm = baseline(STUDY).changed(change(env={"DO_NOT_TRACK": "0"}), STUDY)
    (launch,) = StudyEngines(STUDY).launches(arm)
    assert (launch.env["OMP_NUM_THREADS"], launch.env["DO_NOT_TRACK"]) == ("2", "0")
    assert launch.env["VLLM_SERVER_DEV_MODE"] == "1"


def test_engine_of_an_arm_has_its_probes_and_knobs() -> None:
    engine = StudyEngines(STUDY).engine(baseline(STUDY))
    assert engine.name == "vllm"
    assert engine.probes.health == "/health"
    assert engine.knobs()["max_seqs"] == "--max-num-seqs"
