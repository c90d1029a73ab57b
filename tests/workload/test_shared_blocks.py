"""What prompts share: blocks are counted as a cache that keeps all of them would find them."""

import random

import numpy as np
import pytest

from loadgen.workload.prefix_cache.cache_plan import SharedBlocks
from loadgen.workload.prefix_cache.token_ends import TokenizedPrompt


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
