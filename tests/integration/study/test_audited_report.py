"""A study of the simulator, run and reported, passes the audit of its own page."""

from pathlib import Path

import pytest

from loadgen.lab.audit import audit
from tests.helpers.command_line import loadgen

pytestmark = pytest.mark.slow

STUDY = """\
name: small
models: {bf16: sim-8b}
hardware: {name: one simulated accelerator, devices: 1}
engines:
  sim:
    raw: [--step-base-ms 6, --decode-us-per-seq 60, --prefill-us-per-token 2]
workloads:
  chat: &load
    dataset_name: random
    random_input_len: 64
    random_output_len: 24
    num_prompts: 40
    max_concurrency: 16
    seed: 42
  one at a time: {<<: *load, num_prompts: 5, max_concurrency: 1}
objective: {metric: total_tps_per_box, workload: chat}
baseline: {engine: sim, model: bf16, knobs: {max_seqs: 8}}
decision: {min_effect: 0.05, repeats: {least: 2, most: 2}, seed: 1}
budget: {hours: 0.1, start_timeout: 30, quiet_wait: 0}
stages:
  - name: sequences
    grid: {max_seqs: [4, 16]}
report: {title: A small study of the simulator}
"""


@pytest.mark.timeout(300)
def test_the_report_of_a_study_of_the_simulator_is_consistent(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(STUDY)
    done = loadgen("tune", "run", "small.yaml", cwd=tmp_path, timeout_s=240)
    assert done.returncode == 0, done.stderr
    assert loadgen("tune", "report", "small.store", cwd=tmp_path).returncode == 0
    (page,) = tmp_path.rglob("small.md")
    assert "Serving Benchmark Result" in page.read_text()
    assert [finding for finding in audit(str(page)) if not finding.note] == []
