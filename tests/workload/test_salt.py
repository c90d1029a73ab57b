"""The salt: prompts that begin differently in each run, as long as before, and as alike among
themselves.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prefix_cache.salt import HEAD_TOKENS, Salt
from loadgen.workload.prompt import ANSWER, Prompt, PromptDigest
from loadgen.workload.tokenizer import exact_text
from loadgen.workload.tokenizer.tokenizer import Tokenizer, load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.command_line import TOKENIZER

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

PROSE = (
    "Summarize the following: the baker weighs the flour twice, and the salt three times.",
    "Summarize the following: the miller does not weigh anything at all.",
    "It's (only) a test; 3.14 is no word.",
    "一段没有空格的文字,它的词元在哪里都可以分开。",
    "Hi",
    "",
)


def salted(tokenizer: Tokenizer, prompts: list[Prompt], value: str = "0" * 16) -> list[Prompt]:
    return list(Salt(value, tokenizer, exact_text.words_of(tokenizer)).apply(prompts))


def prose(*texts: str) -> list[Prompt]:
    return [Prompt(text, 0, 1, f"prose/{row}") for row, text in enumerate(texts)]


def shared(tokenizer: Tokenizer, one: str, other: str) -> int:
    """How many tokens two texts have in common at their beginnings."""
    ids = tokenizer.encode_batch([one, other])
    return sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*ids, strict=False))
    )


@pytest.mark.parametrize(
    "make", [None, trained.wordpiece, trained.unigram, trained.word_level, trained.superwords]
)
def test_random_prompts_keep_their_length(
    make: Callable[[Path], Path] | None, tmp_path: Path
) -> None:
    path = TOKENIZER if make is None else str(make(tmp_path))
    settings = RunSettings(tokenizer=path, random_input_len="3:40", random_prefix_len=3)
    prompts, tokenizer = list(datasets.create(settings).prompts(60)), load(path)
    made = salted(tokenizer, prompts)
    assert tokenizer.count([prompt.text for prompt in made], special=True) == [
        each.input_tokens for each in prompts
    ]
    assert all(one.text != other.text for one, other in zip(prompts, made, strict=True))


def test_texts_of_people_keep_their_length(tmp_path: Path) -> None:
    tokenizer = load(str(trained.unigram(tmp_path)))
    made = [prompt.text for prompt in salted(tokenizer, prose(*PROSE))]
    assert tokenizer.count(made) == tokenizer.count(PROSE)
    assert made[0].endswith("the flour twice, and the salt three times.")
    assert made[-1] == ""


def test_texts_of_people_share_as_much_as_before(tmp_path: Path) -> None:
    tokenizer = load(str(trained.unigram(tmp_path)))
    made = [prompt.text for prompt in salted(tokenizer, prose(*PROSE))]
    assert (
        shared(tokenizer, made[0], made[1]) == shared(tokenizer, PROSE[0], PROSE[1]) > HEAD_TOKENS
    )


@pytest.mark.parametrize("common", range(8))
def test_random_prompts_share_as_many_tokens_as_before(common: int) -> None:
    tokenizer = load(TOKENIZER)
    words = exact_text.words_of(tokenizer).items[:12]
    texts = [" ".join([*words[:common], *words[other : 12 - common]]) for other in (8, 9)]
    made = [prompt.text for prompt in salted(tokenizer, prose(*texts))]
    assert shared(tokenizer, *made) == shared(tokenizer, *texts)


def test_prompts_of_two_runs_begin_differently() -> None:
    tokenizer = load(TOKENIZER)
    prompts = list(datasets.create(RunSettings(tokenizer=TOKENIZER)).prompts(50))
    heads = [
        {
            tuple(prompt.text.split(" ")[:HEAD_TOKENS])
            for prompt in salted(tokenizer, prompts, value)
        }
        for value in ("0" * 16, "1" * 16)
    ]
    assert not heads[0] & heads[1]
    assert [len(each) for each in heads] == [50, 50]


def test_the_digest_is_that_of_the_prompts_without_a_salt() -> None:
    prompts = list(datasets.create(RunSettings(tokenizer=TOKENIZER)).prompts(5))
    digests = [PromptDigest(), PromptDigest()]
    for digest, made in zip(digests, (prompts, salted(load(TOKENIZER), prompts)), strict=True):
        for prompt in made:
            digest.add(prompt)
    assert digests[0].sha256 == digests[1].sha256


def test_the_first_message_of_a_chat_has_the_salt_in_every_turn() -> None:
    turns: tuple[dict[str, Any], ...] = (
        {"role": "system", "content": "You are a baker."},
        {"role": "user", "content": [{"type": "text", "text": "Bake a cake."}]},
        {"role": "assistant", "content": ANSWER},
    )
    first, second = salted(
        load(TOKENIZER), [Prompt("", 1, 1, "a/0", turns[:2]), Prompt("", -1, 1, "a/1", turns)]
    )
    assert first.messages[0] == second.messages[0] != turns[0]
    assert (first.messages[1:], second.messages[1:]) == (turns[1:2], turns[1:])


def test_each_text_of_a_request_has_the_salt() -> None:
    (made,) = salted(load(TOKENIZER), [Prompt("", 4, 0, "a", texts=("two words", "two words"))])
    assert made.texts[0] == made.texts[1] != "two words"


def test_a_prompt_that_begins_with_an_image_is_refused() -> None:
    content = [
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "What is it?"},
    ]
    with pytest.raises(BadInput, match="does not begin with a text") as refused:
        salted(load(TOKENIZER), [Prompt("", 1, 1, "a", ({"role": "user", "content": content},))])
    assert refused.value.field == "--cache"


def test_a_salt_needs_a_tokenizer() -> None:
    with pytest.raises(BadInput, match="salted needs a tokenizer"):
        RunSettings(cache="salted", tokenizer="none").checked()
