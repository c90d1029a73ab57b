"""The report of published results: who measured them, on what, and what each gain is compared
with.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.document.charts.scale import Names
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.report.charts import drawings
from loadgen.lab.study.report.report_model import ReportModel
from tests.helpers import imported_files
from tests.helpers.audited_pages import block, fence
from tests.helpers.imported_files import take
from tests.helpers.study_files import as_yaml, read
from tests.helpers.study_reports import found, truth, written

VLLM, SGL = "vllm serve Qwen/Qwen3-8B", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
FP8, TP2 = "vllm serve Qwen/Qwen3-8B-FP8", "vllm serve Qwen/Qwen3-8B-FP8 -tp 2"
LOAD = {
    "dataset_name": "random",
    "random_input_len": 100,
    "random_output_len": 101,
    "num_prompts": 100,
}
PARTS: dict[str, Any] = {
    "workloads": {"short": LOAD},
    "hardware": {"name": "eight accelerators", "devices": 8},
    "stages": [
        {
            "name": "engine",
            "choice": {"vllm": {}, "sglang": {"engine": "sglang"}},
            "expect": "sglang",
        },
        {"name": "quantization", "from": "baseline", "choice": {"fp8": {"model": "fp8"}}},
        {
            "name": "parallelism",
            "from": "quantization/fp8",
            "choice": {"tp2": {"knobs": {"tensor_parallel": 2}}},
            "expect": "tp2",
        },
    ],
}
# (10000 + 10100) / s tokens/s: 2010, 2512.5, 1907.02, 3350
RESULTS = [(VLLM, 10.0), (SGL, 8.0), (FP8, 10.54), (TP2, 6.0)]


def page(results: list[tuple[str, float]], hardware: str = "") -> str:
    """A page with a stage of these commands and durations."""
    stage = "".join(
        fence(command) + fence(block(duration=duration)) for command, duration in results
    )
    setup = f"### Hardware\n\n{hardware}\n\n" if hardware else ""
    summary = "### Summary\n\n| Option | Gain |\n|---|---|\n| Engine | - |\n"
    return f"# A page\n\n## Setup\n\n{setup}## Results\n\n### 1. Engine\n\n{stage}\n{summary}"


def imported(tmp_path: Path, text: str, **parts: Any) -> Findings:
    """The findings from a page."""
    study = read(tmp_path, as_yaml(**(PARTS | parts)))
    (tmp_path / "page.md").write_text(text)
    return take(study, tmp_path / "store", str(tmp_path / "page.md")).findings


def plain(findings: Findings, tmp_path: Path) -> str:
    """Its report in Markdown, without colours."""
    text = written(findings, tmp_path, {"source": "import"})["small.md"]
    return re.sub(r"<span[^>]*>|</span>", "", text)


def section(text: str, heading: str) -> str:
    """The text between a heading and the next one."""
    return re.split(r"\n#+ ", text.split(f" {heading}\n", 1)[1])[0]


# -- who measured


@pytest.mark.parametrize("layout", ["stages", "groups"])
def test_nothing_is_said_to_be_measured_by_loadgen(layout: str, tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS), report={"layout": layout}), tmp_path)
    assert "These results are imported: the study started no server." in text
    for claim in (
        "freshly started",
        "started afresh",
        "Confirmed",
        "GPU-hours",
        "starts of each arm",
        "Starts |",
    ):
        assert claim not in text
    assert "| results | 4 results published |" in text
    assert "| decision | none: single runs say nothing about noise |" in text


def test_a_measured_study_says_how_it_was_measured(tmp_path: Path) -> None:
    text = written(found(), tmp_path)["small.md"]
    assert "In a stage `loadgen` runs the deciding workload and those that the stage names" in text
    assert "imported" not in text


def test_adoption_is_said_to_be_the_authors_and_unconfirmed(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS)), tmp_path)
    assert (
        "nothing was confirmed. The study file says which arms the author chose (`expect`)." in text
    )
    assert "| Optimization Option | Chosen by the author |" in text
    assert not re.search(
        r"\| adopted \||[Cc]onfirmed by|confirmation", text.split("## Provenance")[0]
    )


def test_single_runs_are_called_so(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS)), tmp_path)
    titles = re.findall(r'info "(.*enchmark result.*)"', text)
    assert len(titles) > 4
    assert all(title.endswith("(single run)") for title in titles)
    assert (
        "| `sglang` | 2512.50<br>SUSPECT | +25.00% (single runs) | 10.00 | single | chosen by the "
        "author |" in text
    )


def test_last_bar_of_the_waterfall_is_the_single_run_of_the_winner(tmp_path: Path) -> None:
    findings = imported(tmp_path, page(RESULTS))
    (panel,) = drawings(ReportModel(findings, {"source": "import"}), tmp_path)[
        "waterfall"
    ].chart.panels
    assert isinstance(panel.scale, Names)
    assert panel.scale.names == (
        "baseline",
        "quantization/fp8",
        "parallelism/tp2",
        "winner, single run",
    )
    measured = (
        drawings(ReportModel(found(), {"source": "run"}), tmp_path)["waterfall"]
        .chart.panels[0]
        .scale
    )
    assert isinstance(measured, Names)
    assert measured.names[-1] == "confirmation"


# -- on what


def test_hardware_is_that_of_the_page_and_not_that_of_the_study(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS, "Two boxes of NVIDIA A100")), tmp_path)
    assert section(text, "Hardware").strip() == '"Two boxes of NVIDIA A100"'
    assert (
        'The author chose this configuration of Qwen/Qwen3-8B-FP8 on "Two boxes of NVIDIA A100",'
        in text
    )
    assert "eight accelerators" not in text


def test_hardware_that_no_page_names_is_not_made_up(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS)), tmp_path)
    assert section(text, "Hardware").strip() == "not named by the published results"
    assert (
        "The author chose this configuration of Qwen/Qwen3-8B-FP8, for the most Total TPS on "
        "short:" in text
    )


def test_files_of_an_engine_are_not_recommended_if_they_were_not_published(tmp_path: Path) -> None:
    text = written(
        imported_files.page("qwen3-30b-a3b-910b").findings, tmp_path, {"source": "import"}
    )["qwen3-30b-a3b-910b.md"]
    assert "mindie serve ./Qwen3-30B-A3B" in section(text, "Conclusion")
    assert "maxSeqLen" not in text
    assert "The contents of `config.json` are loadgen's own" in section(text, "Reproduce")


def test_files_of_a_measured_engine_are_folded_below_its_command(tmp_path: Path) -> None:
    stages = [
        {"name": "engine", "choice": {"trtllm": {"engine": "trtllm", "knobs": {"kv_dtype": "fp8"}}}}
    ]
    text = written(found(truth({"trtllm": 1.25, "engine/trtllm": 1.25}), stages=stages), tmp_path)[
        "small.md"
    ]
    command, folded = section(text, "Conclusion").split('??? info "File /', 1)
    assert "trtllm-serve Qwen/Qwen3-8B" in command
    assert "kv_cache_config" in folded
    assert "kv_cache_config" not in command


# -- compared with what


def test_gains_over_the_baseline_and_over_an_arm_that_the_winner_does_not_build_on_are_together(
    tmp_path: Path,
) -> None:
    conclusion = section(plain(imported(tmp_path, page(RESULTS)), tmp_path), "Conclusion")
    assert "Total TPS on short, from single runs: 3350.00 tok/s." in conclusion
    # 3350 / 2010
    assert "- compared with the baseline, 2010.00 tok/s: (+66.67%; single runs)" in conclusion
    # 3350 / 2512.5
    assert (
        "- compared with `engine/sglang` (not part of the winner), 2512.50 tok/s: (+33.33%; "
        "single runs)" in conclusion
    )


def test_summary_of_options_says_what_each_gain_is_over(tmp_path: Path) -> None:
    summary = section(
        plain(imported(tmp_path, page(RESULTS)), tmp_path), "Summary of Optimization Options"
    )
    assert summary.strip().splitlines()[2:] == [
        "| Engine | `sglang`<br>not part of the winner | +25.00% (single runs) | `vllm` | the "
        "same |",
        "| Quantization | - | - | - | - |",
        # 10.54 / 6; 10 / 6
        "| Parallelism | `tp2` | +75.67% (single runs) | `quantization/fp8` | +66.67% |",
    ]


def test_summary_of_groups_names_the_arm_that_each_starts_from(tmp_path: Path) -> None:
    findings = imported(tmp_path, page(RESULTS), report={"layout": "groups"})
    rows = (
        section(plain(findings, tmp_path), "Summary of Optimization Options").strip().splitlines()
    )
    assert rows[0] == "| Benchmark Cases | Optimized | Compared with |"
    assert rows[3].endswith("| `baseline`<br>Total TPS: 2010.00<br>Mean TPOT(ms): 10.00 |")
    assert "over it" not in rows[3]
    assert "(+75.67%; single runs)" in rows[4]
    assert "<br>Baseline: 2010.00 (+66.67% over it, without bounds) |" in rows[4]
    assert rows[4].endswith("| `quantization/fp8`<br>Total TPS: 1907.02<br>Mean TPOT(ms): 10.00 |")


def test_groups_that_all_start_from_the_baseline_are_beside_it(tmp_path: Path) -> None:
    findings = imported(
        tmp_path, page(RESULTS), stages=PARTS["stages"][:2], report={"layout": "groups"}
    )
    head, _, *rows = (
        section(plain(findings, tmp_path), "Summary of Optimization Options").strip().splitlines()
    )
    assert head == "| Benchmark Cases | Optimized | Baseline |"
    assert [row.rsplit("|", 2)[1].strip() for row in rows] == [
        "Total TPS: 2010.00<br>Mean TPOT(ms): 10.00"
    ] * 2


def test_winner_without_a_result_on_the_deciding_workload_has_no_gain(tmp_path: Path) -> None:
    text = written(imported_files.page("qwen3-32b-a100").findings, tmp_path, {"source": "import"})[
        "qwen3-32b-a100.md"
    ]
    conclusion = section(text, "Conclusion")
    assert "No result of this configuration on sharegpt is known" in conclusion
    assert "compared with the baseline" not in conclusion


def test_page_without_results_of_an_expected_winner_keeps_the_baseline(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS[:1])), tmp_path)
    assert "No results are published of an arm that the study expects to win" in text
    assert "is shown to be" not in text


def test_a_measured_winner_is_compared_with_what_it_does_not_build_on(tmp_path: Path) -> None:
    gains = {"sglang": 1.25, "engine/sglang": 1.25, "fp8": 1.5, "quantization/fp8": 1.5}
    text = written(found(truth(gains), stages=PARTS["stages"][:2]), tmp_path)["small.md"]
    (gain,) = re.findall(
        r"compared with `engine/sglang` \(not part of the winner\), [\d.]+ tok/s \(est.\): "
        r".*\(\+([\d.]+)%; (.*)\)",
        text,
    )
    assert float(gain[0]) == pytest.approx(20.0, abs=1.0)  # 1.5 / 1.25
    assert gain[1] == "not measured in the same blocks"


def test_a_winner_is_not_compared_with_an_arm_that_it_builds_on(tmp_path: Path) -> None:
    gains = {"sglang": 1.25, "engine/sglang": 1.25, "fp8": 1.5, "quantization/fp8": 1.5}
    stages = [PARTS["stages"][0], {**PARTS["stages"][1], "from": "incumbent"}]
    conclusion = section(
        written(found(truth(gains), stages=stages), tmp_path)["small.md"], "Conclusion"
    )
    assert "Confirmed by fresh starts" in conclusion
    assert "compared with `" not in conclusion


# -- the data


def test_data_of_each_workload_and_how_to_get_it(tmp_path: Path) -> None:
    share = {
        "workload": "sharegpt-bs4",
        "dataset_path": "data/ShareGPT_V3_unfiltered_cleaned_split.json",
    }
    steady = LOAD | {"request_rate": 2.0}
    findings = found(truth({}), workloads={"short": "short", "chat": share, "steady": steady})
    data = section(written(findings, tmp_path)["small.md"], "Benchmark Dataset")
    assert data.strip().splitlines()[:3] == [
        "- **short**: random prompts of 128 tokens, answers of 4 tokens, 1000 requests",
        "- **chat**: conversations of ShareGPT, 1000 requests, at most 4 in flight",
        "- **steady**: random prompts of 100 tokens, answers of 101 tokens, 100 requests, 2 "
        "requests/s",
    ]
    assert "loadgen dataset fetch sharegpt --to data\n" in data


def test_random_data_needs_no_download(tmp_path: Path) -> None:
    assert "Download" not in written(found(truth({})), tmp_path)["small.md"]


def test_questions_are_no_fact_of_a_study_without_them(tmp_path: Path) -> None:
    facts = {"source": "run", "questions": None}
    assert "| questions |" not in written(found(truth({})), tmp_path, facts)["small.md"]


# -- what was assumed and changed


def notes(text: str) -> str:
    """The warning at the top of a page."""
    return text.split("## Conclusion")[0]


def test_model_that_was_taken_for_another_is_named_at_the_top(tmp_path: Path) -> None:
    results = [(VLLM, 10.0), ("vllm serve Qwen/Qwen3-9B-FP8", 8.0)]
    text = notes(plain(imported(tmp_path, page(results)), tmp_path))
    remark = "its command names the unknown model Qwen/Qwen3-9B-FP8; taken for Qwen/Qwen3-8B-FP8"
    assert re.search(rf"    - page\.md:\d+: {re.escape(remark)}\n", text)


def test_result_of_another_command_than_the_baselines_says_so_in_its_cell(tmp_path: Path) -> None:
    text = written(imported_files.page("qwen3-32b-a100").findings, tmp_path, {"source": "import"})[
        "qwen3-32b-a100.md"
    ]
    cells = {line.split("**")[1]: line for line in text.splitlines() if line.startswith("| **")}
    assert "served by" not in cells["sharegpt"]  # the baseline's own
    assert "Mean TPOT(ms): 528.57<br>served by `vllm serve Qwen/Qwen3-32B` |" in cells["short"]
    assert "the page shows it as the baseline's, but its command is that of engine/vllm" in notes(
        text
    )


def test_answers_that_end_early_are_noted_and_have_no_colour(tmp_path: Path) -> None:
    name = "qwen3-30b-a3b-910b"
    text = written(imported_files.page(name).findings, tmp_path, {"source": "import"})[f"{name}.md"]
    assert notes(text).count("ended early") == 1
    assert "qwen3-30b-a3b-910b.md:356: answers ended early, after 96.9 of 100 tokens\n" in notes(
        text
    )
    # 9,693 and 10,000 tokens
    assert "Total TPS: 10830.52 (+192.36%; single runs; answers 3.1% shorter)" in text


def test_row_that_the_source_lacks_is_not_added(tmp_path: Path) -> None:
    text = plain(imported(tmp_path, page(RESULTS)), tmp_path)
    assert "Successful requests:" in text
    assert "Failed requests:" not in text


def test_numbers_that_are_not_as_published_are_named(tmp_path: Path) -> None:
    name = "qwen3.5-9b-h100"
    text = written(imported_files.page(name).findings, tmp_path, {"source": "import"})[f"{name}.md"]
    assert "Total token throughput (tok/s) 11389.66 (published: 11527.14)." in text
    left_out = "Peak output token throughput (tok/s), Mean TPOT (ms), "
    assert f"Left out, since the audit finds them inconsistent: {left_out}" in text
