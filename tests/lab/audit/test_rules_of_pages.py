"""Rules of a page: a clean page has no finding; each inconsistent change has one."""

from pathlib import Path

import pytest

from loadgen.lab.audit import Finding
from tests.helpers.audited_pages import block, fence, found, only, rules

BASE, TUNED, SLOWER = block(duration=20.1), block(duration=16.75), block(duration=25.0)
LONG_REPLIES = block(duration=40.0, output=20_200, input=20_000, tpot=15, in_flight=12)
LONG_TUNED = block(duration=36.0, output=20_200, input=20_000, tpot=14, in_flight=12)
PAGE = f"""\
# Tuning Foo-7B on H100

## Conclusion

We recommend, for Foo-7B on H100:

{fence("vllm serve acme/Foo-7B --chunk 64", "bash")}
| Case | baseline | Optimized |
|------|----------|-----------|
| **Chat** | Total TPS: 1000.00<br>Mean TPOT(ms): 10.00 | Total TPS: 1200.00 (+20.0%)<br>Mean TPOT(ms): 10.00 |
| **Long** | Total TPS: 1005.00<br>Mean TPOT(ms): 15.00 | Total TPS: 1116.67 (+11.1%)<br>Mean TPOT(ms): 14.00 |

## Setup

### Model

Foo-7B

### Hardware

2 x H100

## Results

### 1. Choosing the Engine

vLLM

{fence("vllm serve acme/Foo-7B", "bash")}
{fence(BASE)}
SGLang

{fence("python3 -m sglang.launch_server --model-path acme/Foo-7B", "bash")}
{fence(SLOWER)}
Result: vLLM (1000.00 tok/s) > SGLang (804.00 tok/s)

### 2. Chunks in vLLM

{fence("vllm serve acme/Foo-7B --chunk 64", "bash")}
{fence(TUNED)}
### Summary of Options

| Option | Improvement |
|--------|-------------|
| Engine | -           |
| Chunk  | +20.0%      |

### Other Cases

{fence("vllm serve acme/Foo-7B", "bash")}
{fence("# long replies" + chr(10) + LONG_REPLIES)}
{fence("vllm serve acme/Foo-7B --chunk 64", "bash")}
{fence("# long replies" + chr(10) + LONG_TUNED)}
"""  # noqa: E501


def changed(tmp_path: Path, *changes: tuple[str, str], times: int = -1) -> list[Finding]:
    """What is found in the page with these changes, each of all its occurrences, or of so many."""
    text = PAGE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, times)
    return found(tmp_path, text)


def test_a_page_that_agrees_with_itself_has_no_finding(tmp_path: Path) -> None:
    assert changed(tmp_path) == []


def test_nor_has_it_where_it_stands_on_few_long_lines(tmp_path: Path) -> None:
    lines = PAGE.replace("<br>", "\n").split("```")
    assert (
        found(
            tmp_path,
            "```".join(" ".join(part.split()) if n % 2 else part for n, part in enumerate(lines)),
        )
        == []
    )


# what is changed into what, the rule that finds it, what it says, what it should be, whether it is
# a note
CHANGES = [
    ("for Foo-7B on", "for Foo-8B on", "model", "Foo-8B", "Foo-7B", False),
    ("path acme/Foo-7B", "path acme/Foo-70B", "model", "Foo-70B", "Foo-7B", False),
    ("2 x H100", "H100", "hardware-count", "H100", "a number of devices", True),
    ("--chunk 64", "--chunk 64 -tp 4", "hardware", "2 x H100", "4 devices", False),
    ("(+20.0%)<", "(+25.0%)<", "percent", "+25.0%", "+20.00%", False),
    ("Mean TPOT(ms): 14.00", "Mean TPOT(ms): 14.50", "cell", "mean TPOT 14.50", "14", False),
    ("Mean TPOT(ms): 14.00", "Mean TPOT(ms): 14.0", "cell", "", "", None),
    (
        "Total TPS: 1200.00 (+20.0%)",
        "Total TPS: 1300.00 (+30.0%)",
        "cell",
        "total 1300.00 tok/s",
        "",
        True,
    ),
    ("(+11.1%)<", "(+11.1%, Success rate: 90.0%)<", "success-rate", "90.0%", "100%", False),
    ("SGLang (804.00", "SGLang (840.00", "result-line", "SGLang 840.00", "804", False),
    (
        "vLLM (1000.00 tok/s) > SGLang (804.00 tok/s)",
        "SGLang (804.00 tok/s) > vLLM (1000.00 tok/s)",
        "result-line",
        "SGLang > vLLM",
        "",
        False,
    ),
    ("| Chunk  | +20.0%", "| Chunk  | +21.0%", "gain", "+21.0%", "+20.00%", False),
    ("| Chunk  | +20.0%", "| Kernel | +20.0%", "row-without-stage", "Kernel", "", False),
    (
        "--chunk 64\n```\n\n|",
        "--chunk 64 --b 1\n```\n\n|",
        "recommended",
        "`vllm serve acme/Foo-7B --chunk 64 --b 1`",
        "",
        False,
    ),
    (
        "# Other Cases\n\n```bash\nvllm serve acme/Foo-7B\n",
        "# Other Cases\n\n```bash\nvllm serve acme/Foo-7B --c 1\n",
        "baseline",
        "`vllm serve acme/Foo-7B --c 1`",
        "`vllm serve acme/Foo-7B`",
        False,
    ),
]


@pytest.mark.parametrize(("old", "new", "rule", "says", "should_be", "note"), CHANGES)
def test_contradiction_of_the_page_is_found(
    tmp_path: Path, old: str, new: str, rule: str, says: str, should_be: str, note: bool | None
) -> None:
    findings = changed(tmp_path, (old, new))
    if note is None:  # fewer digits that say the same
        assert findings == []
        return
    finding = only(findings, rule)
    assert (finding.says, finding.should_be, finding.note) == (says, should_be, note)


@pytest.mark.parametrize(
    ("printed", "is_found"),
    [
        ("+21.0%; +20.4% to +21.6%", False),
        ("+21.0%, +20.4% to +21.6%", False),
        ("+19.0%; +18.0% to +20.0%", False),
        ("+21.0%; +20.8% to +21.2%", True),  # further off than its bounds are wide
        ("+21.0%; of +20.4% and +21.6%", True),
    ],
)
def test_a_change_with_bounds_agrees_with_means_about_as_near(
    tmp_path: Path, printed: str, is_found: bool
) -> None:
    findings = changed(tmp_path, ("Total TPS: 1200.00 (+20.0%)", f"Total TPS: 1200.00 ({printed})"))
    assert ("percent" in rules(findings)) is is_found


def test_a_variant_of_the_model_is_the_model(tmp_path: Path) -> None:
    assert changed(tmp_path, ("path acme/Foo-7B", "path other/Foo-7B-FP8")) == []
    versions = (
        ("### Model\n\nFoo-7B", "### Model\n\nFoo-7B-v1"),
        ("path acme/Foo-7B", "path acme/Foo-7B-v10"),
    )
    assert only(changed(tmp_path, *versions), "model").says == "Foo-7B-v10"


def test_a_draft_model_may_be_recommended_and_served(tmp_path: Path) -> None:
    text = "## Results\n\nAs a draft model we recommend Foo-1B.\n"
    served = "--chunk 64 --speculative-model acme/Foo-1B"
    assert "model" not in rules(changed(tmp_path, ("## Results", text), ("--chunk 64", served)))


def test_result_line_without_a_source_is_noted(tmp_path: Path) -> None:
    finding = only(changed(tmp_path, ("> SGLang (804.00", "> Third (700.00")), "result-line")
    assert (finding.says, finding.note) == ("Third 700.00", True)


def test_digits_that_were_lost_are_noted(tmp_path: Path) -> None:
    block_15 = "Mean TPOT (ms):                          15.00"
    finding = only(
        changed(
            tmp_path, (block_15, block_15.replace("15.00", "15.04")), ("ms): 15.00", "ms): 15.0")
        ),
        "cell",
    )
    assert (finding.says, finding.should_be, finding.note) == ("mean TPOT 15.0", "15.04", True)


def test_a_ratio_upside_down_is_called_so(tmp_path: Path) -> None:
    columns = ("| baseline | Optimized |", "| Optimized | baseline |")
    finding = only(
        changed(tmp_path, columns, ("1005.00<br>Mean TPOT(ms): 15.00", "1005.00 (-11.1%)<br>")),
        "percent",
    )
    assert finding.should_be == "-10.00%"
    assert "the inverse ratio, 1116.67 / 1005.00 - 1" in finding.why
    another = only(
        changed(tmp_path, columns, ("1005.00<br>Mean TPOT(ms): 15.00", "1005.00 (-12.1%)<br>")),
        "percent",
    )
    assert "inverse" not in another.why


def test_a_gain_of_a_wrong_rate_is_that_of_tokens_by_duration(tmp_path: Path) -> None:
    faster = block(duration=16.75, total=1300)
    finding = only(
        changed(
            tmp_path,
            (TUNED, faster),
            ("1200.00 (+20.0%)", "1300.00 (+30.0%)"),
            ("| +20.0%", "| +30.0%"),
        ),
        "percent-of-rates",
    )
    assert (finding.says, finding.should_be) == ("+30.0%", "+20.00%")


def test_a_loss_above_the_gain_beside_it_is_noted(tmp_path: Path) -> None:
    slow = block(duration=36.0, output=20_200, input=20_000, tpot=17, in_flight=12)
    one = only(
        changed(tmp_path, (LONG_TUNED, slow), ("Mean TPOT(ms): 14.00", "Mean TPOT(ms): 17.00")),
        "hidden-loss",
    )
    assert (one.says, one.should_be, one.note) == (
        "mean TPOT 17.00 ms",
        "+13.33%",
        True,
    )
    told = "Mean TPOT(ms): 17.00 (+13.3%)"
    assert changed(tmp_path, (LONG_TUNED, slow), ("Mean TPOT(ms): 14.00", told)) == []


def test_a_stage_without_its_winner_is_noted_and_gains_are_over_the_best_so_far(
    tmp_path: Path,
) -> None:
    winner = block(duration=15.0)
    findings = changed(
        tmp_path,
        (SLOWER, winner),
        ("vLLM (1000.00 tok/s) > SGLang (804.00 tok/s)", "SGLang (1340.00 tok/s)"),
    )
    assert rules(findings) == {"incumbent", "gain", "recommended"}
    assert (only(findings, "incumbent").should_be, only(findings, "incumbent").note) == (
        "SGLang",
        True,
    )
    gain = only(findings, "gain")
    assert gain.should_be == "-10.45%"
    assert "over the best so far (SGLang); +20.0% is over the first arm's 1000" in gain.why


def test_a_winner_that_is_left_is_noted_once(tmp_path: Path) -> None:
    kernels = (
        "### 3. Kernels in "
        f"vLLM\n\n{fence('vllm serve acme/Foo-7B --kernel x', 'bash')}\n{fence(SLOWER)}\n### "
        "Summary"
    )
    changes = (
        (SLOWER, block(duration=15.0)),
        ("SGLang (804.00", "SGLang (1340.00"),
        ("### Summary", kernels),
    )
    only(changed(tmp_path, *changes), "incumbent")


def test_an_arm_that_lost_requests_wins_no_stage(tmp_path: Path) -> None:
    crashed = block(duration=4.0, ok=50, input=5_000, output=5_050, in_flight=40)
    findings = changed(tmp_path, (SLOWER, crashed), (" > SGLang (804.00 tok/s)", ""))
    assert rules(findings) == {"failures"}


def test_a_row_is_about_the_stage_that_its_words_fit_best(tmp_path: Path) -> None:
    serve = fence("vllm serve acme/Foo-7B --chunk 64 --max-num-seqs 4", "bash")
    both = f"{serve}\n{fence(block(duration=18.0))}"
    changes = (
        ("### 2. Chunks", f"### Chunks && Max Num Seqs\n\n{both}\n### 2. Chunks"),
        ("| +20.0% ", "| +7.5%  "),
    )
    assert changed(tmp_path, *changes) == []


def test_arms_of_one_fence_are_called_as_the_comments_above_them(tmp_path: Path) -> None:
    both = fence(f"# 64\n{TUNED}\n# --chunk 128\n{block(duration=18.0)}")
    line = "Result: 64 (1200.00 tok/s) > chunk 128 (1116.76 tok/s)\n\n"
    finding = only(changed(tmp_path, (fence(TUNED), f"{both}\n{line}")), "result-line")
    assert (finding.says, finding.should_be) == ("chunk 128 1116.76", "1116.67")


def test_a_stage_without_a_command_has_not_that_of_the_one_before(tmp_path: Path) -> None:
    text = f"### Kernels && Seats\n\n{fence(block(duration=18.0))}\n### Summary"
    assert changed(tmp_path, ("### Summary", text)) == []


def test_a_cell_of_few_digits_is_of_the_nearest_block(tmp_path: Path) -> None:
    near = block(duration=20.11)  # 999.50 tok/s, of another command
    serve = fence("vllm serve acme/Foo-7B --other", "bash")
    text = f"### 0. Before\n\n{serve}\n{fence(near)}\n### 1. Choosing"
    changes = ("### 1. Choosing", text), ("Total TPS: 1000.00<", "Total TPS: 1000<")
    assert "baseline" not in rules(changed(tmp_path, *changes))


def test_replicas_are_counted_as_the_page_counts_them(tmp_path: Path) -> None:
    half = block(duration=33.5)
    changes = [
        (TUNED, half),
        ("Total TPS: 1200.00 (", "Total TPS: 600.00x2 ("),
        ("--chunk 64", "-tp 1 --chunk 64"),
    ]
    changes += [("acme/Foo-7B\n", "acme/Foo-7B -tp 2\n")]
    # The two servers that are counted never ran, and the chunks are not all that the stage changed.
    assert rules(changed(tmp_path, *changes)) == {"extrapolated", "label"}
    finding = only(changed(tmp_path, *changes, ("Chunk  | +20.0%", "Chunk  | -40.0%")), "gain")
    assert "600 x 2 / 1000 - 1" in finding.why


def test_a_workload_that_is_in_no_table_is_noted(tmp_path: Path) -> None:
    row = next(line for line in PAGE.split("\n") if line.startswith("| **Long**"))
    finding = only(changed(tmp_path, (row + "\n", "")), "unreported")
    assert finding.note
    assert finding.says == "long replies"


def test_run_printed_in_two_stages_is_found(tmp_path: Path) -> None:
    again = (
        "### 3. Kernels in "
        f"vLLM\n\n{fence('vllm serve acme/Foo-7B --kernel x', 'bash')}\n{fence(TUNED)}\n### "
        "Summary"
    )
    finding = only(changed(tmp_path, ("### Summary", again)), "duplicate")
    assert "every number is that of 2. Chunks in vLLM" in finding.why


def test_a_run_that_is_shown_twice_as_what_it_is_is_no_second_treatment(tmp_path: Path) -> None:
    assert changed(tmp_path, (fence(TUNED), fence(TUNED) + "\n" + fence(TUNED))) == []


def test_a_run_that_is_shown_again_among_other_cases_is_no_second_treatment(tmp_path: Path) -> None:
    again = (
        "### Other "
        f"Cases\n\n{fence('vllm serve acme/Foo-7B', 'bash')}\n{fence('# chat' + chr(10) + BASE)}\n"
    )
    finding = only(changed(tmp_path, ("### Other Cases\n\n", again)), "reprinted")
    assert (finding.says, finding.note) == ("chat, Other Cases", True)
    assert "1. Choosing the Engine, vLLM (line 37): one run, printed twice" in finding.why
    assert len(changed(tmp_path, ("### Other Cases\n\n", again))) == 1


def test_a_combination_changes_what_its_title_says(tmp_path: Path) -> None:
    base = "vllm serve acme/Foo-7B"

    def stage(flags: str) -> list[Finding]:
        block_of_it = fence(block(duration=18.0))
        text = (
            "### Chunks && Max Num "
            f"Seqs\n\n{fence(f'{base} {flags}', 'bash')}\n{block_of_it}\n### Summary"
        )
        return changed(tmp_path, ("### Summary", text))

    assert stage("--chunk 64 --max-num-seqs 4") == []
    assert (
        "it changes more than its title says: --speed:"
        in only(stage("--chunk 64 --max-num-seqs 4 --speed fast"), "label").why
    )


# -- work


def test_replies_shorter_than_asked_are_noted(tmp_path: Path) -> None:
    asked = "- Long: 200 input tokens, 210 output tokens\n\n## Results"
    findings = changed(tmp_path, ("## Results", asked))
    assert [(finding.says, finding.should_be) for finding in findings] == [
        ("20200 output tokens", "21000")
    ] * 2
    assert all(finding.note and "96.2% of 100 x 210" in finding.why for finding in findings)
    assert changed(tmp_path, ("## Results", asked.replace("210", "203"))) == []
    another = only(changed(tmp_path, ("## Results", asked.replace("200", "120"))), "announced")
    assert another.says == "Long: 120 tokens in, 210 out"
    # Which a template made longer.
    assert len(changed(tmp_path, ("## Results", asked.replace("200", "197")))) == 2


def test_arms_whose_replies_differ_did_not_the_same_work(tmp_path: Path) -> None:
    less = block(duration=16.75, output=9_800, input=10_300)
    finding = only(changed(tmp_path, (TUNED, less)), "work")
    assert (finding.says, finding.note) == ("9800 output tokens", True)


def test_an_arm_that_lost_requests_is_noted_with_whose_prompts_were_left(tmp_path: Path) -> None:
    crashed = block(duration=8.375, ok=50, input=4_950, output=5_100, in_flight=40)
    finding = only(changed(tmp_path, (TUNED, crashed)), "failures")
    assert finding.note
    assert "50.0% of the requests" in finding.why
    assert "other prompts" not in finding.why
    short = block(duration=8.375, ok=50, input=1_000, output=9_050, in_flight=40)
    assert (
        "20.0 input tokens each against 100.0"
        in only(changed(tmp_path, (TUNED, short)), "failures").why
    )


def test_summary_lines_are_held_to_their_numbers_and_to_the_blocks(tmp_path: Path) -> None:
    fast, slow = (
        block(duration=16.75, e2el=2_100, tpot=20, in_flight=20),
        block(duration=20.1, e2el=1_100),
    )
    line = (
        "- Summary: `B` Total TPS = 1200.00, `A` Total TPS = 1000.00. `B` is faster by 200.00 "
        "tok/s (20.00%); Mean TPOT = 20.00 ms vs 10.00 ms, increased by 10.00 ms (100.00% slower)."
    )
    page = f"### A\n\n{fence(slow)}\n### B\n\n{fence(fast)}\n"
    assert found(tmp_path, page + line) == []
    wrong = only(found(tmp_path, page + line.replace("(20.00%)", "(16.67%)")), "summary-line")
    assert (wrong.says, wrong.should_be) == ("16.67%", "20.00%")
    turned = line.replace("20.00 ms vs 10.00", "10.00 ms vs 20.00").replace(
        "increased by 10.00 ms (100", "reduced by 10.00 ms (50"
    )
    opposite = only(found(tmp_path, page + turned), "summary-line")
    assert (opposite.says, opposite.should_be) == ("TPOT reduced by 50.00%", "+100.00%")
