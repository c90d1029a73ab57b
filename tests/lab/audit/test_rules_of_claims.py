"""Rules about what a page claims and did not measure, or measured otherwise than it prints."""

from pathlib import Path

import pytest

from loadgen.lab.audit import Finding
from tests.helpers.audited_pages import SERVE, block, fence, found, only, stage, study

SGLANG = "python3 -m sglang.launch_server --model-path acme/Foo-7B"


def of(tmp_path: Path, rule: str, text: str) -> list[Finding]:
    return [finding for finding in found(tmp_path, text) if finding.rule == rule]


# -- models, engines and options


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("Tuning Foo-4.6", ""),
        ("Tuning Foo-4.6/Foo-4.5", "Foo-4.5"),
        ("Tuning Foo-4.x (4.5, 4.6 and 4.7)", "Foo-4.5 and Foo-4.7"),
        ("Tuning Foo-4.6 with vLLM-0.11", ""),
    ],
)
def test_versions_of_a_family_that_no_command_serves_are_noted(
    tmp_path: Path, title: str, says: str
) -> None:
    text = (
        study(stage("1. Engine", SERVE, 20.1))
        .replace("Foo-7B", "Foo-4.6-FP8")
        .replace("Tuning Foo-4.6-FP8", title)
    )
    assert [(each.says, each.note) for each in of(tmp_path, "model", text)] == (
        [(says, True)] if says else []
    )


def test_an_engine_that_is_not_supported_has_a_command(tmp_path: Path) -> None:
    line = "Result: vLLM (1000.00 tok/s) > TensorRT-LLM (Not supported)\n\n"
    untried = only(found(tmp_path, study(stage("1. Engine", SERVE, 20.1) + line)), "untried")
    assert (untried.says, untried.note) == ("TensorRT-LLM (Not supported)", True)
    tried = fence("trtllm-serve acme/Foo-7B", "bash") + fence("NotImplementedError: MoE")
    assert of(tmp_path, "untried", study(stage("1. Engine", SERVE, 20.1) + tried + line)) == []


def test_an_option_that_brought_nothing_was_tried(tmp_path: Path) -> None:
    empty = "### 2. Attention Backend\n\nTODO\n\n"
    text = study(stage("1. Engine", SERVE, 20.1), empty, summary="| Attention Backend | - |")
    assert only(found(tmp_path, text), "untried").says == "Attention Backend: -"
    crashed = empty.replace("TODO", fence(f"{SERVE} --attention-backend x", "bash"))
    text = study(stage("1. Engine", SERVE, 20.1), crashed, summary="| Attention Backend | - |")
    assert of(tmp_path, "untried", text) == []


def test_a_stage_that_is_named_after_an_engine_shows_its_command(tmp_path: Path) -> None:
    stages = (
        stage("1. Engine", SERVE, 20.1),
        stage("2. Chunks in SGLang", f"{SGLANG} --chunk 64", 16.75),
    )
    assert of(tmp_path, "label", study(*stages)) == []
    wrong = only(
        found(tmp_path, study(stages[0], stages[1].replace("in SGLang", "in vLLM"))), "label"
    )
    assert (wrong.says, wrong.note) == ("2. Chunks in vLLM", False)
    assert "its command starts SGLang" in wrong.why
    both = stages[1].replace("in SGLang", "in vLLM/TensorRT-LLM")
    assert of(tmp_path, "label", study(stages[0], both)) == []


def test_a_setting_that_one_engine_of_a_comparison_has_is_noted(tmp_path: Path) -> None:
    def compared(flag: str, other: str) -> list[Finding]:
        sides = stage("1. Engine", f"{SERVE} {flag}", 20.1) + stage("x", f"{SGLANG} {other}", 16.75)
        return of(tmp_path, "one-sided", study(sides.replace("### x\n", "")))

    (finding,) = compared("--gpu-memory-utilization 0.85", "")
    assert (finding.says, finding.note) == ("vLLM with --memory-fraction 0.85", True)
    assert finding.why == "SGLang at the default"
    assert compared("--gpu-memory-utilization 0.85", "--mem-fraction-static 0.8") == []
    assert compared("-tp 8 --max-model-len 4096 --reasoning-parser x --of-vllm-alone", "") == []


# -- the recommended command


def test_flags_that_change_no_speed_and_were_not_measured_are_a_note(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    text = study(*stages, best=f"{SERVE} --chunk 64 --reasoning-parser x")
    finding = only(found(tmp_path, text), "recommended")
    assert finding.note
    assert "from which it differs: --reasoning-parser x: only how answers are read" in finding.why


def test_a_recommendation_without_a_comparison_is_held_to_the_stages(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    table = (
        "| Case | baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 1005.00 | Total "
        "TPS: 1116.67 (+11.1%) |\n"
    )
    text = study(*stages, summary="| Chunks | +20.0% |")
    assert table in text
    finding = only(found(tmp_path, text.replace(table, "")), "recommended")
    assert "2. Chunks was better by +20.00%" in finding.why


def test_a_command_that_only_other_workloads_were_sent_is_a_note(tmp_path: Path) -> None:
    other = fence(f"{SERVE} --chunk 64", "bash") + fence(
        "# long\n" + block(duration=36.0, output=20_200, input=20_000)
    )
    cells = "Total TPS: 1000.00 | Total TPS: 990.00"
    text = study(
        stage("1. Engine", SERVE, 20.1),
        best=f"{SERVE} --chunk 64",
        other=f"### Other\n\n{other}",
        cells=cells,
    )
    finding = only(found(tmp_path, text), "recommended")
    assert finding.note
    assert "only other workloads were measured with it" in finding.why
    assert "had 1000 tok/s, more than the 990.00 printed with it" in finding.why


# -- scripts


def test_a_script_has_the_value_of_its_results(tmp_path: Path) -> None:
    blocks = "\n".join(
        f"# --chunk {value}\n{block(duration=seconds)}"
        for value, seconds in ((64, 16.75), (128, 17.0))
    )
    text = study(
        stage("1. Engine", SERVE, 20.1),
        f"### 2. Chunks\n\n{fence(f'{SERVE} --chunk 64', 'bash')}\n{fence(blocks)}\n",
    )
    finding = only(found(tmp_path, text), "script")
    assert (finding.says, finding.note) == (f"`{SERVE} --chunk 64`", True)
    assert "--chunk 128" in finding.why
    assert "--chunk 64" not in finding.why
    assert of(tmp_path, "script", text.replace("# --chunk 128", "# --chunk 64")) == []


def test_a_client_sends_as_many_prompts_as_the_results_have(tmp_path: Path) -> None:
    client = (
        "vllm bench serve --dataset-name random --random-input-len 100 --random-output-len "
        "101 --num-prompts 100"
    )
    assert (
        of(tmp_path, "script", study(stage("1. Engine", SERVE, 20.1), setup=fence(client, "bash")))
        == []
    )
    more = stage("1. Engine", SERVE, 20.1, ok=1000, input=100_000, output=101_000)
    finding = only(found(tmp_path, study(more, setup=fence(client, "bash"))), "script")
    assert (finding.says, finding.note) == ("--num-prompts 100", True)
    # Which is told as failures.
    lost = stage("1. Engine", SERVE, 20.1, ok=98, input=9_800, output=9_898)
    assert of(tmp_path, "script", study(lost, setup=fence(client, "bash"))) == []


# -- gains


def test_a_loss_beside_a_gain_of_the_summary_is_noted(tmp_path: Path) -> None:
    def page(tpot: float) -> str:
        tuned = stage("2. Chunks", f"{SERVE} --chunk 64", 16.75, tpot=tpot, in_flight=100)
        return study(
            stage("1. Engine", SERVE, 20.1, in_flight=100), tuned, summary="| Chunks | +20.0% |"
        )

    loss = only(found(tmp_path, page(12.5)), "hidden-loss")
    assert (loss.says, loss.should_be, loss.note) == (
        "mean TPOT 12.50 ms",
        "+25.00%",
        True,
    )
    assert of(tmp_path, "hidden-loss", page(11)) == []


def test_a_small_gain_of_one_run_each_is_noted(tmp_path: Path) -> None:
    base = stage("1. Engine", SERVE, 20.1)
    small = stage("2. Chunks", f"{SERVE} --chunk 64", 19.8)
    finding = only(found(tmp_path, study(base, small, summary="| Chunks | +1.5% |")), "noise")
    assert (finding.says, finding.note) == ("+1.5%", True)
    large = stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    assert of(tmp_path, "noise", study(base, large, summary="| Chunks | +20.0% |")) == []


def test_a_change_that_the_title_leaves_out_counts_over_another_engine_too(tmp_path: Path) -> None:
    engines = stage("1. Engine", SERVE, 30.0) + stage("x", SGLANG, 20.1).replace("### x\n", "")
    tuned = stage(
        "2. Chunked Prefill", f"{SERVE} --enable-chunked-prefill --max-model-len 4096", 16.75
    )
    finding = only(found(tmp_path, study(engines, tuned)), "label")
    assert "its +20.00% over 1. Engine" in finding.why
    assert "it changes --context-len 4096, too" in finding.why
    assert of(tmp_path, "label", study(engines, tuned.replace(" --max-model-len 4096", ""))) == []


def test_a_gain_of_several_servers_of_which_one_ran_is_noted(tmp_path: Path) -> None:
    stages = (
        stage("1. Engine", f"{SERVE} -tp 2", 20.1),
        stage("2. Parallelism", f"{SERVE} -tp 1", 33.5),
    )
    cells = "Total TPS: 1000.00 | Total TPS: 600.00x2 (+20.0%)"
    link = "https://example.org/gpustack\n"  # which is no word of what each GPU does
    text = study(
        *stages, best=f"{SERVE} -tp 1", cells=cells, summary="| Parallelism | +20.0% |", setup=link
    )
    assert {finding.says for finding in of(tmp_path, "extrapolated", text)} == {
        "total 600.00 x 2 tok/s",
        "+20.0%",
    }


# -- latency


def latencies(tmp_path: Path, rule: str, fast: str, slow: str, line: str) -> list[Finding]:
    text = study(
        f"### 1. Engine\n\n#### A\n\n{fence(fast)}\n#### B\n\n{fence(slow)}\n- Summary: {line}\n\n"
    )
    return of(tmp_path, rule, text)


def test_a_tie_is_not_faster(tmp_path: Path) -> None:
    fast, slow = block(duration=20.1, e2el=1_100), block(duration=20.2, e2el=1_102)
    line = (
        "`A` Mean Latency = 1.10s, `B` Mean Latency = 1.10s. `A` is faster by 0.00s (1.00x faster)."
    )
    (finding,) = latencies(tmp_path, "tie", fast, slow, line)
    assert (finding.says, finding.note) == ("faster by 0.00 s", True)
    assert latencies(tmp_path, "tie", fast, slow, line.replace("by 0.00", "by 0.01")) == []


def test_a_candidate_is_not_compared_with_itself(tmp_path: Path) -> None:
    header = "| Option | Optimized | Baseline | Comparison |\n|---|---|---|---|\n"
    text = study(stage("1. Engine", SERVE, 20.1), summary="x").replace(
        "| Option | Gain |\n|---|---|\nx", header + "ROW"
    )
    finding = only(
        found(tmp_path, text.replace("ROW", "| Engine | 1.10s | 1.10s | (1.00x faster) |")), "tie"
    )
    assert finding.why == "Engine: both cells are of 1. Engine"
    assert (
        of(tmp_path, "tie", text.replace("ROW", "| Engine | 1.10s | 1.20s | (1.09x faster) |"))
        == []
    )


def test_a_ratio_of_tpot_that_is_no_time_between_tokens_is_found(tmp_path: Path) -> None:
    line = (
        "`A` Mean Latency = 1.10s, `B` Mean Latency = 2.10s. `A` is faster by 1.00s (1.91x "
        "faster). TPOT = {} ms vs 20.00 ms, reduced by {} ms ({}x faster)."
    )
    slow = block(duration=40.2, e2el=2_100, tpot=20)
    true = block(duration=20.1, e2el=1_100)
    assert (
        latencies(tmp_path, "summary-line", true, slow, line.format("10.00", "10.00", "2.00")) == []
    )
    broken = block(duration=20.1, e2el=1_100, tpot=1)
    (wrong,) = latencies(
        tmp_path, "summary-line", broken, slow, line.format("1.00", "19.00", "20.00")
    )
    assert (wrong.says, wrong.should_be, wrong.note) == ("TPOT reduced, 20.00x", "2x faster", False)


def test_a_run_without_a_steady_state_is_noted(tmp_path: Path) -> None:
    profile = (
        "##### Chat\n\n```yaml\ndataset_name: ShareGPT\nrequest_rate: 10\ntotal_requests: "
        "100\n```\n"
    )

    def run(seconds: float, e2el: float) -> list[Finding]:
        return of(
            tmp_path,
            "unsteady",
            study(stage("1. Engine", SERVE, seconds, e2el=e2el), setup=profile),
        )

    (finding,) = run(15.0, 5_000)
    assert finding.note
    assert (
        "answered 6.67 of 10 req/s, sent in 9.9 s, and a request took 5.00 s: no steady state"
        in finding.why
    )
    assert run(11.0, 1_100) == []  # it kept up
    assert run(60.0, 5_000) == []  # so slow that its requests were there all at once


def test_one_command_twice_is_told_though_guidellm_counts_what_was_in_flight(
    tmp_path: Path,
) -> None:
    def guidellms(seconds: float, e2el: float, cap: int) -> str:
        text = block(duration=seconds, e2el=e2el, cap=cap)
        return fence(SERVE, "bash") + fence(text.replace("Mean E2EL (ms)", "Mean Latency(s)"))

    again = f"### 2. Quantization\n\n{guidellms(16.75, 0.9, 7)}\n"
    text = study(f"### 1. Engine\n\n{guidellms(20.1, 1.1, 11)}\n", again)
    assert "1. Engine" in only(found(tmp_path, text), "repeat").why
    # Another workload.
    assert of(tmp_path, "repeat", text.replace("### 2.", "### Summary\n\n### 2.")) == []


@pytest.mark.parametrize(
    ("bounds", "is_found"),
    [("(+19.0% to +21.5%)", False), ("(+21.0% to +22.0%)", True), ("", True)],
)
def test_a_gain_with_bounds_agrees_with_results_within_them(
    tmp_path: Path, bounds: str, is_found: bool
) -> None:
    stages = (
        stage("1. Engine", SERVE, 20.1),
        stage("2. Chunks", f"{SERVE} --max-num-batched-tokens 64", 16.75),
    )
    text = study(*stages, summary=f"| Chunks | +21.4% {bounds} |")
    assert (
        any(not each.note for each in found(tmp_path, text) if each.rule in ("gain", "result-line"))
        is is_found
    )
