"""The prefix cache in result, console and page."""

import html
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.report.result import RunResult
from loadgen.report.sections.server import cache_lines
from tests.helpers import saved_json
from tests.helpers.run_facts import answered, result, run_data

KNOWN = {
    "block_size": 16,
    "block_size_from": "vllm:cache_config_info",
    "tokens": 200,
    "shared_tokens": 50,
}


def ran(
    cache: Any = "as-is", cached: int | None = 5, known: dict[str, Any] | None = None, **more: Any
) -> RunResult:
    """The result of 10 requests of 20 tokens, each with so many from the cache."""
    counts: dict[str, Any] = {"prompt_tokens": 20, "completion_tokens": 1}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    records = [answered(index, tokens=[20], counts=counts) for index in range(10)]
    prompts = {"requests": 10, "prefix_cache": KNOWN if known is None else known} | more
    return RunResult.of(run_data(records, RunSettings(cache=cache), prompts=prompts, client={}), [])


def test_hits_stand_beside_what_was_possible() -> None:
    assert list(cache_lines(ran())) == [
        "Prefix cache: as it was; 25.0% of the input came from it, by usage; at best: 25.0% in "
        "blocks of 16 tokens (vllm:cache_config_info)"
    ]


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert list(cache_lines(ran(cached=None))) == []


@pytest.mark.parametrize(
    ("cache", "more", "said"),
    [
        ("cold", {}, "cold, emptied before the clock started;"),
        ("salted", {"salt": "0123456789abcdef"}, "salted (0123456789abcdef);"),
        (
            "warm",
            {"known": KNOWN | {"warm_requests": 4, "warmed_by": "prefix"}},
            "warm, 4 distinct prefixes sent before, 0 requests ok;",
        ),
    ],
)
def test_what_was_done_is_named(cache: str, more: dict[str, Any], said: str) -> None:
    (line,) = cache_lines(ran(cache, None, **more))
    assert said in line
    assert "the server does not say what it found there" in line


def test_what_is_unknown_is_named() -> None:
    known = {
        "block_size": 16,
        "block_size_from": "default",
        "unknown": "the data set has no tokenizer",
    }
    (line,) = cache_lines(ran(known=known))
    assert line.endswith("at best: unknown, since the data set has no tokenizer")
    (line,) = cache_lines(ran(further=True))
    assert line.endswith("at best: unknown, since prompts were made while the run went on")


def test_a_chat_template_that_was_not_predicted_is_named() -> None:
    cache = ran(known=KNOWN | {"tokens": 150}).prefix_cache
    assert cache is not None
    assert (cache.best_hit_rate, cache.unpredicted_share) == (1 / 3, 0.25)
    (line,) = cache_lines(ran(known=KNOWN | {"tokens": 150}))
    assert line.endswith("without the 25.0% of the input that its chat template added")


def test_the_console_and_the_page_have_the_line() -> None:
    made = ran("cold")
    (line,) = cache_lines(made)
    assert "Prefix cache: cold" in saved_json.render(made.to_dict())
    assert html.escape(line, quote=False) in saved_json.html([made.to_dict()])


def test_results_of_earlier_versions_have_none() -> None:
    saved = result([answered(0, tokens=[20])])
    del saved["loadgen"]["prefix_cache"]
    assert list(cache_lines(RunResult.from_dict(saved))) == []
