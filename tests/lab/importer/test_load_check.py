"""Published results are compared with the load that the study's workload sends."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import Number
from loadgen.lab.audit.published import Published
from loadgen.lab.importer.placement import load_difference
from loadgen.lab.study.spec import study_file
from tests.helpers.imported_files import PAGES, STUDIES, page, take

LAB = [
    "qwen3-32b-a100",
    "qwen3-235b-a22b-a100",
    "qwen3-14b-h100",
    "qwen3.5-9b-h100",
    "qwen3-30b-a3b-910b",
]


def load(name: str, **settings: Any) -> RunSettings:
    return RunSettings(**presets.resolve(name) | settings)


def published(ok: int, input_tokens: int, output_tokens: int) -> Published:
    counts = {"ok": ok, "input_tokens": input_tokens, "output_tokens": output_tokens}
    return Published(
        {name: Number.exact(count) for name, count in counts.items()}, {}, Place("page.md", 1)
    )


@pytest.mark.parametrize(
    ("result", "settings", "words"),
    [
        # of the page on one H100: the client's count
        (
            (500, 1997942, 100000),
            load("long"),
            "prompts have 3995.88 tokens on average, and each of this load has",
        ),
        # of the page of GPUStack's tool
        (
            (1000, 1033932, 128000),
            load("Throughput", dataset_rule=None),
            "1033.93 tokens on average, and each of this",
        ),
        (
            (1000, 342058, 281412),
            load("sharegpt"),
            "342 tokens on average, and those that vllm-0.11 chooses about 217",
        ),
        (
            (1000, 217393, 201833),
            load("ShareGPT"),
            "217 tokens on average, and those that benchmark-runner chooses",
        ),
        # of the page on two 910B
        (
            (500, 1997942, 100000),
            load("long", dataset_rule="vllm-0.9"),
            "vllm-0.9 counts 4000 for each",
        ),
        (
            (500, 2004000, 100000),
            load("long", dataset_rule="vllm-0.11"),
            "those of vllm-0.11 at most 4000",
        ),
    ],
)
def test_other_load_is_told_by_its_tokens(
    result: tuple[int, int, int], settings: RunSettings, words: str
) -> None:
    assert words in load_difference(published(*result), settings)


@pytest.mark.parametrize(
    ("result", "settings"),
    [
        ((500, 1997942, 99000), load("long", dataset_rule="vllm-0.11", ignore_eos=False)),
        ((500, 2004000, 100000), load("long")),  # a template adds 8 tokens to each prompt
        ((1000, 1033932, 128000), load("Throughput")),
        ((1000, 342058, 281412), load("ShareGPT")),
        # requests that failed leave others than the usual ones
        ((514, 23313, 131530), load("ShareGPT")),
        ((1000, 217393, 201833), load("sharegpt")),
    ],
)
def test_load_of_the_workload_is_not_remarked(
    result: tuple[int, int, int], settings: RunSettings
) -> None:
    assert load_difference(published(*result), settings) == ""


@pytest.mark.integration
@pytest.mark.parametrize("name", LAB)
def test_studies_of_the_lab_send_the_loads_of_its_pages(name: str) -> None:
    assert "another load" not in page(name).lines


def test_each_workload_with_another_load_is_named_once(tmp_path: Path) -> None:
    text = (STUDIES / "qwen3-14b-h100.yaml").read_text()
    own = "\n".join(line for line in text.splitlines() if not line.startswith("every_workload"))
    path = tmp_path / "study.yaml"
    path.write_text(own)
    taken = take(study_file.read(path), tmp_path / "store", str(PAGES / "qwen3-14b-h100.md"))
    lines = [
        line for line in taken.lines.splitlines() if "is another load than the study's" in line
    ]
    assert [line.split(": ")[1].split()[0] for line in lines] == ["long", "medium", "short"]
    assert lines[0].endswith(
        "set dataset_rule, or compat, to the page's tool before you compare them with runs of the "
        "study"
    )
