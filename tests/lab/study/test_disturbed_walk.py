"""Starts that others disturbed are repeated, and what they lost decides nothing."""

import math

from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.execute.trial import Failure, TrialRequest
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, arm, noise, verdicts, walked

QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
REPEATS = {"decision": {"repeats": {"least": 2, "most": 4}}}
DETERMINISTIC = Failure("oom_kv", "No available memory for the cache blocks", transient=False)


def disturbed(total: float, cores: float, *, quiet: bool = True) -> Came:
    """A run beside which other processes used so many cores."""
    found = {"others_cores": cores, "cores": 2, "quiet": quiet}
    return {"total": total, "loadgen": {"disturbance": found}}


def test_disturbed_start_is_repeated_and_does_not_count() -> None:
    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm and request.block == 0 and request.attempt < 2:
            return disturbed(400.0, 1.0)
        return (1200.0 if "fp8" in request.arm else 1000.0) * noise(request)

    found = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert [(each.request.block, each.request.attempt) for each in found.trials] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]
    assert [each.request.attempt for each in found.counted] == [2, 0]
    assert min(found.values) > 4 * 1100


def test_start_that_is_always_disturbed_counts_where_it_was_disturbed_least() -> None:
    lost = (0.9, 0.4, 1.2, 0.8)

    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm and request.block == 0:
            return disturbed(700.0 + request.attempt, lost[request.attempt])
        return (1200.0 if "fp8" in request.arm else 1000.0) * noise(request)

    found = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert sum(each.request.block == 0 for each in found.trials) == 4
    assert found.values[0] == 4 * 701.0


def test_start_on_a_machine_that_was_never_quiet_is_not_repeated() -> None:
    def truth(request: TrialRequest) -> Came:
        return disturbed(
            (1200.0 if "fp8" in request.arm else 1000.0) * noise(request), 0.5, quiet=False
        )

    found = walked(study(QUANTIZED, **REPEATS), truth)
    assert all(each.request.attempt == 0 for each in found.trials)
    assert verdicts(found, "quantization")["fp8"] == "adopted"


def test_an_arm_that_was_disturbed_alone_is_neither_adopted_nor_worse() -> None:
    def truth(request: TrialRequest) -> Came:
        came = (1200.0 if "fp8" in request.arm else 1000.0) * noise(request)
        return (
            disturbed(came * 0.6, 1.0, quiet=False)
            if ("fp8" in request.arm, request.block) == (True, 1)
            else came
        )

    found = arm(walked(study(QUANTIZED, **REPEATS), truth), "quantization", "fp8")
    assert found.verdict is Verdict.NOT_SIGNIFICANT
    assert found.reason.endswith("the machine was too busy")
    assert found.comparison is not None
    assert found.comparison.low < 0
    assert found.comparison.high == math.inf


def test_failure_is_no_disturbance() -> None:
    def truth(request: TrialRequest) -> Came:
        if "fp8" in request.arm:
            return disturbed(400.0, 1.0) if request.attempt == 0 else DETERMINISTIC
        return 1000.0 * noise(request)

    assert verdicts(walked(study(QUANTIZED, **REPEATS), truth), "quantization")["fp8"] == "failed"
