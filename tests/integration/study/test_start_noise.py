"""Starts of one arm draw another noise each, and the study's seed repeats it."""

from pathlib import Path

from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.plan.planner import Planner
from tests.helpers.study_files import study

FEW = {"random_input_len": 8, "random_output_len": 2, "num_prompts": 2, "max_concurrency": 2}


async def noise_seeds(folder: Path, *blocks: int) -> list[int]:
    """The noise seed that the simulator reports for a start in each of these blocks."""
    made = study(
        models={"m": "sim"},
        engines={"sim": {"raw": ["--start-noise 0.5"]}},
        baseline={"engine": "sim", "model": "m"},
        workloads={"short": FEW},
        hardware={"name": "simulated"},
        budget={"quiet_wait": 0},  # other tests run beside it
        decision={"seed": 5},
    )
    planner = Planner(made)
    (arm,) = planner.noise().arms
    found = []
    for block in blocks:
        place = folder / f"start{block}"
        place.mkdir(parents=True)
        request = TrialRequest("noise", block, arm.name)
        trial = await TrialRunner(made, planner, folder).run_trial(
            request, arm, place, lambda *told: None
        )
        assert trial.server_config is not None
        found.append(int(trial.server_config["noise_seed"]))
    return found


async def test_the_simulator_is_started_with_another_noise_each_time(tmp_path: Path) -> None:
    first, second = await noise_seeds(tmp_path / "one", 0, 1)
    assert first != second
    assert await noise_seeds(tmp_path / "again", 1) == [second]
