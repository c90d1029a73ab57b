"""What an objective needs of a plan: the devices of each arm, and percentiles that are reported."""

from typing import Any

import pytest

from loadgen.lab.study.spec.strict_model import AtFault
from tests.helpers.study_files import planned, step

QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}


def refusal(*stages: dict[str, Any], **parts: Any) -> str:
    with pytest.raises(AtFault) as refused:
        planned(*stages, **parts)
    return str(refused.value)


def test_accelerators_of_an_arm_are_those_of_its_groups_copies_and_replicas() -> None:
    arms = {
        "wide": {"knobs": {"tensor_parallel": 2, "pipeline_parallel": 2}},
        "copied": {"knobs": {"tensor_parallel": 2, "data_parallel": 2}},
        "attention": {"knobs": {"tensor_parallel": 2, "attention_data_parallel": 2}},
        "flag": {
            "engine": "sglang",
            "knobs": {"tensor_parallel": 2, "data_parallel": 2},
            "raw": ["--enable-dp-attention"],
        },
        "two": {"replicas": 2, "devices": ["0", "1"]},
    }
    made = step({"name": "widths", "choice": arms})
    assert {arm.name: arm.spec.devices_used(8) for arm in made.arms} == {
        "baseline": 1,
        "wide": 4,
        "copied": 4,
        "attention": 2,
        "flag": 2,
        "two": 2,
    }


def test_the_percentile_of_the_objective_must_be_reported() -> None:
    loads = {"short": {"workload": "short", "metric_percentiles": "90"}, "long": "long"}
    said = refusal(
        QUANTIZED, workloads=loads, objective={"metric": "ttft_p99", "workload": "short"}
    )
    assert said == (
        "workloads.short: does not report p99, which ttft_p99 needs; add 99 to its "
        "metric_percentiles"
    )
    planned(QUANTIZED, workloads=loads, objective={"metric": "ttft_p50", "workload": "short"})


@pytest.mark.parametrize(
    ("metric", "counts"),
    [
        ("total_tps_per_box", "counts all servers that fit on the machine"),
        ("output_tps_per_gpu", "is that of each device"),
        ("e2el_p50", "does not count them, so more may win"),
    ],
)
def test_a_stage_whose_arms_use_different_numbers_of_devices_says_so(
    metric: str, counts: str
) -> None:
    wider = {"name": "width", "grid": {"tensor_parallel": [2, 4]}}
    objective = {"metric": metric, "workload": "short"}
    assert step(wider, objective=objective).notes == (
        f"its arms use 1, 2 and 4 devices: {metric} {counts}",
    )
    assert step(QUANTIZED, objective=objective).notes == ()
