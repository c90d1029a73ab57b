"""Imported files: where results go, what is left out, and imports that are not repeated."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.importer.entries import Source
from loadgen.lab.importer.importer import Importer, store
from loadgen.lab.importer.placement import Arms
from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.execute.store import Store
from loadgen.lab.study.execute.trial import INVALID
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.report.findings_text import time_spent
from loadgen.lab.study.spec.study_file import StudyFile
from tests.helpers.audited_pages import block, fence
from tests.helpers.imported_files import Taken, achieved, arm, take
from tests.helpers.run_facts import result, steady
from tests.helpers.study_files import as_yaml, read
from tests.helpers.tool_results import SGLANG, VLLM, guidellm

STAGES = [
    {"name": "engine", "choice": {"vllm": {}, "sglang": {"engine": "sglang"}}, "expect": "sglang"},
    {"name": "seqs", "grid": {"max_seqs": [64, 128]}},
]
LOAD = {
    "dataset_name": "random",
    "random_input_len": 100,
    "random_output_len": 101,
    "num_prompts": 100,
}
SERVE = "vllm serve Qwen/Qwen3-8B"
SGL = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"


@pytest.fixture
def study(tmp_path: Path) -> StudyFile:
    """One workload of 100 requests, as tests of the audit have it; a second load that nothing
    here is like.
    """
    return read(tmp_path, as_yaml(stages=STAGES, workloads={"short": LOAD, "long": "long"}))


def page(*parts: str) -> str:
    """A page with these parts in its stages: commands, blocks and headings."""
    told = "\n".join(fence(part, "" if part.startswith(("=", "#\t")) else "bash") for part in parts)
    summary = "### Summary\n\n| Option | Gain |\n|---|---|\n| Engine | - |\n"
    return f"# A page\n\n## Results\n\n### 1. Engine\n\n{told}\n{summary}"


def write(tmp_path: Path, text: str, name: str = "page.md") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def taken(
    study: StudyFile, tmp_path: Path, data: Any, name: str = "result.json", **how: Any
) -> Taken:
    """One file of JSON, imported."""
    return take(study, tmp_path / "store", write(tmp_path, json.dumps(data), name), **how)


def test_a_block_is_a_trial_of_the_arm_that_the_command_above_it_starts(
    study: StudyFile, tmp_path: Path
) -> None:
    text = page(SERVE, block(duration=10.0), SGL, block(duration=8.0))
    path = write(tmp_path, text)
    found = take(study, tmp_path / "store", path)
    assert found.lines.splitlines() == [
        f"{path}:12: engine/vllm, short: 2010.00 tok/s",  # (10000 + 10100) / 10 s
        f"{path}:42: engine/sglang, short: 2512.50 tok/s",
    ]
    first, second = found.trials
    assert (first.request.step, first.request.arm, first.request.block) == ("engine", "vllm", 0)
    assert (second.request.step, second.request.arm, second.request.block) == (
        "engine",
        "sglang",
        1,
    )
    assert (first.build, first.seconds, first.failure) == ("0.17.1", 10.0, None)
    assert first.runs["short"].summary["loadgen"]["provenance"] == {
        "file": path,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "result": 1,
        "place": f"{path}:12",
        "command": SERVE,
        "hardware": "",
        "notes": [],
    }


def test_the_whole_result_lies_in_the_folder_of_its_trial(study: StudyFile, tmp_path: Path) -> None:
    found = taken(study, tmp_path, VLLM, as_="engine/vllm:short")
    ran = found.trials[0].runs["short"]
    assert ran.path.startswith(found.trials[0].folder)
    whole = json.loads((tmp_path / "store" / ran.path).read_text())
    assert whole["output_lens"] == [101] * 100
    assert {key: whole[key] for key in ran.summary} == ran.summary
    assert "output_lens" not in ran.summary


def test_the_same_file_is_not_imported_twice_and_a_changed_one_adds_what_is_new(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block()))
    assert len(take(study, tmp_path / "store", path).told[0].imported) == 1
    second = take(study, tmp_path / "store", path)
    assert second.lines == f"{path}: 1 of 1 results were imported before"
    write(tmp_path, page(SERVE, block(), SGL, block(duration=8.0)))
    third = take(study, tmp_path / "store", path)
    assert third.lines.splitlines() == [
        f"{path}:42: engine/sglang, short: 2512.50 tok/s",
        f"{path}: 1 of 2 results were imported before",
    ]
    assert len(third.trials) == 2


def test_a_file_that_was_imported_under_another_name_is_known(
    study: StudyFile, tmp_path: Path
) -> None:
    text = page(SERVE, block())
    take(study, tmp_path / "store", write(tmp_path, text))
    moved = write(tmp_path, text, "moved.md")
    assert (
        take(study, tmp_path / "store", moved).lines
        == f"{moved}: 1 of 1 results were imported before"
    )


def test_equal_results_under_two_commands_are_imported_once(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block(), SGL, block()))
    found = take(study, tmp_path / "store", path)
    assert (
        found.lines.splitlines()[1] == f"{path}:42: left out: it has the same numbers as {path}:12"
    )
    assert len(found.trials) == 1


def test_command_without_result_is_a_failure_with_its_line(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block(), SGL, "#\tRuntimeError: no such kernel"))
    found = take(study, tmp_path / "store", path)
    assert arm(found.findings, "engine", "sglang").verdict is Verdict.FAILED
    assert arm(found.findings, "engine", "sglang").why == "crash: RuntimeError: no such kernel"
    assert publications.counted(found.told[0].imported) == "1 result and 1 failed command"
    again = take(study, tmp_path / "store", path)
    assert again.lines == f"{path}: 2 of 2 results and failed commands were imported before"


def test_answers_that_ended_early_are_named_once(study: StudyFile, tmp_path: Path) -> None:
    path = write(tmp_path, page(SERVE, block(output=7000)))
    lines = take(study, tmp_path / "store", path).lines.splitlines()
    early = [line for line in lines if "ended early" in line]
    assert early == [
        f"{path}:12: answers ended early, after 70.0 of 101 tokens, but short ignores EOS in this "
        "study"
    ]


def test_page_whose_stage_has_no_serving_command_is_not_placed(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page("./serve.sh", block()))
    found = take(study, tmp_path / "store", path)
    remedy = f"say it with --as STAGE/ARM:WORKLOAD and {path}#1"
    assert found.lines == f"{path}:12: not placed: it has no serving command; {remedy}"
    assert time_spent(found.findings) == "0 results published"


def test_unplaced_result_is_named_and_placed_by_its_number(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block(), f"{SERVE} --max-num-seqs 77", block(duration=8.0)))
    first = take(study, tmp_path / "store", path)
    assert first.told[0].unplaced == 1
    assert first.lines.splitlines()[1] == (
        f"{path}:42: not placed: no arm has the command `{SERVE} --max-num-seqs 77`; "
        f"say it with --as STAGE/ARM:WORKLOAD and {path}#2"
    )
    second = take(study, tmp_path / "store", f"{path}#2", as_="seqs/max_seqs=64:short")
    assert second.lines == f"{path}:42: seqs/max_seqs=64, short: 2512.50 tok/s"
    assert (
        take(study, tmp_path / "store", path).lines
        == f"{path}: 2 of 2 results were imported before"
    )


def test_a_part_that_is_named_is_what_it_is_said_to_be_whatever_its_command(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block()))
    found = take(study, tmp_path / "store", f"{path}#1", as_="engine/sglang")
    assert found.lines == f"{path}:12: engine/sglang, short: 2010.00 tok/s"


def test_commands_of_a_page_override_its_as_option(study: StudyFile, tmp_path: Path) -> None:
    path = write(tmp_path, page(SERVE, block()))
    assert (
        take(study, tmp_path / "store", path, as_="engine/sglang").trials[0].request.arm == "vllm"
    )


UNCAPPED = VLLM | {"max_concurrency": None}


@pytest.mark.parametrize("data", [UNCAPPED, SGLANG, guidellm()], ids=["vllm", "sglang", "guidellm"])
def test_a_result_without_a_command_is_what_it_is_said_to_be(
    study: StudyFile, tmp_path: Path, data: Any
) -> None:
    left = taken(study, tmp_path, data)
    assert (left.told[0].unplaced, left.trials) == (1, [])
    assert ": not placed: it has no serving command; say it with --as " in left.lines
    found = taken(study, tmp_path, data, as_="engine/vllm")
    assert achieved(found.findings, "engine", "vllm", "short") == pytest.approx(2010.0, rel=0.005)


def test_second_result_of_an_arm_and_workload_is_not_averaged_with_the_first(
    study: StudyFile, tmp_path: Path
) -> None:
    runs = [SGLANG | {"duration": seconds, **_rates(seconds)} for seconds in (8.0, 10.0)]
    path = write(tmp_path, "\n".join(map(json.dumps, runs)), "runs.jsonl")
    found = take(study, tmp_path / "store", path, as_="engine/sglang:short")
    assert arm(found.findings, "engine", "sglang").values == pytest.approx((20100 / 8,))
    assert found.told[0].unplaced == 1
    problem = (
        f"engine/sglang has a result on short, {path}:1, and published results are not averaged"
    )
    assert f"{path}:2: not placed: {problem}; say it with --as " in found.lines
    later = take(study, tmp_path / "store", f"{path}#2", as_="engine/sglang:short")
    assert (later.told[0].unplaced, len(later.trials)) == (1, 1)


def _rates(seconds: float) -> dict[str, float]:
    return {
        "request_throughput": 100 / seconds,
        "input_throughput": 10_000 / seconds,
        "output_throughput": 10_100 / seconds,
        "concurrency": 110 / seconds,
    }


def test_a_result_of_ours_keeps_its_verdict_its_histograms_and_what_was_asked(
    study: StudyFile, tmp_path: Path
) -> None:
    data = result([steady(n) for n in range(20)])
    found = taken(study, tmp_path, data, as_="engine/vllm:short")
    ran = found.trials[0].runs["short"]
    assert ran.summary["num_prompts"] == data["num_prompts"]
    assert ran.summary["loadgen"]["verdict"] == data["loadgen"]["verdict"] != "INVALID"
    assert ran.summary["loadgen"]["simulated"] is data["loadgen"]["simulated"]
    whole = json.loads((tmp_path / "store" / ran.path).read_text())
    assert whole["loadgen"]["histograms"] == json.loads(json.dumps(data["loadgen"]["histograms"]))


def test_a_result_takes_the_place_of_one_that_is_not_to_be_believed(
    study: StudyFile, tmp_path: Path
) -> None:
    data = result([steady(n) for n in range(20)])
    data["loadgen"]["verdict"] = "INVALID"
    taken(study, tmp_path, data, as_="engine/sglang:short")
    found = taken(study, tmp_path, SGLANG, "other.json", as_="engine/sglang:short")
    assert arm(found.findings, "engine", "sglang").values == pytest.approx((2010.0,))


def test_a_run_that_is_not_to_be_believed_has_no_value(study: StudyFile, tmp_path: Path) -> None:
    data = result([steady(n) for n in range(20)])
    data["loadgen"]["verdict"] = "INVALID"
    found = taken(study, tmp_path, data, as_="engine/sglang:short")
    (trial,) = found.trials
    assert trial.failure is not None
    assert trial.failure.kind == INVALID
    assert arm(found.findings, "engine", "sglang").values == ()
    assert arm(found.findings, "engine", "sglang").verdict is Verdict.FAILED


def test_results_of_one_server_and_of_all_replicas_are_not_put_together(
    study: StudyFile, tmp_path: Path
) -> None:
    two = [{"name": "two", "choice": {"pair": {"replicas": 2}}}]
    study = read(tmp_path, as_yaml(stages=two, workloads={"short": LOAD, "long": "long"}))
    data = result([steady(n) for n in range(20)])
    data["loadgen"]["targets"] = [{}, {}]
    both = taken(study, tmp_path, data, as_="two/pair:short")
    assert len(both.told[0].imported) == 1
    assert arm(both.findings, "two", "pair").planned.spec.replicas == 2
    one = taken(study, tmp_path, VLLM, "one.json", as_="two/pair:long")
    assert "not placed: it has 1 server, and two/pair has 2" in one.lines
    baseline = taken(
        study, tmp_path, data | {"duration": 3.0}, "two.json", as_="two/baseline:short"
    )
    assert "not placed: it has 2 servers, and two/baseline has 1" in baseline.lines


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("engine/vlm", "unknown arm 'engine/vlm'; did you mean engine/vllm?"),
        ("engine/vllm:shrt", "unknown workload 'shrt'; name one of short, long"),
    ],
)
def test_as_option_outside_the_study_is_refused(
    study: StudyFile, tmp_path: Path, said: str, problem: str
) -> None:
    with pytest.raises(BadInput) as caught:
        taken(study, tmp_path, VLLM, as_=said)
    assert str(caught.value) == f"--as: {problem}"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("none.md", "# Nothing here\n", "none.md has no block of results"),
        ("page.md#3", block(), "page.md has no result 3; it has 1, counted from 1"),
        ("page.json", "{}", "is JSON, but not a known result"),
    ],
)
def test_a_file_without_what_is_asked_is_refused(
    study: StudyFile, tmp_path: Path, name: str, text: str, problem: str
) -> None:
    write(tmp_path, text, name.partition("#")[0])
    with pytest.raises(BadInput) as caught:
        take(study, tmp_path / "store", str(tmp_path / name))
    assert problem in str(caught.value)


def test_a_store_of_a_run_takes_no_published_results(study: StudyFile, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with Store.create(folder, {"source": "run"}):
        pass
    with pytest.raises(
        BadInput, match="is the store of a study that ran here; name another folder with --store"
    ):
        taken(study, tmp_path, VLLM, as_="engine/vllm:short")


def test_a_store_of_another_study_takes_none_of_this_one(study: StudyFile, tmp_path: Path) -> None:
    taken(study, tmp_path, VLLM, as_="engine/vllm:short")
    other = read(tmp_path, as_yaml(stages=STAGES[:1], workloads={"short": LOAD, "long": "long"}))
    with pytest.raises(BadInput, match="is the store of another study, or the study has changed"):
        taken(other, tmp_path, VLLM, as_="engine/vllm:short")


def test_hardware_is_kept_as_the_page_names_it(study: StudyFile, tmp_path: Path) -> None:
    head = "# A page\n\n## Setup\n\n### Hardware\n\n- 8 x NVIDIA A100\n\n"
    found = take(study, tmp_path / "store", write(tmp_path, head + page(SERVE, block())))
    origin = found.trials[0].runs["short"].findings.provenance
    assert origin is not None
    assert origin.hardware == "8 x NVIDIA A100"


def test_two_results_shown_as_the_baselines_are_not_averaged(
    study: StudyFile, tmp_path: Path
) -> None:
    cells = ("2512.50", "2010.00")
    rows = "\n".join(f"| Case {cell} | Total TPS: {cell} | Total TPS: 1.00 |" for cell in cells)
    head = f"| Case | baseline | Optimized |\n|---|---|---|\n{rows}\n\n"
    seqs = f"{SGL} --max-running-requests 64"
    path = write(tmp_path, head + page(SGL, block(duration=8.0), seqs, block()))
    found = take(study, tmp_path / "store", path)
    assert found.told[0].unplaced == 1
    assert "confirmation/baseline has a result on short" in found.lines
    assert arm(found.findings, "confirmation", "baseline").values == (2512.5,)


def test_requests_that_a_page_does_not_account_for_are_told(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page(SERVE, block(ok=98), SGL, block(ok=40)))
    found = take(study, tmp_path / "store", path)
    assert f"{path}:12: 98 of the 100 requests of short; the others count as failed" in found.lines
    (placed,) = found.trials
    assert placed.runs["short"].summary["failed"] == 2
    assert f"{path}:42: not placed: no workload of the study is 40 requests" in found.lines


def test_success_rate_of_a_page_accounts_for_the_requests_that_failed(
    study: StudyFile, tmp_path: Path
) -> None:
    row = "| Engine | Total TPS: 804.00 (Success rate: 40%, skipped) |"
    head = f"| Option | Gain |\n|---|---|\n{row}\n\n"
    some = block(ok=40, input=4000, output=4040)  # 8040 tokens / 10 s
    found = take(study, tmp_path / "store", write(tmp_path, head + page(SERVE, some)))
    assert [trial.runs["short"].success_rate for trial in found.trials] == [0.4]


def test_result_shown_as_baseline_is_imported_as_baseline(study: StudyFile, tmp_path: Path) -> None:
    head = (
        "| Case | baseline | Optimized |\n|---|---|---|\n| Short | Total TPS: 2512.50 | Total "
        "TPS: 2010.00 |\n\n"
    )
    path = write(tmp_path, head + page(SGL, block(duration=8.0)))
    found = take(study, tmp_path / "store", path)
    assert (
        f"{path}:16: the page shows it as the baseline's, but its command is that of engine/sglang"
        in found.lines
    )
    assert achieved(found.findings, "engine", "sglang", "short") == 2512.5
    shown = arm(found.findings, "confirmation", "baseline")
    assert (shown.values, shown.why) == ((2512.5,), f"short: of `{SGL}`")


def test_page_about_another_model_is_not_placed_and_leaves_no_store(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(tmp_path, page("vllm serve Qwen/Qwen3-32B", block(duration=10.0)))
    with store(tmp_path / "store", study) as empty:
        summary = Importer(empty, Arms(plan(study.study)), study.study).add(Source.read(path))
    assert (summary.imported, summary.unplaced) == ([], 1)
    assert (
        "not placed: unknown model Qwen/Qwen3-32B; the study has Qwen/Qwen3-8B" in summary.lines[0]
    )
    assert not (tmp_path / "store").exists()


def test_unknown_model_among_known_ones_is_taken_for_the_nearest_name(
    study: StudyFile, tmp_path: Path
) -> None:
    path = write(
        tmp_path, page(SERVE, block(duration=10.0), SGL.replace("8B", "9B"), block(duration=8.0))
    )
    found = take(study, tmp_path / "store", path)
    assert (
        "its command names the unknown model Qwen/Qwen3-9B; taken for Qwen/Qwen3-8B" in found.lines
    )


def test_files_beside_an_empty_store_stay(study: StudyFile, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "notes.txt").write_text("mine")
    with store(tmp_path / "store", study):
        pass
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["notes.txt"]
