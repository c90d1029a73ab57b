"""A page that shows the deciding data set a second time, with fewer requests and a cap on those in
flight.

The numbers are those of a page of GPUStack's performance lab,
docs/performance-lab/deepseek-r1/h200.md: 5482.59 and 7143.30 tok/s with all requests at once,
407.45 tok/s of the baseline with four in flight.
"""

from pathlib import Path
from typing import Any

import pytest

from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.spec.study_file import StudyFile
from tests.helpers.audited_pages import block, fence
from tests.helpers.imported_files import Taken, arm, take
from tests.helpers.study_files import as_yaml, read
from tests.helpers.study_reports import written

VLLM, SGL = "vllm serve Qwen/Qwen3-8B", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
BASELINE = {"ok": 1000, "duration": 76.59, "input": 219_171, "output": 200_752, "total": 5482.59}
WINNER = BASELINE | {"duration": 58.79, "total": 7143.30}
FOUR = {"ok": 100, "cap": 4, "duration": 108.42, "input": 22_836, "output": 21_338, "total": 407.45}
SHAREGPT: dict[str, Any] = {"sharegpt": {"workload": "sharegpt", "dataset_path": "share.json"}}
STAGES = [
    {"name": "engine", "choice": {"vllm": {}, "sglang": {"engine": "sglang"}}, "expect": "sglang"}
]


def page(*cases: str) -> str:
    """A page with a stage, and with other cases of the baseline."""
    stage = "".join(map(fence, (VLLM, block(**BASELINE), SGL, block(**WINNER))))
    summary = "### Summary\n\n| Option | Gain |\n|---|---|\n| Engine | +30.3% |\n"
    others = "### Other Benchmark Cases\n\n" + fence(VLLM) + "".join(map(fence, cases))
    return f"# A page\n\n## Results\n\n### 1. Engine\n\n{stage}\n{summary}\n{others}"


CASE = "# ShareGPT batch size 4\n" + block(**FOUR)


def imported(tmp_path: Path, text: str, workloads: dict[str, Any]) -> tuple[StudyFile, Taken]:
    """The page in a study with these workloads."""
    parts = {"stages": STAGES, "workloads": workloads, "objective": {"workload": "sharegpt"}}
    study = read(tmp_path, as_yaml(**parts, hardware={"name": "a box", "devices": 1}))
    (tmp_path / "page.md").write_text(text)
    return study, take(study, tmp_path / "store", str(tmp_path / "page.md"))


def test_a_smaller_batch_is_no_second_start_of_the_baseline(tmp_path: Path) -> None:
    _, found = imported(tmp_path, page(CASE), SHAREGPT)
    assert arm(found.findings, "confirmation", "baseline").values == (5482.59,)
    (outcome,) = found.told
    assert (len(outcome.imported), outcome.unplaced) == (2, 1)
    line = next(line for line in outcome.lines if "not placed" in line)
    assert "100 requests, at most 4 in flight" in line
    assert "sharegpt has 1000 requests" in line


def test_the_report_has_the_gain_of_the_page(tmp_path: Path) -> None:
    _, found = imported(tmp_path, page(CASE), SHAREGPT)
    text = written(found.findings, tmp_path, {"source": "import"})["small.md"]
    assert "+30.29%" in text  # 7143.30 / 5482.59
    assert "+378" not in text  # 7143.30 / sqrt(5482.59 * 407.45)
    assert "+377" not in text
    assert "1494" not in text


def test_a_study_that_has_the_smaller_batch_gets_it(tmp_path: Path) -> None:
    batch = {"batch of four": SHAREGPT["sharegpt"] | {"num_prompts": 100, "max_concurrency": 4}}
    _, found = imported(tmp_path, page(CASE), SHAREGPT | batch)
    assert found.told[0].unplaced == 0
    baseline = arm(found.findings, "confirmation", "baseline")
    assert baseline.values == (5482.59,)
    assert {name for trial in baseline.trials for name in trial.runs} == {
        "sharegpt",
        "batch of four",
    }


def test_a_second_measurement_of_the_same_is_left_out(tmp_path: Path) -> None:
    again = "# ShareGPT\n" + block(**BASELINE | {"duration": 70.0, "total": 5998.90})
    _, found = imported(tmp_path, page(again), SHAREGPT)
    assert arm(found.findings, "confirmation", "baseline").values == (5482.59,)
    assert "published results are not averaged" in found.lines


@pytest.mark.parametrize(("completed", "counts"), [(984, True), (516, False)])
def test_a_few_lost_requests_are_told_and_many_are_another_workload(
    completed: int, counts: bool, tmp_path: Path
) -> None:
    tokens = {"input": 219 * completed, "output": 200 * completed + 1}
    text = page().replace(block(**WINNER), block(ok=completed, duration=58.0, **tokens))
    _, found = imported(tmp_path, text, SHAREGPT)
    ran = arm(found.findings, "engine", "sglang")
    if counts:
        assert "984 of the 1000 requests of sharegpt; the others count as failed" in found.lines
        assert (ran.verdict, ran.why) == (
            Verdict.INFEASIBLE,
            "success rate 98.4%, at least 99.0% is required",
        )
    else:
        assert "not placed: no workload of the study is 516 requests" in found.lines
        assert ran.verdict is Verdict.NOT_RUN
