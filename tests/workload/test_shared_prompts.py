"""What the prompts of a run share, counted as they pass."""

from typing import Any

import pytest

from loadgen.workload.prefix_cache import cache_plan
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.cache_plan import SharedPrompts
from loadgen.workload.prefix_cache.token_ends import TokenEnds
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
    assert shared.about("2") == {"block_size": 2, "block_size_from": "a flag", "tokens": 5, "shared_tokens": 2}


def test_what_an_earlier_run_has_counted_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert shared.about("6") == {"block_size": 2, "block_size_from": "a flag", "unknown": cache_plan.NO_TOKENIZER}
