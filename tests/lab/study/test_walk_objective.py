"""What decides a study, and whether anything can be decided."""

from typing import Any

import pytest

from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.execute.trial import TrialRequest
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, arm, noise, walked

SEQS = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
REPEATS = {"decision": {"repeats": {"least": 2, "most": 4}}}


@pytest.mark.parametrize("stage", [QUANTIZED, SEQS])
def test_a_study_that_can_detect_only_effects_above_a_half_ends_and_says_so(stage: Any) -> None:
    starts = {0: 1000.0, 1: 1100.0, 2: 1300.0}
    found = walked(study(stage, **REPEATS), lambda request: starts[request.block])
    assert [step.step.name for step in found.steps] == ["noise"]
    assert found.open.startswith(
        f"{stage['name']}: starts of the same arm differ by 13.3%, so only effects of "
    )
    assert found.open.endswith("; use longer workloads, a quieter machine or more repeats")


@pytest.mark.parametrize("metric", ["ttft_p99", "tpot_p50", "e2el_p99"])
def test_a_percentile_of_a_latency_may_decide(metric: str) -> None:
    name = f"{'median' if metric.endswith('p50') else 'p99'}_{metric[:-4]}_ms"

    def truth(request: TrialRequest) -> Came:
        return {name: (400.0 if "fp8" in request.arm else 500.0) * noise(request)}

    objective = {"metric": metric, "workload": "short"}
    found = walked(study(QUANTIZED, objective=objective, **REPEATS), truth)
    fp8 = arm(found, "quantization", "fp8")
    assert fp8.verdict is Verdict.ADOPTED
    assert fp8.values[0] == pytest.approx(400, rel=0.02)
