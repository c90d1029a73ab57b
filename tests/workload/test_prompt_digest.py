"""The digest of two runs is equal only if they send the same prompts."""

import hashlib
from dataclasses import replace

import pytest

from loadgen.workload.prompt import Prompt, PromptDigest

CHAT = ({"role": "user", "content": "a"},)
A, B = Prompt("a\u00e9", 3, 5, "1"), Prompt("b", 3, 5, "2")


def digest(*prompts):
    made = PromptDigest()
    for prompt in prompts:
        made.add(prompt)
    return made


@pytest.mark.parametrize(
    ("prompts", "lines"),
    [
        ([A, B], '["a\u00e9",5]\n["b",5]\n'),
        ([Prompt("said", 1, 2, "1", CHAT)], '[[{"role":"user","content":"a"}],2]\n'),
        ([], ""),
    ],
    ids=["texts", "chat", "none"],
)
def test_sha256_covers_a_json_line_per_prompt(prompts, lines):
    assert digest(*prompts).sha256 == hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [{"text": "c"}, {"output_tokens": 6}, {"messages": CHAT}, {"fields": {"min_p": 0.1}}],
)
def test_another_question_or_length_of_answer_is_another_hash(changed):
    assert digest(replace(A, **changed)).sha256 != digest(A).sha256


def test_another_order_is_another_hash():
    assert digest(A, B).sha256 != digest(B, A).sha256


@pytest.mark.parametrize(
    "changed", [{"input_tokens": 9}, {"source": "file/1"}, {"server_tokens": 11}, {"due_ns": 7}, {"after": (1,)}]
)
def test_sha256_ignores_tokenizer_source_and_times(changed):
    assert digest(replace(A, **changed)).sha256 == digest(A).sha256


def test_distinct_ignores_output_tokens():
    chat = Prompt("", 1, 1, "3", CHAT)
    assert digest(A, replace(A, output_tokens=1, source="4"), B, chat, chat).distinct == 3
    assert digest().distinct == 0
