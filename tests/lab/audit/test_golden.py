"""The mistakes of five published pages, each found at its place, and a clean page of ours."""

import re

import pytest

from loadgen.lab.audit import Finding
from tests.helpers.audited_pages import published

QWEN_32B, QWEN_235B, QWEN_14B, QWEN_9B, QWEN_30B = (
    "qwen3-32b-a100",
    "qwen3-235b-a22b-a100",
    "qwen3-14b-h100",
    "qwen3.5-9b-h100",
    "qwen3-30b-a3b-910b",
)
NOTE = True


# page, line or what stands in the place, rule, what is said, what it should be, part of why; NOTE
GOLDEN = [
    (QWEN_32B, 8, "model", "Qwen3-14B", "Qwen3-32B", ""),
    (QWEN_32B, 277, "model", "Qwen3-14B", "Qwen3-32B", ""),
    (QWEN_32B, 23, "percent", "-13.8%", "-12.13%", "1580.36 / 1798.45 - 1"),
    (
        QWEN_32B,
        12,
        "recommended",
        "--enable_chunked_prefill",
        "",
        "2054.21 tok/s printed with it are those of `trtllm-serve Qwen/",
    ),
    (QWEN_32B, 346, "baseline", "`vllm serve Qwen/Qwen3-32B`", "--max-model-len 32768", "line 85"),
    (QWEN_32B, 46, "hardware-count", "NVIDIA A100 GPUs", "a number of devices", "", NOTE),
    (
        QWEN_32B,
        20,
        "hidden-loss",
        "1885.18",
        "+256.66%",
        "it went from 528.57 to 1885.18 ms, and the page prints the gain of +33.1%",
        NOTE,
    ),
    (QWEN_32B, 356, "work", "7699 output tokens", "10000", "77.0%", NOTE),
    (QWEN_32B, 464, "work", "7880 output tokens", "10000", "7699", NOTE),
    (QWEN_235B, 150, "incumbent", "vLLM", "SGLang", "4635.31", NOTE),
    (QWEN_235B, 321, "gain", "+59.2%", "+30.27%", "3019.19 x 2 / 4635.31"),
    (QWEN_235B, 322, "row-without-stage", "Attention Backend", "", ""),
    (QWEN_14B, 180, "result-line", "SGLang 8424.86", "8403.97", ""),
    (QWEN_14B, 305, "result-line", "+27.7%", "+27.42%", "8403.97 / 6595.66"),
    (QWEN_14B, 306, "result-line", "+23.8%", "+24.06%", "10426.27 / 8403.97"),
    (QWEN_14B, 175, "itl-coalesced", "median ITL 0.12 ms", "", "84.78"),
    (QWEN_9B, "block 19,", "tpot", "mean TPOT 34.63", "132.57", "4433.02 / 128"),
    (QWEN_9B, "block 21,", "tpot", "mean TPOT 10.21", "69.28", "1021.12 / 100"),
    (
        QWEN_9B,
        "block 23,",
        "tpot",
        "mean TPOT 0.33",
        "8.72",
        "0.03, is TTFT by output tokens, 55.17 / 2000",
    ),
    (
        QWEN_9B,
        "Choosing the Inference Engine|SGLang",
        "summary-line",
        "reduced by 89.11%",
        "+74.97%",
        "80.26 ms for vLLM, 45.87",
    ),
    (QWEN_9B, "block 19,", "itl-zero", "mean ITL 0", "132.57", "128"),
    (QWEN_9B, "block 13,", "peak-throughput", "34751436.57", "at most 281412", ""),
    (QWEN_9B, "block 1,", "throughput", "total 11527.14", "11389", "+1.21%"),
    (QWEN_9B, "block 2,", "throughput", "total 6499.41", "6493", "+0.09%", NOTE),
    (QWEN_9B, "block 19,", "throughput", "total 29822.16", "27021", "+10.36%"),
    (QWEN_9B, "block 20,", "throughput", "total 34470.14", "29716", "+15.99%"),
    (QWEN_9B, "block 21,", "throughput", "total 32416.84", "31826", "+1.85%"),
    (QWEN_9B, "block 23,", "throughput", "total 2973.42", "2800.44", "+6.18%"),
    (QWEN_9B, "block 24,", "throughput", "total 3025.11", "2800.18", "+8.03%"),
    (QWEN_9B, "block 4,", "throughput", "total 15059.89", "12619", "+19.34%"),
    (QWEN_9B, 4, "percent-of-rates", "+15.59%", "+9.97%", "39.10 s"),
    (QWEN_9B, 8, "percent-of-rates", "+1.74%", "-0.01%", ""),
    (QWEN_9B, 2, "percent-of-rates", "+2.09%", "+1.90%", ""),
    (QWEN_9B, 13, "success-rate", "51.5%", "51.40%", "514 / 1000"),
    (
        QWEN_9B,
        "block 4,",
        "failures",
        "514 requests",
        "1000",
        "45.4 input tokens each against 342.1",
        NOTE,
    ),
    (
        QWEN_9B,
        "block 14,",
        "duplicate",
        "&& Performance Mode, Batch Token 32k and Seqs 512: total 11333.89",
        "",
        "one run, published as two",
    ),
    (QWEN_9B, "block 13,", "label", "Max Num Seqs && Max Batched Tokens", "", "--performance-mode"),
    (QWEN_9B, 2, "noise", "+2.09%", "", "SD 0.86% (df 6)", NOTE),
    (QWEN_30B, 171, "model", "Qwen3-8B-W8A8", "Qwen3-30B-A3B", ""),
    (QWEN_30B, 46, "hardware", "A single Ascend 910B NPU", "2 devices", "line 84 takes 2"),
    (QWEN_30B, 23, "cell", "mean TPOT 277.5", "277.51", "line 260", NOTE),
    (QWEN_30B, 314, "itl-diluted", "mean ITL 234.36", "312.49 ms", "3/4"),
    (QWEN_32B, 446, "itl-diluted", "mean ITL 396.42", "528.57 ms", "3/4"),
    (QWEN_32B, 554, "itl-diluted", "mean ITL 1413.87", "1885.18 ms", "3/4"),
    (QWEN_14B, 523, "itl-diluted", "mean ITL 556.73", "927.88 ms", "3/5"),
    (QWEN_30B, 329, "peak-concurrency", "7 concurrent", "at most 4", "", NOTE),
    (QWEN_30B, 465, "peak-concurrency", "9 concurrent", "at most 4", "", NOTE),
    (QWEN_30B, 320, "unreported", "ShareGPT batch size 4", "a row", "66.84 and 324.35", NOTE),
]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_each_known_mistake_is_found_in_its_place_with_its_arithmetic(row: tuple) -> None:
    page, place, rule, says, should_be, why, *note = row
    found = [
        finding for finding in published(page) if finding.rule == rule and is_at(finding, place)
    ]
    fitting = [f for f in found if says in f.says and should_be in f.should_be and why in f.why]
    assert len(fitting) == 1, found
    assert fitting[0].note is bool(note)


def is_at(finding: Finding, place: int | str) -> bool:
    if isinstance(place, int):
        return finding.place.line == place and not finding.place.within
    return bool(re.search(place, finding.place.within))


def test_a_true_ratio_of_gaps_to_tokens_is_no_finding() -> None:
    of_4_tokens = range(430, 454)
    assert [f for f in published(QWEN_30B) if f.place.line in of_4_tokens] == []
