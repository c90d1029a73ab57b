"""An arm that hangs under load fails as such."""

from pathlib import Path

from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.plan.planner import Planner
from tests.helpers.study_files import study

LOAD = {
    "random_input_len": 8,
    "random_output_len": 8,
    "num_prompts": 700,
    "request_rate": 40,
    "liveness_timeout": 1.0,
}


async def test_an_arm_that_hangs_under_load_fails_with_what_was_seen(tmp_path: Path) -> None:
    made = study(
        models={"m": "sim"},
        engines={"sim": {"raw": ["--fault hang", "--fault-after 60"]}},
        baseline={"engine": "sim", "model": "m"},
        workloads={"short": LOAD},
        hardware={"name": "simulated"},
        budget={"quiet_wait": 0},
    )
    planner = Planner(made)
    (arm,) = planner.noise().arms
    place = tmp_path / "start"
    place.mkdir()
    trial = await TrialRunner(made, planner, tmp_path).run_trial(
        TrialRequest("noise", 0, arm.name), arm, place, lambda *told: None
    )
    assert trial.failure is not None
    assert trial.failure.kind == "hang"
    assert "it does not answer loadgen's own request" in trial.failure.cause
    assert "its metrics, log, CPU stood still" in trial.failure.cause
