"""Report pages of studies with little data or without a winner."""

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.document import Tone
from loadgen.lab.study.execute.arm_result import ArmResult, Difference, Verdict
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.execute.trial import Failure, TrialRequest
from loadgen.lab.study.report.arm_text import difference_span
from loadgen.stats.variance import Noise
from tests.helpers.study_reports import GAINS, STAGES, found, truth, written
from tests.helpers.study_walks import Came

QUANTIZED = STAGES[:1]


def markdown(findings: Findings, tmp_path: Path, **facts: Any) -> str:
    """The report of a study in Markdown, on the way to which HTML was made too."""
    return written(findings, tmp_path, {"source": "run"} | facts)["small.md"]


def rows(text: str, heading: str) -> list[str]:
    """The rows of the first table below a heading."""
    below = text.split(f" {heading}\n", 1)[1].splitlines()
    start = next(number for number, line in enumerate(below) if line.startswith("| ---"))
    table = []
    for line in below[start + 1 :]:
        if not line.startswith("|"):
            break
        table.append(line)
    return table


def with_summary(**parts: Any) -> Callable[[TrialRequest], Came]:
    """Starts as of the small study, whose summaries say more."""

    def came(request: TrialRequest) -> Came:
        total = truth()(request)
        assert isinstance(total, float)
        return {"total": total} | parts

    return came


# -- how far it has come


def test_a_finished_study_is_not_called_unfinished(tmp_path: Path) -> None:
    assert "Unfinished" not in markdown(found(), tmp_path)


@pytest.mark.parametrize(
    ("starts", "missing"),
    [
        (
            0,
            [
                "noise: not run yet",
                "quantization: not begun",
                "seqs: not begun",
                "confirmation: not begun",
            ],
        ),
        (5, ["quantization: not run yet", "seqs: not begun", "confirmation: not begun"]),
        (12, ["seqs: not run yet", "confirmation: not begun"]),
    ],
)
def test_an_unfinished_study_says_so_at_the_top_and_what_is_missing(
    starts: int, missing: list[str], tmp_path: Path
) -> None:
    text = markdown(found(starts=starts), tmp_path)
    top = text.split("## Conclusion")[0]
    assert '!!! warning "Unfinished study: not run yet"' in top
    assert [line.strip(" -") for line in top.splitlines() if line.startswith("    - ")] == missing


def test_study_without_a_run_recommends_no_command(tmp_path: Path) -> None:
    text = markdown(found(starts=0), tmp_path)
    assert "Nothing has been measured yet." in text
    assert "Serving Command" not in text
    assert "charts/" not in text


def test_a_winner_that_is_not_confirmed_has_no_bounds_beside_the_baseline(tmp_path: Path) -> None:
    text = markdown(found(starts=12), tmp_path)
    assert "vllm serve Qwen/Qwen3-8B-FP8" in text.split("Comparison of")[0]
    assert "not yet confirmed by fresh starts" in text
    # 3 starts of each: 10000 * (1.004, 0.998, 0.997 in some order), and 1.25 times as much in other
    # blocks
    (row,) = rows(text, "Conclusion")
    assert "not measured in the same blocks)" in row
    assert " to " not in row


def test_a_winner_that_fresh_starts_do_not_confirm_is_not_recommended(tmp_path: Path) -> None:
    text = markdown(found(truth(GAINS | {"quantization/fp8": 1.0}), stages=QUANTIZED), tmp_path)
    assert "Fresh starts did not confirm `quantization/fp8` (not significant (" in text
    tip = text.split('tip "Serving Command"')[1].split("```")[1]
    assert tip.split() == ["bash", "vllm", "serve", "Qwen/Qwen3-8B"]
    assert "Optimized |" not in text


# -- what was found


def test_report_keeps_the_baseline_without_a_better_arm(tmp_path: Path) -> None:
    text = markdown(found(truth({})), tmp_path)
    assert "No arm is shown to be 1.0% better than the baseline, so the baseline stays:" in text
    assert [row.split("|")[2:4] for row in rows(text, "Summary of Optimization Options")] == [
        [" - ", " - "]
    ] * 2
    assert "waterfall" not in text
    assert "winner" not in written(found(truth({})), tmp_path)["reproduce.sh"]


def test_a_baseline_alone_is_reported(tmp_path: Path) -> None:
    text = markdown(found(starts=3), tmp_path)
    (row,) = rows(text, "Conclusion")
    assert row.startswith("| **short** | Total TPS: 39")
    assert row.count("|") == 3
    assert "## Noise" in text


def test_infeasible_study_shows_the_closest_arm(tmp_path: Path) -> None:
    share = {"baseline": 700, "max_seqs=64": 900, "max_seqs=128": 800}
    findings = found(
        lambda request: {"total": 1000.0, "completed": share[request.arm]},
        stages=STAGES[1:],
        objective={"workload": "short"},
    )
    text = markdown(findings, tmp_path)
    conclusion = text.split("Comparison of")[0]
    assert "**No arm that ran met the limits of the study.**" in conclusion
    assert (
        "The closest was `max_seqs=64`: success rate 90.0%, at least 99.0% is required"
        in conclusion
    )
    assert "--max-num-seqs 64" in conclusion


def test_an_arm_that_loses_requests_is_shown_and_not_considered(tmp_path: Path) -> None:
    def came(request: TrialRequest) -> Came:
        return {"total": 15000.0, "completed": 514} if request.arm == "fp8" else 10000.0

    text = markdown(found(came, stages=QUANTIZED, report={"layout": "groups"}), tmp_path)
    (row,) = rows(text, "Summary of Optimization Options")
    assert "not considered: success rate 51.4%, at least 99.0% is required" in row
    assert "lightgreen" not in row
    assert "- Summary: `fp8` is not considered: success rate 51.4%" in text
    assert "No arm is shown to be 1.0% better" in text


def test_failures_stand_in_a_table_with_the_line_that_says_why(tmp_path: Path) -> None:
    cause = "torch.OutOfMemoryError: CUDA out of memory | tried `2.5 GiB`\non <GPU 0>"

    def came(request: TrialRequest) -> Came:
        return Failure("oom", cause, True) if request.arm == "fp8" else 10000.0

    findings = found(came, stages=QUANTIZED)
    texts = written(findings, tmp_path)
    escaped = (
        "torch.OutOfMemoryError: CUDA out of memory &#124; tried &#96;2.5 GiB&#96; on &lt;GPU 0&gt;"
    )
    assert rows(texts["small.md"], "Failures") == [
        f"| quantization | `fp8` | 2 | oom | <code>{escaped}</code> |"
    ]
    assert "tried `2.5 GiB` on &lt;GPU 0&gt;" in texts["small.html"]


def test_an_arm_that_is_left_out_says_what_it_contains(tmp_path: Path) -> None:
    def came(request: TrialRequest) -> Came:
        return (
            Failure("bad_flag", "unknown argument", False)
            if "max_seqs=64" in request.arm
            else 10000.0
        )

    again = {"name": "again", "grid": {"max_seqs": [64], "max_batched_tokens": [8192]}}
    failures = rows(markdown(found(came, stages=[STAGES[1], again]), tmp_path), "Failures")
    assert [row.split("|")[1:5] for row in failures] == [
        [" seqs ", " `max_seqs=64` ", " 1 ", " bad_flag "],
        [" again ", " `max_seqs=64 max_batched_tokens=8192` ", " 0 ", " pruned "],
    ]


def test_where_less_is_better_a_gain_is_a_decrease(tmp_path: Path) -> None:
    def came(request: TrialRequest) -> Came:
        return {"median_e2el_ms": 4000.0 if "fp8" in request.arm else 5000.0}

    text = markdown(
        found(came, stages=QUANTIZED, objective={"workload": "short", "metric": "e2el_p50"}),
        tmp_path,
    )
    row = rows(text, "Conclusion")[0]
    assert "Median E2EL: 5000.00<br>Total TPS: 4000.00 (est.)<br>Mean TPOT(ms): 30.00" in row
    # 4000 / 5000 - 1
    assert (
        'Median E2EL: 4000.00 <span style="background-color:lightgreen;">(-20.00%; -20.00% to '
        "-20.00%)</span>" in row
    )
    assert "Result: `fp8` (4000.00 ms) < `baseline` (5000.00 ms)".replace("<", r"\<") in text


# -- whose numbers they are


def test_a_simulated_engine_is_named_above_everything_else(tmp_path: Path) -> None:
    text = markdown(found(with_summary(loadgen={"simulated": True})), tmp_path)
    assert text.index('!!! danger "SIMULATED ENGINE"') < text.index("\n## ")
    assert "SIMULATED" not in markdown(found(), tmp_path)


def test_numbers_of_a_part_of_the_box_are_marked(tmp_path: Path) -> None:
    hardware = {"name": "a box", "devices": 1}
    assert "(est.)" in markdown(found(), tmp_path)
    assert "(est.)" not in markdown(found(hardware=hardware), tmp_path)


def test_other_model_without_questions_is_a_caveat(tmp_path: Path) -> None:
    text = markdown(found(), tmp_path)
    assert (
        "serves Qwen/Qwen3-8B-FP8 instead of Qwen/Qwen3-8B. The quality of its answers was not "
        "checked" in text
    )


def test_suspect_runs_are_a_caveat_with_their_reasons(tmp_path: Path) -> None:
    own = {"verdict": "SUSPECT", "reasons": ["lag p99: 12 ms, allowed is 5 ms"]}
    findings = found(with_summary(loadgen=own), stages=QUANTIZED)
    runs = sum(len(trial.runs) for trial in findings.trials)
    text = markdown(findings, tmp_path)
    named = ", ".join(f"noise/baseline block {number} on short" for number in (1, 2, 3))
    said = (
        f"{runs} of {runs} runs are SUSPECT: lag p99: 12 ms, allowed is 5 ms ({named} and "
        f"{runs - 3} more)"
    )
    assert said in text.split("## Provenance")[1]  # at its end, and beside each number
    assert re.search(r"<br>SUSPECT \|", re.sub("<[^b][^>]*>", "", rows(text, "1. Quantization")[1]))
    assert "SUSPECT<" in rows(text, "Conclusion")[0]


def test_arms_say_what_limits_them_and_where_the_time_of_a_request_went(tmp_path: Path) -> None:
    shares = {"client": 0.0, "path": 0.05, "queue": 0.6, "prefill": 0.1, "decode": 0.25}
    limit = {"limited_by": "requests waited 3 s for a slot", "phases": shares}
    text = markdown(found(with_summary(loadgen=limit)), tmp_path)
    assert "limited by: requests waited 3 s for a slot" in rows(text, "1. Quantization")[0]
    below = text.split("Where the time of a request went, as shares of the mean E2EL:")[1]
    head, _, first = below.split("\n\n")[1].splitlines()[:3]
    assert [name.strip() for name in head.split("|")[2:-1]] == list(shares)
    assert [share.strip() for share in first.split("|")[2:-1]] == ["0%", "5%", "60%", "10%", "25%"]
    assert "limited by" not in markdown(found(), tmp_path)


def test_disturbed_starts_are_a_caveat(tmp_path: Path) -> None:
    def came(request: TrialRequest) -> Came:
        lost = (
            {"others_cores": 1.0, "cores": 2}
            if request.arm == "fp8" and request.attempt == 0
            else {}
        )
        level = 12500.0 if "fp8" in request.arm else 10000.0
        return {"total": level + request.block, "loadgen": {"disturbance": lost}}

    text = markdown(found(came, stages=QUANTIZED), tmp_path)
    assert "Other programs disturbed 2 of 13 starts; these were repeated." in text
    assert "| 4 (2 repeated) |" in rows(text, "1. Quantization")[1]


def test_stage_says_what_was_done_about_disturbed_starts_that_count(tmp_path: Path) -> None:
    def came(request: TrialRequest) -> Came:
        lost = {"others_cores": 1.0, "cores": 2, "quiet": False} if request.arm == "fp8" else {}
        level = 12500.0 if "fp8" in request.arm else 10000.0
        return {"total": level + request.block, "loadgen": {"disturbance": lost}}

    text = markdown(found(came, stages=QUANTIZED), tmp_path)
    stage = text[
        text.index("### 1. Quantization") : text.index("### Summary of Optimization Options")
    ]
    disturbed = "Other programs disturbed 2 of 4 starts, which were not repeated; they count as "
    assert disturbed in stage
    noise = text[text.index("## Noise") :]
    assert "No start that counts was disturbed by other programs." in noise


def published(findings: Findings) -> Findings:
    """The findings as if each arm had been measured once, by others."""

    def once(arm: ArmResult) -> ArmResult:
        return dataclasses.replace(
            arm, trials=arm.trials[:1], counted=(), values=arm.values[:1], comparison=None
        )

    steps = [
        dataclasses.replace(step, arms=tuple(map(once, step.arms)), noise=None, least_effect=None)
        for step in findings.steps
        if step.step.name != "noise"
    ]
    return Findings(findings.study, tuple(steps), published=True)


def test_published_results_have_percentages_without_bounds(tmp_path: Path) -> None:
    came = {"baseline": 10.004, "fp8": 12.3437, "quantization/fp8": 12.3437}
    findings = published(found(lambda request: came[request.arm], stages=QUANTIZED))
    text = markdown(findings, tmp_path, source="import")
    assert '!!! warning "Published results"' in text.split("## Conclusion")[0]
    assert " (+23.39%; single runs)<br>" in rows(text, "Conclusion")[0]  # no colour: no bounds
    assert "| +23.39% (single runs) |" in rows(text, "1. Quantization")[1]
    assert " to +" not in text.split("## Provenance")[0]
    assert "## Noise" not in text


# -- combinations


def test_combinations_are_named_by_their_stages(tmp_path: Path) -> None:
    gains = {
        "fp8": 1.25,
        "quantization/fp8": 1.25,
        "max_seqs=128": 1.25 * 1.1,
        "seqs/max_seqs=128": 1.25 * 1.1,
    }
    gains |= {"quantization && seqs": 1.25 * 1.1}
    stages = [*QUANTIZED, {"name": "seqs", "grid": {"max_seqs": [128]}}]
    stages += [{"name": "both", "interactions": ["quantization", "seqs"]}]
    text = markdown(found(truth(gains), stages=stages, report={"layout": "groups"}), tmp_path)
    assert "| `quantization && seqs`<br>" in text
    assert "- Summary: `quantization && seqs` Total TPS = " in text


def test_a_stage_that_goes_on_says_why_its_arms_are_not_decided(tmp_path: Path) -> None:
    text = markdown(found(starts=6), tmp_path)
    assert '!!! warning "Not finished: not run yet"' in text
    row = rows(text, "1. Quantization")[1]
    assert "(too few blocks for bounds) |" in row
    assert row.endswith("| open<br>not run yet |")


def test_no_sign_stands_between_arms_that_are_not_compared_yet(tmp_path: Path) -> None:
    assert (
        "Result: `fp8` (49800.00 tok/s (est.)), `baseline` (39880.00 tok/s (est.))\n"
        in markdown(found(starts=5), tmp_path)
    )


def test_noise_without_a_degree_of_freedom_is_not_a_number_that_is_shown(tmp_path: Path) -> None:
    findings = found(starts=12)
    steps = [
        dataclasses.replace(step, noise=step.noise and Noise(math.nan, 0))
        for step in findings.steps
    ]
    text = markdown(dataclasses.replace(findings, steps=tuple(steps)), tmp_path)
    assert all("nan" not in row and "| n/a | 0 |" in row for row in rows(text, "Noise"))


def test_suspect_reasons_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    own = {"verdict": "SUSPECT", "reasons": [f"reason {number}" for number in range(26)]}
    text = markdown(found(with_summary(loadgen=own), stages=QUANTIZED), tmp_path)
    assert re.search(
        r"reason 0 \(.*\); reason 1 \(.*\); reason 2 \(.*\); and 23 more reasons, which", text
    )


@pytest.mark.parametrize("layout", ["stages", "groups"])
def test_every_workload_of_a_stage_is_shown(layout: str, tmp_path: Path) -> None:
    stages = [STAGES[0] | {"workloads": ["long"]}]
    text = markdown(found(stages=stages, report={"layout": layout}), tmp_path)
    stage = text.split("## Experiment Results")[1].split("Other Benchmark Cases")[0]
    head, _, baseline, fp8 = stage.split("| Arm | long |")[1].splitlines()[:4]
    assert head == ""
    assert baseline.startswith("| `baseline` | Total TPS: ")
    assert fp8.startswith("| `fp8` | Total TPS: ")
    assert "%; " in fp8
    assert len(re.findall(r"benchmark result on long \(.*median of \d starts\)", text)) == 2


def test_gain_of_an_arm_over_the_baseline_of_its_stage_is_shown_once(tmp_path: Path) -> None:
    (row, _) = rows(markdown(found(), tmp_path), "Summary of Optimization Options")
    assert row.endswith("| `baseline` | the same |")
    assert len(re.findall(r"\+\d+\.\d+% \(", row)) == 1


def test_arm_of_a_finished_study_without_a_second_block_has_too_few_for_bounds(
    tmp_path: Path,
) -> None:
    def came(request: TrialRequest) -> Came:
        total = truth()(request)
        assert isinstance(total, float)
        if "fp8" in request.arm and request.block == 1:
            return Failure("oom", "CUDA out of memory", transient=False)
        return total

    findings = found(came, stages=QUANTIZED)
    assert not findings.open
    assert "(too few blocks for bounds)" in rows(markdown(findings, tmp_path), "1. Quantization")[1]


def test_a_gain_on_a_workload_that_does_not_decide_is_coloured_by_its_bounds(
    tmp_path: Path,
) -> None:
    def came(request: TrialRequest) -> Came:
        return truth({"fp8": 1.001, "quantization/fp8": 1.001})(request)

    findings = found(came, stages=[STAGES[0] | {"workloads": ["long"]}])
    (stage, *_) = [step for step in findings.steps if step.step.name == "quantization"]
    (fp8,) = [arm for arm in stage.arms if arm.name == "fp8"]
    apart = Difference(0.17, 0.148, 0.192, more_is_better=True)
    assert fp8.verdict is Verdict.NOT_SIGNIFICANT
    assert difference_span(fp8, apart).tone is Tone.GOOD
    unsure = Difference(0.17, -0.01, 0.4, more_is_better=True)
    assert difference_span(fp8, unsure).tone is Tone.QUIET


def test_five_stages_that_all_gain_fit_on_five_hundred_lines(tmp_path: Path) -> None:
    stages = [
        {"name": f"s{n}", "choice": {f"a{n}": {"raw": [f"--x{n} 1"]}, f"b{n}": {"raw": ["--y 1"]}}}
        for n in range(5)
    ]
    gains = {f"{name}a{n}": 1.2 ** (n + 1) for n in range(5) for name in ("", f"s{n}/")}
    gains |= {f"b{n}": 1.2**n for n in range(5)}
    workloads = {"short": "short", "long": "long"}
    text = markdown(found(truth(gains), stages=stages, workloads=workloads), tmp_path)
    assert text.count('<span style="background-color:lightgreen;">adopted</span>') == 6
    assert len(text.splitlines()) <= 500
    assert "| `b4`<br>set `--y 1` |" in text  # what a table's arm changes
