"""SGLang's block and its keys, as its own functions write them of the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.config.slo import parse_goodput
from loadgen.document import Code, Note
from loadgen.report.result import RunResult
from loadgen.report.result.sglang_numbers import KEYS
from loadgen.report.tool_block import sglang_block
from tests.helpers.result_schema import problems
from tests.helpers.run_facts import answered, measured, per_event, result, steady
from tests.helpers.run_page_parts import blocks
from tests.helpers.saved_json import render

GOLDEN = Path(__file__).parent / "golden"
THEIRS: dict[str, Any] = json.loads((GOLDEN / "sglang-result.json").read_text())
ARGUMENTS = {
    "tag": "nightly",
    "backend": "sglang-oai-chat",
    "dataset_name": "random",
    "random_input_len": 64,
}
SETTINGS = RunSettings(
    backend="openai-chat",
    request_rate=8.0,
    metric_percentiles="99,90,95",
    goodput=("ttft:25", "tpot:10", "e2el:100"),
    sglang_result=ARGUMENTS,
)


def a_run(settings: RunSettings = SETTINGS) -> dict[str, Any]:
    records = [steady(i, due=i * 100, ttft=20 + i, gap=10, n=5) for i in range(10)]
    records.append(answered(10, due=1000, tokens=[1020], closed=1021))
    return result(measured(records, limits=parse_goodput(settings.goodput)), settings)


def test_the_block_is_that_of_sglang() -> None:
    lines = sglang_block(THEIRS, 26.3)
    told = (GOLDEN / "sglang-block.txt").read_text().splitlines()
    assert [line.rstrip() for line in lines if "Max ITL" not in line] == [
        line.rstrip() for line in told if "Max ITL" not in line
    ]


def test_the_keys_are_those_of_sglang_in_its_order() -> None:
    assert list(KEYS) == [key for key in THEIRS if key != "request_goodput"]
    assert list(a_run())[: len(KEYS)] == list(KEYS)
    assert list(a_run(SETTINGS.replace(goodput=())))[: len(KEYS) - 3] == list(KEYS)[:-3]


def test_the_keys_have_the_types_of_sglang() -> None:
    ours = a_run()
    differ = {key for key in KEYS if type(ours[key]) is not type(THEIRS[key])}
    # no length of ShareGPT is given; the others are told by the server, and by a tokenizer
    assert differ == {"random_output_len", "random_range_ratio", "total_output_tokens_retokenized"}


def test_the_numbers_are_those_of_the_run() -> None:
    ours = a_run()
    assert {name: ours[name] for name in ARGUMENTS} == ARGUMENTS
    assert (
        ours["mean_e2e_latency_ms"]
        == ours["mean_e2el_ms"]
        == pytest.approx((sum(60 + i for i in range(10)) + 20) / 11)
    )
    assert ours["concurrency"] == pytest.approx(ours["mean_e2el_ms"] * 11 / 1000 / ours["duration"])
    assert ours["input_throughput"] == pytest.approx(ours["total_input_tokens"] / ours["duration"])
    assert ours["total_throughput"] == ours["total_token_throughput"]
    assert ours["goodput_slos_ms"] == {"ttft": 25.0, "tpot": 10.0, "e2el": 100.0}
    assert ours["slo_attainment_by_metric"] == {
        "ttft": pytest.approx(7 / 11),
        "tpot": 1.0,
        "e2el": 1.0,
    }
    assert ours["slo_attainment"] == pytest.approx(7 / 11)


def test_gaps_of_generate_are_divided_by_the_tokens_of_an_event() -> None:
    records = [per_event((20, 1), (30, 2), (60, 5))]
    assert result(records, SETTINGS)["mean_itl_ms"] == pytest.approx(20)
    assert result(records, SETTINGS.replace(backend="sglang-native"))[
        "mean_itl_ms"
    ] == pytest.approx(10)


def test_a_saved_result_is_read_as_it_was() -> None:
    saved = json.loads(json.dumps(a_run()))
    assert problems(saved) == []
    assert RunResult.from_dict(saved).to_dict() == saved
    assert RunResult.from_dict(saved).numbers.metadata == {}
    assert "Backend:                                 sglang-oai-chat" in render(saved)
    assert "Mean E2E Latency (ms):" in render(saved)


@pytest.mark.parametrize(
    ("arguments", "tool"), [(ARGUMENTS, "SGLang's bench_serving"), (None, "vllm bench serve")]
)
def test_the_page_names_the_tool_whose_block_it_has(
    arguments: dict[str, Any] | None, tool: str
) -> None:
    saved = json.loads(json.dumps(a_run(SETTINGS.replace(sglang_result=arguments))))
    (fold,) = (
        note for note in blocks(saved) if isinstance(note, Note) and note.title.endswith(" prints")
    )
    (code,) = fold.blocks
    assert isinstance(code, Code)
    assert fold.title == f"What {tool} prints"
    assert ("Mean E2E Latency (ms):" in code.text) is (arguments is not None)


def test_other_results_have_none_of_it() -> None:
    plain = a_run(SETTINGS.replace(sglang_result=None))
    assert "concurrency" not in plain
    assert "Mean E2E Latency" not in render(plain)
