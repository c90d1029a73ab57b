"""Requests of several random texts: batches, and a query with documents."""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.arrivals import Schedule
from loadgen.workload.prompt import Continued, Prompt
from tests.helpers.source import ROOT

TOKENIZER = str(ROOT / "engines" / "sim" / "tokenizer.json")  # a word is a token; no special tokens
RERANK: dict[str, Any] = {
    "dataset_name": "random-rerank",
    "random_input_len": 64,
    "random_batch_size": 5,
}


def settings(**options: Any) -> RunSettings:
    return RunSettings(**{"tokenizer": TOKENIZER, "backend": "vllm-rerank"} | options)


def made(**options: Any) -> list[Prompt]:
    asked = settings(**options)
    return list(datasets.create(asked).prompts(asked.requests or 1))


def words(text: str) -> int:
    return len(text.split())


# -- batches of random texts


def test_num_prompts_counts_texts_and_the_last_batch_may_be_smaller() -> None:
    prompts = made(
        backend="openai-embeddings", random_input_len=8, random_batch_size=4, num_prompts=10
    )
    assert [len(prompt.texts) for prompt in prompts] == [4, 4, 2]
    assert [prompt.input_tokens for prompt in prompts] == [32, 32, 16]
    assert all(words(text) == 8 for prompt in prompts for text in prompt.texts)


def test_batches_hold_the_texts_of_the_data_set_in_order() -> None:
    options: dict[str, Any] = {
        "backend": "openai-embeddings",
        "random_input_len": 8,
        "num_prompts": 7,
    }
    single = [prompt.text for prompt in made(**options)]
    batched = [text for prompt in made(**options, random_batch_size=3) for text in prompt.texts]
    assert batched == single


def test_texts_by_the_rule_of_another_tool_are_batched_too() -> None:
    options: dict[str, Any] = {
        "backend": "openai-embeddings",
        "random_input_len": 8,
        "dataset_rule": "vllm-0.11",
    }
    prompts = made(**options, random_batch_size=3, num_prompts=7)
    assert [len(prompt.texts) for prompt in prompts] == [3, 3, 1]


def test_a_batch_of_one_is_a_text() -> None:
    (prompt,) = made(backend="openai-embeddings", random_input_len=8, num_prompts=1)
    assert (prompt.texts, words(prompt.text)) == ((), 8)


def test_the_schedule_has_a_due_time_for_each_batch() -> None:
    asked = settings(
        backend="openai-embeddings", random_batch_size=4, num_prompts=10, request_rate=5.0
    )
    assert Schedule.from_settings(asked, 0).count == 3
    assert Schedule.from_settings(asked.replace(num_prompts=None), 0).count == 250


def test_further_batches_have_other_texts() -> None:
    asked = settings(
        backend="openai-embeddings", random_input_len=8, random_batch_size=4, num_prompts=8
    )
    dataset = datasets.create(asked)
    assert isinstance(dataset, Continued)
    own = {text for prompt in dataset.prompts(2) for text in prompt.texts}
    further = next(dataset.beyond(2))
    assert len(further.texts) == 4
    assert not own & set(further.texts)


# -- a query with documents


def test_query_and_document_have_the_length_together_with_a_separator() -> None:
    prompts = made(**RERANK, num_prompts=8)
    assert [len(prompt.texts) - 1 for prompt in prompts] == [5, 3]
    (query,) = {prompt.texts[0] for prompt in prompts}
    assert words(query) == 64 // 2 - 1
    assert all(
        words(query) + 1 + words(document) == 64
        for prompt in prompts
        for document in prompt.texts[1:]
    )
    assert [prompt.input_tokens for prompt in prompts] == [5 * 64, 3 * 64]


def test_without_a_reranker_each_text_has_the_length_and_the_query_is_one_of_them() -> None:
    prompts = made(**RERANK, no_reranker=True, num_prompts=10)
    assert [len(prompt.texts) for prompt in prompts] == [5, 5, 2]  # nine documents, four a request
    assert {words(text) for prompt in prompts for text in prompt.texts} == {64}
    assert [prompt.input_tokens for prompt in prompts] == [5 * 64, 5 * 64, 2 * 64]


def test_lengths_are_drawn_around_the_length() -> None:
    prompts = made(**RERANK, random_range_ratio="0.5", num_prompts=100)
    query, lengths = (
        prompts[0].texts[0],
        [words(text) for prompt in prompts for text in prompt.texts[1:]],
    )
    mean = 64 - words(query) - 1
    assert 15 <= words(query) <= 47
    assert min(lengths) >= mean // 2
    assert max(lengths) <= -(-mean * 3 // 2)
    assert len(set(lengths)) > 5


def test_the_seed_decides_query_and_documents() -> None:
    one, same, other = (made(**RERANK, num_prompts=5, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert not set(one[0].texts) & set(other[0].texts)


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--random-input-len", {"random_input_len": "10:20"}),
        ("--random-input-len", {"random_input_len": 3}),
        ("--random-prefix-len", {"random_prefix_len": 4}),
        ("--dataset-path", {"dataset_path": "x"}),
    ],
)
def test_what_a_rerank_cannot_use_is_refused(flag: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        made(**RERANK | options, num_prompts=5)
    assert refused.value.field == flag


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--random-batch-size", {"backend": "openai", "random_batch_size": 2}),
        ("--random-batch-size", {"random_batch_size": 0}),
        ("--dataset-name", {"backend": "openai-chat", "dataset_name": "random-rerank"}),
        ("--random-batch-size", {"dataset_name": "random-rerank", "no_reranker": True}),
    ],
)
def test_settings_without_meaning_are_refused(flag: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        settings(**options).checked()
    assert refused.value.field == flag


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--random-batch-size", {"dataset_name": "prefix_repetition", "random_batch_size": 2}),
        ("--no-reranker", {"no_reranker": True}),
    ],
)
def test_other_data_sets_refuse_the_settings_of_batches(flag: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        made(**options)
    assert refused.value.field == flag
