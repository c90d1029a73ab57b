"""Rules about what a page means: what it recommends, compares, credits and announces."""

from pathlib import Path

from loadgen.lab.audit import Finding, audit, grouped
from tests.helpers.audited_pages import SERVE, block, fence, found, only, rules, stage, study


def of(tmp_path: Path, rule: str, text: str) -> list[Finding]:
    return [finding for finding in found(tmp_path, text) if finding.rule == rule]


# -- stages


def test_stages_below_a_section_of_each_engine_are_found_by_the_rows_about_them(
    tmp_path: Path,
) -> None:
    base = stage("1. Engine", SERVE, 20.1)
    tuned = "### 2. Optimizing vLLM\n\n" + stage("x", f"{SERVE} --chunk 64", 16.75).replace(
        "### x", "#### Chunks"
    )
    assert of(tmp_path, "gain", study(base, tuned, summary="| Chunks | +20.0% |")) == []
    wrong = only(found(tmp_path, study(base, tuned, summary="| Chunks | +21.0% |")), "gain")
    assert wrong.should_be == "+20.00%"
    assert "row-without-stage" not in rules(
        found(tmp_path, study(base, tuned, summary="| Chunks | +20.0% |"))
    )


def test_a_row_of_totals_is_the_best_by_the_first_and_no_stage(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    assert rules(found(tmp_path, study(*stages, summary="| Total (vs Baseline) | +20.0% |"))) <= {
        "cell",
        "recommended",
    }
    wrong = only(
        found(tmp_path, study(*stages, summary="| Total (vs Baseline) | +20.2% |")), "gain"
    )
    assert wrong.should_be == "+20.00%"


def test_a_number_that_was_skipped_is_noted(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    assert of(tmp_path, "stage-number", study(*stages)) == []
    gap = only(found(tmp_path, study(stages[0], stages[1].replace("2. ", "4. "))), "stage-number")
    assert (gap.says, gap.note) == ("4. Chunks", True)


# -- what is recommended


def test_the_best_that_was_measured_is_recommended_or_named(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    assert of(tmp_path, "recommended", study(*stages, best=f"{SERVE} --chunk 64")) == []
    missed = only(found(tmp_path, study(*stages)), "recommended")
    assert missed.note
    assert "2. Chunks was better by +20.00%" in missed.why
    unlike = only(found(tmp_path, study(*stages, best=f"{SERVE} --chunk 65")), "recommended")
    assert not unlike.note
    assert "from which it differs: --chunk 65" in unlike.why


def test_a_number_of_another_command_beside_the_recommended_one_is_found(tmp_path: Path) -> None:
    stages = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    cells = "Total TPS: 1000.00 | Total TPS: 1200.00 (+20.0%)"
    finding = only(found(tmp_path, study(*stages, cells=cells)), "recommended")
    assert not finding.note
    assert "it was measured with 1000 tok/s" in finding.why


def test_a_model_that_never_ran_is_not_recommended(tmp_path: Path) -> None:
    both = f"{SERVE}\n```\n\n```bash\nvllm serve acme/Foo-7B-Chat"
    finding = only(
        found(tmp_path, study(stage("1. Engine", SERVE, 20.1), best=both)), "recommended"
    )
    assert "no result on the page is of Foo-7B-Chat" in finding.why


def test_quantization_that_never_ran_is_advice_without_a_result(tmp_path: Path) -> None:
    text = study(
        stage("1. Engine", SERVE, 20.1), setup="It is recommended to use FP8 quantization.\n"
    )
    assert only(found(tmp_path, text), "advice").note
    assert of(tmp_path, "advice", text.replace("### 1. Engine", "### 1. Engine and FP8")) == []


def test_devices_that_the_page_does_not_have_are_not_recommended(tmp_path: Path) -> None:
    text = study(stage("1. Engine", SERVE, 20.1), setup="### Hardware\n\n2 x H100\n")
    assert of(tmp_path, "hardware", text) == []
    finding = only(
        found(tmp_path, text.replace("# Tuning Foo-7B", "# Tuning Foo-7B on A100")), "hardware"
    )
    assert (finding.says, finding.should_be) == ("A100", "H100")


# -- what is compared


def test_a_baseline_that_is_called_default_has_no_flags_of_its_own(tmp_path: Path) -> None:
    cells = "Total TPS: 1000.00 | Total TPS: 1200.00 (+20.0%)"

    def baseline(flags: str) -> list[Finding]:
        stages = (
            stage("1. Engine", f"{SERVE} {flags}", 20.1),
            stage("2. Chunks", f"{SERVE} {flags} --chunk 64", 16.75),
        )
        text = study(*stages, best=f"{SERVE} {flags} --chunk 64", cells=cells)
        return of(
            tmp_path,
            "baseline",
            text.replace("| baseline |", "| baseline (without any optimizations) |"),
        )

    assert baseline("-tp 2 --reasoning-parser x") == []  # without which it cannot be served
    (finding,) = baseline("--max-model-len 4096")
    assert finding.note
    assert "--context-len 4096" in finding.why


def test_a_row_whose_baseline_has_no_parameters_does_not_take_those_above_it(
    tmp_path: Path,
) -> None:
    flags = "- Baseline Parameters:\n\n" + fence("--chunk=1", "bash")
    base, slow = (
        fence(block(duration=20.1)),
        fence(block(duration=40.0, output=20_200, input=20_000, tpot=15, in_flight=12)),
    )
    other = (
        f"### Other Cases\n\n#### Chat\n\n{flags}\n{base}\n#### Long\n\n- Baseline "
        f"Parameters: N/A\n\n{slow}"
    )
    rows = (
        "Total TPS: 1000.00 | Total TPS: 1200.00 (+20.0%) |\n| Long | Total TPS: 1005.00 | "
        "Total TPS: 1500.00 (+49.3%)"
    )
    text = study(stage("1. Engine", "--chunk=1", 20.1), other=other, cells=rows)
    (finding,) = of(tmp_path, "baseline", text)
    assert finding.note
    assert "`--chunk=1`" in finding.why


def test_one_command_with_two_results_is_told_as_it_is(tmp_path: Path) -> None:
    again = (
        stage("1. Engine", SERVE, 20.1),
        stage("2. Chunks", f"{SERVE} --chunk 64", 16.75),
        stage("3. Again", SERVE, 21),
    )
    finding = only(found(tmp_path, study(*again)), "repeat")
    assert finding.note
    assert "a difference of 4.29%" in finding.why
    assert of(tmp_path, "repeat", study(*again[:2], stage("3. Again", f"X=1 {SERVE}", 21))) == []


def test_a_rate_that_was_offered_is_no_gain(tmp_path: Path) -> None:
    lengths = "dataset_name: Random\ndataset_input_tokens: 100\ndataset_output_tokens: 101\n"
    profile = f"{lengths}request_rate: RATE\ntotal_requests: 100"
    stages = stage("1. Engine", SERVE, 100.2), stage("2. Chunks", f"{SERVE} --chunk 64", 99.9)
    cells = "Total TPS: 200.60 | Total TPS: 201.20 (+0.3%)"

    def text(rate: str) -> str:
        return study(
            *stages,
            cells=cells,
            setup=f"#### Busy\n\n{fence(profile.replace('RATE', rate), 'yaml')}",
        )

    finding = only(found(tmp_path, text("1")), "rate-limited")
    assert (finding.says, finding.note) == ("+0.3%", True)
    assert of(tmp_path, "rate-limited", text("1000")) == []


def test_the_time_of_a_request_fits_into_its_run(tmp_path: Path) -> None:
    def page(base: str, tuned: str) -> list[Finding]:
        other = "### Other Cases\n\n" + "".join(
            f"{fence(command, 'bash')}\n"
            f"{fence(f'# BS=1{chr(10)}' + block(duration=seconds, cap=1, in_flight=1))}\n"
            for command, seconds in ((SERVE, 120), (f"{SERVE} --x", 100))
        )
        cells = f"Mean latency: {base}s/req | Mean latency: {tuned}s/req (1.2x faster)"
        text = study(
            stage("1. Engine", SERVE, 20.1),
            stage("2. X", f"{SERVE} --x", 19),
            cells=cells,
            other=other,
        )
        return of(tmp_path, "latency-cell", text.replace("| Chat |", "| Chat BS=1 |"))

    assert page("1.19", "0.99") == []
    assert [f.should_be for f in page("1.30", "0.90")] == ["at most 1.20 s", "1 s"]


# -- what is credited


def test_a_gain_that_two_changes_made_is_not_credited_to_one(tmp_path: Path) -> None:
    base = stage("1. Engine", SERVE, 20.1)
    assert (
        of(tmp_path, "label", study(base, stage("2. Chunks", f"{SERVE} --chunk 64", 16.75))) == []
    )
    finding = only(
        found(tmp_path, study(base, stage("2. Chunks", f"{SERVE} --chunk 64 --eager", 16.75))),
        "label",
    )
    assert "it changes --eager, too" in finding.why
    # No gain.
    assert (
        of(tmp_path, "label", study(base, stage("2. Chunks", f"{SERVE} --chunk 64 --eager", 25)))
        == []
    )


def test_a_candidate_on_what_was_rejected_or_not_on_the_best_is_noted(tmp_path: Path) -> None:
    base, chunks = stage("1. Engine", SERVE, 20.1), stage("2. Chunks", f"{SERVE} --chunk 64", 16.75)
    compiled = stage("3. Compile", f"{SERVE} --chunk 64 --compile", 18)
    drafts = stage("4. Drafts", f"{SERVE} --chunk 64 --compile --draft 1", 19)
    assert (
        "--compile, with which 3. Compile did not win"
        in only(found(tmp_path, study(base, chunks, compiled, drafts)), "base").why
    )
    late = stage("4. Drafts", f"{SERVE} --draft 1", 19)
    finding = only(found(tmp_path, study(base, chunks, compiled, late)), "base")
    assert "not built on the best so far, 2. Chunks" in finding.why
    assert of(tmp_path, "base", study(base, chunks, late)) == []  # where each is held to a default


def test_a_limit_that_is_never_reached_gains_nothing(tmp_path: Path) -> None:
    base = stage("1. Engine", SERVE, 20.1, cap=11)
    finding = only(
        found(tmp_path, study(base, stage("2. Seats", f"{SERVE} --max-num-seqs 512", 19, cap=11))),
        "idle-option",
    )
    assert "never reached by 11 in flight" in finding.why
    assert (
        of(
            tmp_path,
            "idle-option",
            study(base, stage("2. Seats", f"{SERVE} --max-num-seqs 8", 19, cap=11)),
        )
        == []
    )


def test_a_parser_of_answers_gains_nothing(tmp_path: Path) -> None:
    text = study(
        stage("1. Engine", SERVE, 20.1), stage("2. Tools", f"{SERVE} --tool-call-parser x", 16.75)
    )
    assert "has another cause" in only(found(tmp_path, text), "idle-option").why


def test_a_gain_over_another_than_the_best_so_far_is_noted(tmp_path: Path) -> None:
    arms = "".join(
        f"#### {name}\n\n{fence(f'--seats={name}', 'bash')}\n{fence(block(duration=seconds))}\n"
        for name, seconds in (("few", 25.125), ("many", 16.75))
    )
    line = "- Summary: `many` Total TPS = 1200.00, `few` Total TPS = 800.00. "
    line += "`many` is faster by 400.00 tok/s (50.00%).\n\n"
    finding = only(
        found(tmp_path, study(stage("Engine", "--a=1", 20.1), f"### Seats\n\n{arms}{line}")),
        "reference",
    )
    assert (finding.says, finding.should_be, finding.note) == ("50.00%", "+20.00%", True)


# -- what is announced


def test_a_client_asks_for_the_model_and_the_port_of_its_server(tmp_path: Path) -> None:
    def page(server: str, client: str) -> list[tuple[str, str]]:
        setup = fence(f"vllm bench serve {client} --num-prompts 100", "bash")
        findings = of(
            tmp_path, "client", study(stage("1. Engine", server, 20.1), setup=setup, best=server)
        )
        return sorted({(finding.says, finding.should_be) for finding in findings})

    assert page(SERVE, "--model acme/Foo-7B") == []
    assert page(f"{SERVE}-FP8", "--model acme/Foo-7B") == [("acme/Foo-7B", "acme/Foo-7B-FP8")]
    assert page(f"{SERVE}-FP8 --served-model-name acme/Foo-7B", "--model acme/Foo-7B") == []
    sglang = "python3 -m sglang.launch_server --model-path acme/Foo-7B"
    assert page(sglang, "--model acme/Foo-7B") == [("port 8000", "30000")]
    trtllm = "trtllm-serve acme/Foo-7B-FP8"  # which answers whatever model is named
    assert page(trtllm, "--model acme/Foo-7B") == []
    assert page(f"{sglang} --port 8000", "--model acme/Foo-7B") == []
    assert page(sglang, "--model acme/Foo-7B --base-url http://127.0.0.1:30000") == []


SECTION = "## {}\n\n```bash\n{}\n```\n\n"


def test_a_client_is_held_to_the_servers_beside_it_and_at_its_own_line(tmp_path: Path) -> None:
    other = SECTION.format("Chat", "vllm serve acme/Foo-7B-FP8 --port 9")
    beside = SECTION.format("Bench", f"{SERVE} --port 7")
    client = fence("vllm bench serve --model acme/Foo-7B --port 7", "bash")
    assert of(tmp_path, "client", f"# Foo\n\n{other}{beside}{client}{fence(block())}") == []
    page = f"# Foo\n\n{other}## Bench\n\n{client}{fence(block())}"
    wrong = of(tmp_path, "client", page)
    assert [(finding.says, finding.should_be, finding.place.line) for finding in wrong] == [
        ("port 7", "9", 12),
        ("acme/Foo-7B", "acme/Foo-7B-FP8", 12),
    ]
    several = f"# Foo\n\n{other}{SECTION.format('Code', f'{SERVE} --port 7')}## Bench\n\n"
    assert of(tmp_path, "client", f"{several}{client}{fence(block())}") == []


def test_a_page_that_tries_nothing_in_stages_promises_no_model_and_no_load(tmp_path: Path) -> None:
    load = "vllm bench serve --model acme/Bar-13B --random-input-len 9 --random-output-len 9"
    text = SECTION.format("Small", SERVE) + SECTION.format("Large", "vllm serve acme/Bar-13B")
    assert found(tmp_path, f"# Foo-7B\n\n{text}{fence(load, 'bash')}{fence(block())}") == []


def test_a_rate_that_the_block_prints_is_one_that_the_server_keeps(tmp_path: Path) -> None:
    def page(rate: float) -> str:
        line = "Benchmark duration"
        return block().replace(line, f"Request rate configured (RPS): {rate}\n{line}")

    finding = only(found(tmp_path, page(20)), "unsteady")
    assert finding.note
    assert "answered 10 of 20 req/s" in finding.why
    assert found(tmp_path, page(11)) == []
    assert found(tmp_path, page(10_000)) == []  # all at once, and no rate


def test_as_many_succeed_as_the_page_says_it_sends(tmp_path: Path) -> None:
    setup = fence("vllm bench serve --model acme/Foo-7B --num-prompts 120", "bash")
    finding = only(found(tmp_path, study(stage("1. Engine", SERVE, 20.1), setup=setup)), "failures")
    assert (finding.says, finding.should_be, finding.note) == ("100 requests", "120", True)
    assert (
        of(
            tmp_path,
            "failures",
            study(stage("1. Engine", SERVE, 20.1), setup=setup.replace("120", "100")),
        )
        == []
    )


# -- how it is told


def test_findings_of_one_cause_are_one_group_and_the_worst_stands_first(tmp_path: Path) -> None:
    text = study(
        stage("1. Engine", SERVE, 20.1, total=1100),
        stage("2. Chunks", f"{SERVE} --chunk 64", 16.75, total=1900),
    )
    groups = grouped(found(tmp_path, text))
    rates = next(group for group in groups if group.worst.rule == "throughput")
    assert [finding.says for finding in rates.findings] == ["total 1900 tok/s", "total 1100 tok/s"]
    notes = [group.note for group in groups]
    assert notes == sorted(notes)


def test_a_run_in_two_files_is_found_in_the_second(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("a.md", "b.md")]
    Path(names[0]).write_text(
        study(stage("1. Engine", SERVE, 20.1), stage("2. X", f"{SERVE} --x", 19))
    )
    Path(names[1]).write_text(fence(block(duration=19.0)) + "\n" + fence(block(duration=18.0)))
    copied = [finding for finding in audit(*names) if finding.rule == "copied"]
    assert [(finding.place.file, finding.place.line, finding.note) for finding in copied] == [
        (names[1], 2, False)
    ]
    assert not any(finding.rule == "copied" for finding in audit(names[1]))
