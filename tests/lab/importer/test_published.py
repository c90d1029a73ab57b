"""The five pages of the performance lab, imported: published results and their true percentages.

Each row has its arithmetic above it, made by hand of what the blocks print: throughputs, or tokens
and durations.
"""

import pytest

from loadgen.lab.study.execute import publications
from loadgen.lab.study.execute.findings import Verdict
from loadgen.lab.study.report.findings_text import time_spent
from tests.helpers.imported_files import achieved, arm, change, page

QWEN_32B, QWEN_235B, QWEN_14B, QWEN_9B, QWEN_30B = (
    "qwen3-32b-a100",
    "qwen3-235b-a22b-a100",
    "qwen3-14b-h100",
    "qwen3.5-9b-h100",
    "qwen3-30b-a3b-910b",
)
TUNED_9B = "Max Num Seqs && Performance Mode/max_seqs=512 performance_mode=throughput"

# page, step, arm, workload, what it achieved (total tokens/s of the box), % beside the reference
# and the baseline. Where two quotients are told the first is that beside the reference; those of
# Qwen3.5-9B are of durations, since all arms had the same tokens: 342058 + 281412 = 623470 of
# ShareGPT.
GOLDEN = [
    # 8403.97 / 6595.66
    (QWEN_14B, "engine", "sglang", "sharegpt", 8403.97, "+27.42", "+27.42"),
    # 8315.15 / 6595.66
    (QWEN_14B, "engine", "trtllm", "sharegpt", 8315.15, "+26.07", "+26.07"),
    # 10426.27 / 8403.97; / 6595.66
    (QWEN_14B, "quantization", "fp8", "sharegpt", 10426.27, "+24.06", "+58.08"),
    # 10434.44 / 10426.27; / 6595.66
    (
        QWEN_14B,
        "attention backend",
        "attention_backend=fa3",
        "sharegpt",
        10434.44,
        "+0.08",
        "+58.20",
    ),
    # 9123.34 / 10426.27; / 6595.66
    (
        QWEN_14B,
        "attention backend",
        "attention_backend=flashinfer",
        "sharegpt",
        9123.34,
        "-12.50",
        "+38.32",
    ),
    # 10055.13 / 10426.27; / 6595.66
    (
        QWEN_14B,
        "attention backend",
        "attention_backend=triton",
        "sharegpt",
        10055.13,
        "-3.56",
        "+52.45",
    ),
    # 10426.27 / 6595.66
    (QWEN_14B, "confirmation", "quantization/fp8", "sharegpt", 10426.27, "+58.08", "+58.08"),
    # 16884.75 / 5796.73
    (QWEN_14B, "confirmation", "quantization/fp8", "short", 16884.75, "+191.28", "+191.28"),
    # 14764.26 / 10597.19
    (QWEN_14B, "confirmation", "quantization/fp8", "medium", 14764.26, "+39.32", "+39.32"),
    # 12257.62 / 9218.03
    (QWEN_14B, "confirmation", "quantization/fp8", "long", 12257.62, "+32.97", "+32.97"),
    # 10014.29 / 8298.56
    (QWEN_14B, "confirmation", "quantization/fp8", "very-long", 10014.29, "+20.68", "+20.68"),
    # 1398.38 / 1730.98
    (QWEN_32B, "engine", "sglang", "sharegpt", 1398.38, "-19.21", "-19.21"),
    # 2054.21 / 1730.98
    (QWEN_32B, "engine", "trtllm", "sharegpt", 2054.21, "+18.67", "+18.67"),
    # 1563.33 / 2054.21; / 1730.98
    (QWEN_32B, "quantization", "vllm fp8", "sharegpt", 1563.33, "-23.90", "-9.69"),
    # 1767.21 / 2054.21; / 1730.98
    (QWEN_32B, "quantization", "vllm awq", "sharegpt", 1767.21, "-13.97", "+2.09"),
    # 1897.50 / 2054.21; / 1730.98
    (
        QWEN_32B,
        "max batched tokens",
        "max_batched_tokens=16384",
        "sharegpt",
        1897.50,
        "-7.63",
        "+9.62",
    ),
    # 1627.65 / 2054.21; / 1730.98
    (
        QWEN_32B,
        "max batched tokens",
        "max_batched_tokens=32768",
        "sharegpt",
        1627.65,
        "-20.77",
        "-5.97",
    ),
    # 3535.54 / 2656.71
    (QWEN_32B, "confirmation", "long prompts/chunked", "short", 3535.54, "+33.08", "+33.08"),
    # 2715.90 / 2521.38
    (QWEN_32B, "confirmation", "long prompts/chunked", "medium", 2715.90, "+7.71", "+7.71"),
    # 2037.67 / 1837.08
    (QWEN_32B, "confirmation", "long prompts/chunked", "long", 2037.67, "+10.92", "+10.92"),
    # 1580.36 / 1798.45
    (QWEN_32B, "confirmation", "long prompts/chunked", "very-long", 1580.36, "-12.13", "-12.13"),
    # 4635.31 / 3792.50
    (QWEN_235B, "engine", "sglang", "sharegpt", 4635.31, "+22.22", "+22.22"),
    # 3740.89 / 3792.50
    (QWEN_235B, "quantization", "fp8", "sharegpt", 3740.89, "-1.36", "-1.36"),
    # 2 * 3019.19 / 3740.89; / 3792.50
    (QWEN_235B, "parallelism", "tp4", "sharegpt", 6038.38, "+61.42", "+59.22"),
    # 2 * 2814.47 / 3740.89; / 3792.50
    (QWEN_235B, "parallelism", "tp4 ep4", "sharegpt", 5628.94, "+50.47", "+48.42"),
    # 2 * 3025.05 / (2 * 3019.19); / 3792.50
    (
        QWEN_235B,
        "max batched tokens",
        "max_batched_tokens=4096",
        "sharegpt",
        6050.10,
        "+0.19",
        "+59.53",
    ),
    # 2 * 3003.01 / (2 * 3019.19); / 3792.50
    (
        QWEN_235B,
        "max batched tokens",
        "max_batched_tokens=8192",
        "sharegpt",
        6006.02,
        "-0.54",
        "+58.37",
    ),
    # 2 * 3019.19 / 3792.50
    (QWEN_235B, "confirmation", "parallelism/tp4", "sharegpt", 6038.38, "+59.22", "+59.22"),
    # 2 * 4961.66 / 7449.43
    (QWEN_235B, "confirmation", "parallelism/tp4", "short", 9923.32, "+33.21", "+33.21"),
    # 2 * 5333.91 / 9342.67
    (QWEN_235B, "confirmation", "parallelism/tp4", "medium", 10667.82, "+14.18", "+14.18"),
    # 2 * 4633.41 / 8170.72
    (QWEN_235B, "confirmation", "parallelism/tp4", "long", 9266.82, "+13.41", "+13.41"),
    # 2 * 4132.51 / 6657.49
    (QWEN_235B, "confirmation", "parallelism/tp4", "very-long", 8265.02, "+24.15", "+24.15"),
    # 4712.47 / 1227.19
    (QWEN_30B, "engine", "mindie", "sharegpt", 4712.47, "+284.00", "+284.00"),
    # 4539.88 / 4712.47; / 1227.19
    (QWEN_30B, "quantization", "w8a8", "sharegpt", 4539.88, "-3.66", "+269.94"),
    # 4712.47 / 1227.19
    (QWEN_30B, "confirmation", "engine/mindie", "sharegpt", 4712.47, "+284.00", "+284.00"),
    # 15040.15 / 5340.68
    (QWEN_30B, "confirmation", "engine/mindie", "short", 15040.15, "+181.61", "+181.61"),
    # 15591.71 / 7843.85
    (QWEN_30B, "confirmation", "engine/mindie", "medium", 15591.71, "+98.78", "+98.78"),
    # 13362.49 / 5881.36
    (QWEN_30B, "confirmation", "engine/mindie", "long", 13362.49, "+127.20", "+127.20"),
    # 10830.52 / 3704.57
    (QWEN_30B, "confirmation", "engine/mindie", "very-long", 10830.52, "+192.36", "+192.36"),
    # 324.35 / 66.84
    (QWEN_30B, "confirmation", "engine/mindie", "sharegpt-bs4", 324.35, "+385.26", "+385.26"),
    # 623470 / 96.01; 54.74 / 96.01
    (QWEN_9B, "Engine", "SGLang", "sharegpt", 6493.80, "-42.99", "-42.99"),
    # 623470 / 56.47; 54.74 / 56.47
    (QWEN_9B, "Prefix Cache", "on", "sharegpt", 11040.73, "-3.06", "-3.06"),
    # 623470 / 54.66; 54.74 / 54.66
    (QWEN_9B, "Performance Mode", "throughput", "sharegpt", 11406.33, "+0.15", "+0.15"),
    # 623470 / 54.89; 54.74 / 54.89
    (QWEN_9B, "Max Num Seqs", "max_seqs=512", "sharegpt", 11358.54, "-0.27", "-0.27"),
    # 623470 / 54.87; 54.74 / 54.87
    (QWEN_9B, "Max Num Seqs", "max_seqs=1024", "sharegpt", 11362.68, "-0.24", "-0.24"),
    # 623470 / 55.28; 54.74 / 55.28
    (QWEN_9B, "Max Num Seqs", "max_seqs=2048", "sharegpt", 11278.40, "-0.98", "-0.98"),
    # 623470 / 54.56; 54.74 / 54.56
    (
        QWEN_9B,
        "Max Batched Tokens && Performance Mode",
        "max_batched_tokens=24576 performance_mode=throughput",
        "sharegpt",
        11427.24,
        "+0.33",
        "+0.33",
    ),
    # 623470 / 54.20; 54.74 / 54.20
    (
        QWEN_9B,
        "Max Batched Tokens && Performance Mode",
        "max_batched_tokens=32768 performance_mode=throughput",
        "sharegpt",
        11503.14,
        "+1.00",
        "+1.00",
    ),
    # 623470 / 57.32; 54.74 / 57.32
    (
        QWEN_9B,
        "Max Num Seqs && Performance Mode",
        "max_seqs=256 performance_mode=throughput",
        "sharegpt",
        10877.01,
        "-4.50",
        "-4.50",
    ),
    # 623470 / 53.72; 54.74 / 53.72
    (
        QWEN_9B,
        "Max Num Seqs && Performance Mode",
        "max_seqs=512 performance_mode=throughput",
        "sharegpt",
        11605.92,
        "+1.90",
        "+1.90",
    ),
    # 623470 / 55.33; 54.74 / 55.33
    (
        QWEN_9B,
        "Max Num Seqs && Max Batched Tokens && Performance Mode",
        "max_batched_tokens=32768 max_seqs=512 performance_mode=throughput",
        "sharegpt",
        11268.21,
        "-1.07",
        "-1.07",
    ),
    # 623470 / 54.48; 54.74 / 54.48
    (
        QWEN_9B,
        "Max Num Seqs && Max Batched Tokens && Performance Mode",
        "max_batched_tokens=49152 max_seqs=512 performance_mode=throughput",
        "sharegpt",
        11444.02,
        "+0.48",
        "+0.48",
    ),
    # 623470 / 54.07; 54.74 / 54.07
    (
        QWEN_9B,
        "Max Num Seqs && Max Batched Tokens && Performance Mode",
        "max_batched_tokens=49152 max_seqs=768 performance_mode=throughput",
        "sharegpt",
        11530.79,
        "+1.24",
        "+1.24",
    ),
    # (23313 + 131530) / 12.27; / (623470 / 54.74)
    (QWEN_9B, "Speculative Decoding", "mtp 4", "sharegpt", 12619.64, "+10.80", "+10.80"),
    # 623470 / 53.72; 54.74 / 53.72
    (
        QWEN_9B,
        "confirmation",
        "Max Num Seqs && Performance Mode/max_seqs=512 performance_mode=throughput",
        "sharegpt",
        11605.92,
        "+1.90",
        "+1.90",
    ),
    # 1161932 / 39.10; 43.00 / 39.10
    (
        QWEN_9B,
        "confirmation",
        "Max Num Seqs && Performance Mode/max_seqs=512 performance_mode=throughput",
        "throughput",
        29716.93,
        "+9.97",
        "+9.97",
    ),
    # 3210993 / 100.13; 100.89 / 100.13
    (
        QWEN_9B,
        "confirmation",
        "Max Num Seqs && Performance Mode/max_seqs=512 performance_mode=throughput",
        "long-context",
        32068.24,
        "+0.76",
        "+0.76",
    ),
    # 601982 / 214.98; 214.96 / 214.98
    (
        QWEN_9B,
        "confirmation",
        "Max Num Seqs && Performance Mode/max_seqs=512 performance_mode=throughput",
        "generation-heavy",
        2800.18,
        "-0.01",
        "-0.01",
    ),
]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}-{row[3]}")
def test_an_arm_has_its_published_throughput_and_the_right_percentages(row: tuple) -> None:
    name, step, of, workload, expected, beside_reference, beside_baseline = row
    findings = page(name).findings
    value = achieved(findings, step, of, workload)
    reference = next(each for each in findings.steps if each.step.name == step).reference
    assert value == pytest.approx(expected, abs=0.005)
    assert change(value, achieved(findings, step, reference, workload)) == beside_reference
    assert (
        change(value, achieved(findings, "confirmation", "baseline", workload)) == beside_baseline
    )
    if workload == findings.study.objective.workload:
        assert arm(findings, step, of).values == (value,)


# page, what is imported, and what is left out since it was printed twice
@pytest.mark.parametrize(
    ("name", "imported", "twice"),
    [
        (QWEN_32B, "15 results and 2 failed commands", 0),
        (QWEN_235B, "15 results", 0),
        (QWEN_14B, "15 results", 0),
        (QWEN_9B, "21 results", 3),
        (QWEN_30B, "13 results and 1 failed command", 0),
    ],
)
def test_all_that_a_page_has_is_placed_and_counted_alike(
    name: str, imported: str, twice: int
) -> None:
    (told,), findings = page(name).told, page(name).findings
    assert (publications.counted(told.imported), told.unplaced, told.again) == (imported, 0, 0)
    assert time_spent(findings) == f"{imported} published"
    assert sum("left out: it has the same numbers as" in line for line in told.lines) == twice


@pytest.mark.parametrize("name", [QWEN_32B, QWEN_235B, QWEN_14B, QWEN_9B, QWEN_30B])
def test_the_golden_rows_are_all_that_achieved_anything_beside_a_reference(name: str) -> None:
    told = {
        (step.step.name, each.name, workload)
        for step in page(name).findings.steps
        for each in step.arms
        for trial in each.trials
        for workload in trial.runs
        if each.name != step.reference
        and (step.step.name == "confirmation" or workload in each.planned.workloads)
    }
    more = {("long prompts", "chunked", "very-long")}  # stands in the confirmation too
    assert told - more == {row[1:4] for row in GOLDEN if row[0] == name}


def test_throughput_of_two_servers_doubles_the_measured_one() -> None:
    found = arm(page(QWEN_235B).findings, "parallelism", "tp4")
    assert found.trials[0].runs["sharegpt"].summary["total_token_throughput"] == 3019.19
    assert found.values == (2 * 3019.19,)
    assert len(found.planned.launches) == 1


def test_gain_of_two_servers_is_half_of_the_printed_one() -> None:
    findings = page(QWEN_235B).findings
    best = max(value for step in findings.steps[:2] for each in step.arms for value in each.values)
    assert best == 4635.31
    # 2 * 3019.19 / 4635.31, not +59.2
    assert change(arm(findings, "parallelism", "tp4").values[0], best) == "+30.27"


@pytest.mark.parametrize(
    ("name", "adopted"),
    [
        (
            QWEN_32B,
            {"engine": "trtllm", "long prompts": "chunked", "confirmation": "long prompts/chunked"},
        ),
        (QWEN_235B, {"engine": "sglang", "parallelism": "tp4", "confirmation": "parallelism/tp4"}),
        (QWEN_14B, {"engine": "sglang", "quantization": "fp8", "confirmation": "quantization/fp8"}),
        (
            QWEN_9B,
            {
                "Max Num Seqs && Performance Mode": "max_seqs=512 performance_mode=throughput",
                "confirmation": TUNED_9B,
            },
        ),
        (QWEN_30B, {"engine": "mindie", "confirmation": "engine/mindie"}),
    ],
)
def test_arms_a_page_continues_with_are_adopted_uncompared(
    name: str, adopted: dict[str, str]
) -> None:
    findings = page(name).findings
    assert {step.step.name: step.won[0] for step in findings.steps if step.won} == adopted
    for step in findings.steps:
        assert step.noise is None
        for each in step.arms:
            assert each.comparison is None
            assert (each.verdict is Verdict.AUTHORS_CHOICE) == (each.name in step.won)


@pytest.mark.parametrize(
    ("name", "step", "of", "verdict", "why"),
    [
        (
            QWEN_32B,
            "quantization",
            "trtllm fp8",
            Verdict.FAILED,
            "crash: RuntimeError: Unsupported SM version for FP8 block scaling GEMM",
        ),
        (QWEN_32B, "quantization", "trtllm awq", Verdict.FAILED, "crash: KeyError: 'weight'"),
        (QWEN_32B, "quantization", "vllm awq", Verdict.PUBLISHED, ""),
        (QWEN_32B, "engine", "vllm of its own context", Verdict.NOT_RUN, "no results published"),
        (
            QWEN_32B,
            "long prompts",
            "chunked",
            Verdict.AUTHORS_CHOICE,
            "no results on sharegpt published",
        ),
        (QWEN_32B, "engine", "vllm", Verdict.REFERENCE, ""),
        (
            QWEN_32B,
            "confirmation",
            "baseline",
            Verdict.REFERENCE,
            "very-long, long, medium, short: of `vllm serve Qwen/Qwen3-32B`",
        ),
        (
            QWEN_9B,
            "Speculative Decoding",
            "mtp 4",
            Verdict.INFEASIBLE,
            "success rate 51.4%, at least 99.0% is required",  # 514 / 1000
        ),
        (
            QWEN_30B,
            "prefix cache",
            "on",
            Verdict.FAILED,
            "crash: crashed: no such feature for this model",
        ),
    ],
)
def test_arm_has_its_published_verdict(
    name: str, step: str, of: str, verdict: Verdict, why: str
) -> None:
    found = arm(page(name).findings, step, of)
    assert (found.verdict, found.why) == (verdict, why)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            QWEN_32B,
            ":283: its command names the unknown model Qwen/Qwen3-14B; taken for Qwen/Qwen3-32B",
        ),
        (
            QWEN_32B,
            ":352: the page shows it as the baseline's, but its command is that of engine/vllm of "
            "its own context",
        ),
        (
            QWEN_30B,
            ":176: its command names the unknown model vllm-ascend/Qwen3-8B-W8A8; taken for "
            "./Qwen3-30B-A3B-W8A8; its command does not say tensor_parallel, context_len, which "
            "every server of the study has",
        ),
        (QWEN_9B, "(block 14, Batch Token 32k and Seqs 512): left out: it has the same numbers as"),
        (QWEN_9B, "(block 1, vLLM): Engine/vLLM, sharegpt: 11389.66 tok/s (printed: 11527.14)"),
    ],
)
def test_corrections_of_printed_values_are_listed(name: str, said: str) -> None:
    assert said in page(name).lines


def test_a_run_that_several_steps_rest_on_is_counted_once() -> None:
    taken = page(QWEN_9B)
    steps = [step for step in taken.findings.steps if step.arm(step.reference).trials]
    assert len({step.arm(step.reference).trials[0].request for step in steps}) < len(steps)
    assert len(taken.findings.trials) == len(taken.trials) == 21
