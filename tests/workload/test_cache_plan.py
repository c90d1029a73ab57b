"""What prompts share: blocks are counted as a cache that keeps all of them would find them."""

import random
from typing import Any

import numpy as np
import pytest

from loadgen.workload.prefix_cache import cache_plan
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.cache_plan import SharedBlocks, SharedPrompts
from loadgen.workload.prefix_cache.token_ends import TokenEnds, TokenizedPrompt
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers.command_line import TOKENIZER

BLOCK = CacheBlock(2, "a flag")
IMAGE = ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},)


def prompts(*texts: str) -> list[Prompt]:
    return [Prompt(text, len(text.split()), 1, text) for text in texts]


def about(watched: list[Prompt], *, sha256: str = "0", sent_before: bool = False) -> dict[str, Any]:
    shared = SharedPrompts(TokenEnds(load(TOKENIZER)), BLOCK)
    assert list(shared.watch(watched, sent_before=sent_before)) == watched
    return shared.about(sha256)


def test_it_is_counted_in_blocks() -> None:
    found = about(prompts("a b c d e", "a b c x", "y"))
    assert found == {"block_size": 2, "block_size_from": "a flag", "tokens": 10, "shared_tokens": 2}


def test_prompts_that_are_sent_before_share_with_themselves() -> None:
    assert about(prompts("a b c d e"), sha256="1", sent_before=True)["shared_tokens"] == 4


def test_prefixes_that_are_sent_before_are_shared() -> None:
    shared = SharedPrompts(TokenEnds(load(TOKENIZER)), BLOCK)
    list(shared.keep(prompts("a b c")))
    list(shared.watch(prompts("a b c d e")))
    assert shared.about("2") == {
        "block_size": 2,
        "block_size_from": "a flag",
        "tokens": 5,
        "shared_tokens": 2,
    }


def test_what_an_earlier_run_has_counted_is_not_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = about(prompts("a b c", "a b c"), sha256="3")
    monkeypatch.setattr(TokenEnds, "tokenize", None)
    assert about(prompts("a b c", "a b c"), sha256="3") == first


def test_too_many_to_keep_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_plan, "MAX_KEPT", 8)
    assert about(prompts("a b c d e", "a b c x", "y"), sha256="4")["shared_tokens"] == 2


def test_too_many_blocks_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_plan, "MAX_BLOCKS", 1)
    assert about(prompts("a b c d e", "f"), sha256="5")["unknown"] == cache_plan.TOO_MANY


def test_the_tokens_of_images_tools_and_several_texts_are_unknown() -> None:
    tools = {"tools": [{"type": "function"}]}
    others = Prompt("", 2, 1, "a", texts=("a", "b")), Prompt("a b", 2, 1, "a", fields=tools)
    for prompt in (Prompt("", 2, 1, "a", IMAGE), *others):
        assert about([prompt])["unknown"] == cache_plan.UNKNOWN_TOKENS


def test_without_a_tokenizer_nothing_is_known() -> None:
    shared = SharedPrompts(None, BLOCK)
    list(shared.watch(prompts("a b c")))
    assert shared.about("6") == {
        "block_size": 2,
        "block_size_from": "a flag",
        "unknown": cache_plan.NO_TOKENIZER,
    }


def tokenized(text: str, *, before: int = 0, answered: int = 0) -> TokenizedPrompt:
    """A prompt in which each character is a token."""
    return TokenizedPrompt(text, np.arange(1, len(text) + 1), before, answered, before + len(text))


def shared(size: int, *texts: str) -> int:
    blocks = SharedBlocks(size)
    for text in texts:
        blocks.add(tokenized(text), "m")
    return blocks.shared_tokens()


def test_a_prompt_finds_the_whole_blocks_of_an_earlier_one() -> None:
    assert shared(4, "aaaabbbbcc", "aaaabbbbdd", "aaaaxxxx.") == 8 + 4


def test_no_prompt_finds_its_last_token() -> None:
    assert shared(4, "aaaabbbb", "aaaabbbb") == 4
    assert shared(4, "aaaabbbb", "aaaabbbbc") == 8


def test_a_block_is_found_only_after_the_same_blocks() -> None:
    assert shared(2, "aabb.", "xxbb.") == 0


def test_nothing_is_shared_where_there_is_nothing() -> None:
    assert shared(16) == shared(16, "short", "short") == 0


@pytest.mark.parametrize("size", [1, 3, 16])
def test_it_counts_as_a_cache_would(size: int) -> None:
    drawn = random.Random(size)
    texts = ["".join(drawn.choices("ab", [9, 1], k=drawn.randrange(40))) for _ in range(200)]
    kept, found = set[str](), 0
    for text in texts:
        wholes = [text[:end] for end in range(size, len(text) + 1, size)]
        found += size * sum(whole in kept and len(whole) < len(text) for whole in wholes)
        kept.update(wholes)
    assert shared(size, *texts) == found > 0


def test_tokens_before_a_text_move_its_blocks() -> None:
    blocks = SharedBlocks(4)
    for text in ("abxx", "abyy"):
        blocks.add(tokenized(text, before=6), "m")
    assert (blocks.tokens, blocks.shared_tokens()) == (20, 8)


def test_prompts_of_other_adapters_share_nothing() -> None:
    blocks = SharedBlocks(2)
    for model in ("", "a", "b", "a"):
        blocks.add(tokenized("abc"), model)
    assert blocks.shared_tokens() == 2


def test_what_was_sent_before_the_run_is_found() -> None:
    blocks = SharedBlocks(2)
    blocks.keep(tokenized("abcd"), "m")
    blocks.add(tokenized("abcde"), "m")
    assert (blocks.tokens, blocks.shared_tokens()) == (5, 4)


def test_a_turn_finds_all_up_to_the_answer_that_it_repeats() -> None:
    blocks = SharedBlocks(2)
    blocks.add(tokenized("question"), "m")
    blocks.add(tokenized("questionANSWERmore", answered=14), "m")
    assert blocks.shared_tokens() == 14
