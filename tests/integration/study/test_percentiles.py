"""A study reports the percentiles and latencies that every_workload chooses."""

from pathlib import Path

from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.execute.trial_runner import TrialRunner
from loadgen.lab.study.plan.planner import Planner
from loadgen.lab.study.report.arm_text import result_block
from tests.helpers.study_files import study

FEW = {"random_input_len": 8, "random_output_len": 2, "num_prompts": 4, "max_concurrency": 2}


async def test_block_of_a_start_has_the_rows_of_the_chosen_percentiles(tmp_path: Path) -> None:
    made = study(
        models={"m": "sim"},
        engines={"sim": {}},
        baseline={"engine": "sim", "model": "m"},
        workloads={"short": FEW},
        every_workload={"metric_percentiles": "95,99", "percentile_metrics": "ttft,e2el"},
        hardware={"name": "simulated"},
        budget={"quiet_wait": 0},  # other tests run beside it
    )
    planner = Planner(made)
    (arm,) = planner.noise().arms
    (tmp_path / "start").mkdir()
    request = TrialRequest("noise", 0, arm.name)
    trial = await TrialRunner(made, planner, tmp_path).run_trial(
        request, arm, tmp_path / "start", lambda *told: None
    )
    rows = [row.partition(":")[0] for row in result_block(trial.runs["short"]).text.splitlines()]
    assert {"P95 TTFT (ms)", "P99 TTFT (ms)", "P95 E2EL (ms)", "P99 E2EL (ms)"} <= {*rows}
    findings = trial.runs["short"].findings
    assert findings.limited_by == "not determined: 4 requests are too few, 50 are needed"
    assert abs(sum(findings.phases.values()) - 1) < 1e-9
