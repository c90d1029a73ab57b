"""The state of the server's prefix cache: what the simulator finds is what was predicted, to the
block.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen import report
from loadgen.checks.prefix_cache import NAME
from loadgen.engines.sim.prefix_cache import BLOCK
from tests.helpers.command_line import TOKENIZER
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import chatting, serving
from tests.helpers.sim_server import simulated

COUNT, PREFIX, SUFFIX = 20, 100, 50
RUN = loadgen.RunSettings(
    backend="openai",
    tokenizer=TOKENIZER,
    dataset_name="prefix_repetition",
    prefix_repetition_prefix_len=PREFIX,
    prefix_repetition_suffix_len=SUFFIX,
    prefix_repetition_num_prefixes=4,
    prefix_repetition_output_len=2,
    max_concurrency=1,
    num_prompts=COUNT,
)
RANDOM = RUN.replace(dataset_name="random", random_input_len=64, random_output_len=2)
SESSIONS = RANDOM.replace(backend="openai-chat", dataset_name="multi_turn", turns="2")
WHOLE_PREFIX = PREFIX // BLOCK * BLOCK


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A simulator that keeps all prompts of the tests."""
    server = simulated(enable_prefix_caching=True, num_kv_tokens=1 << 20)
    yield server.base_url
    server.stop()


async def measured(url: str, settings: loadgen.RunSettings = RUN, **changes: Any) -> loadgen.Result:
    result = await loadgen.run(settings.replace(base_url=url, **changes))
    assert result.outcomes == {"ok": COUNT}
    return result


def cached(result: loadgen.Result) -> int:
    """The tokens that the server has found, if they are as many as predicted and as its own
    metrics say.
    """
    cache, found = result.prefix_cache, result.tokens.cached_tokens
    assert cache is not None
    assert result.server is not None
    assert (cache.block_size, cache.block_size_from) == (BLOCK, "vllm:cache_config_info")
    assert cache.best_hit_rate == cache.hit_rate == pytest.approx(result.server.prefix_hit_rate)
    assert cache.hit_rate == found / result.tokens.input_tokens
    assert [check.ok for check in result.checks if check.name == NAME] in ([True], [])
    return found


async def test_a_cold_cache_has_what_the_run_shares(url: str) -> None:
    await measured(url)
    for _ in range(2):
        result = await measured(url, cache="cold", num_warmups=2)
        assert cached(result) == (COUNT - 4) * WHOLE_PREFIX
        assert {call.url for call in result.server_calls} == {f"{url}/reset_prefix_cache"}
    assert "Prefix cache: cold" in report.render(result)


@pytest.mark.parametrize(
    "groups",
    [
        {"prefix_zipf": 1.2},
        {"prefix_buckets": "3x80:70,1x160-200:30"},
        {"random_prefix_len": 64, "prefix_zipf": 0.8, "prefix_repetition_suffix_len": "30:60"},
    ],
)
async def test_unequal_groups_hit_as_predicted(url: str, groups: dict[str, Any]) -> None:
    changes = (
        {"prefix_repetition_prefix_len": 256, "prefix_repetition_num_prefixes": 10}
        if "prefix_buckets" in groups
        else {}
    )
    assert cached(await measured(url, cache="cold", **groups, **changes)) > 0


async def test_sessions_of_groups_hit_as_predicted(url: str) -> None:
    changes = {"random_prefix_len": 48, "prefix_zipf": 1.0, "turns": "2", "backend": "openai-chat"}
    result = await measured(url, cache="cold", **changes)
    assert result.prefix_cache is not None
    assert result.prefix_cache.best_hit_rate == pytest.approx(
        result.prefix_cache.hit_rate, abs=0.02
    )


async def test_a_salt_hides_earlier_runs_and_no_sharing_within_the_run(url: str) -> None:
    results = [await measured(url, cache="salted") for _ in range(2)]
    for result in results:
        assert cached(result) == (COUNT - 4) * WHOLE_PREFIX
        assert result.tokens.input_tokens == COUNT * (PREFIX + SUFFIX)
        assert result.tokens.input_as_planned == COUNT
    one, other = (result.prefix_cache.salt for result in results if result.prefix_cache)
    assert one != other
    assert len({result.provenance.prompts.sha256 for result in results}) == 1


async def test_a_warm_cache_has_every_prefix(url: str) -> None:
    await measured(url, cache="cold", num_prompts=COUNT, seed=5)
    result = await measured(url, cache="warm", seed=6)
    assert cached(result) == COUNT * WHOLE_PREFIX
    cache = result.prefix_cache
    assert cache is not None
    assert (cache.warm_requests, cache.warmed, cache.warmed_by) == (4, 4, "prefix")


async def test_a_warm_cache_has_every_prompt_where_they_have_no_prefix(url: str) -> None:
    result = await measured(url, RANDOM, cache="warm", seed=7, workers=2, max_concurrency=2)
    assert cached(result) == COUNT * (64 - BLOCK)
    assert result.prefix_cache is not None
    assert (result.prefix_cache.warmed, result.prefix_cache.warmed_by) == (COUNT, "prompt")


async def test_warm_sessions_are_sent_their_first_turns(url: str) -> None:
    result = await measured(url, SESSIONS, cache="warm", seed=8)
    assert result.prefix_cache is not None
    assert result.prefix_cache.warmed == COUNT // 2


async def test_prompts_of_an_earlier_run_are_named(url: str) -> None:
    await measured(url, RANDOM, seed=9)
    result = await measured(url, RANDOM, seed=9)
    assert "prompts repeated" in [note.name for note in result.notes]
    assert result.prefix_cache is not None
    assert (result.prefix_cache.best_hit_rate, result.prefix_cache.hit_rate) == (0.0, 0.75)


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({}, "default"),
        ({"cache_block_size": 16}, "--cache-block-size"),
        ({"cache": "cold"}, "default"),
    ],
)
async def test_what_is_shared_is_counted_without_metrics_too(
    url: str, changes: dict[str, Any], source: str
) -> None:
    result = await measured(url, server_metrics=("off",), seed=11, **changes)
    assert result.prefix_cache is not None
    assert result.prefix_cache.best_hit_rate == 0.512
    assert (result.prefix_cache.block_size, result.prefix_cache.block_size_from) == (16, source)


async def test_records_have_the_same_cache(url: str, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    result = await measured(url, cache="warm", seed=10, records=str(records))
    assert loadgen.from_records(records).prefix_cache == result.prefix_cache


async def test_a_cache_that_is_too_small_is_not_warm() -> None:
    server = simulated(enable_prefix_caching=True, num_kv_tokens=256, max_model_len=128)
    try:
        result = await measured(server.base_url, RANDOM, cache="warm")
    finally:
        server.stop()
    assert (NAME, False) in [(check.name, check.ok) for check in result.checks]
    assert result.verdict == "SUSPECT"


async def test_a_server_that_cannot_be_emptied_is_sent_nothing() -> None:
    asked: list[str] = []

    def reply(request: Any) -> bytes:
        asked.append(request.path)
        return (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            if "chat" not in request.path
            else GOOD
        )

    async with serving(chatting(reply)) as url:
        with pytest.raises(loadgen.BadInput, match="has no call that empties its prefix cache"):
            await loadgen.run(
                RUN.replace(
                    base_url=url,
                    backend="openai-chat",
                    cache="cold",
                    num_warmups=2,
                    preflight=False,
                )
            )
    assert not [path for path in asked if "chat" in path]


GOOD = streamed(answer("Hello", " world"))


async def test_prompts_that_are_made_meanwhile_cannot_be_sent_before(url: str) -> None:
    with pytest.raises(
        loadgen.BadInput, match="warm cannot send prompts that are made while the run goes on"
    ):
        await loadgen.run(RANDOM.replace(base_url=url, cache="warm", num_prompts=None, duration=1))


@pytest.mark.parametrize("cache", ["cold", "salted", "warm"])
async def test_classes_with_data_sets_of_their_own_are_predicted_too(url: str, cache: Any) -> None:
    classes = (
        "long:share=0.5,dataset_name=random,random_input_len=80,random_output_len=2",
        "shared:share=0.5,dataset_name=prefix_repetition",
    )
    await measured(url, classes=classes, cache="cold")
    result = await measured(url, classes=classes, cache=cache, seed=11)
    assert cached(result) > 0
    assert result.prefix_cache is not None
    assert bool(result.prefix_cache.salt) is (cache == "salted")
