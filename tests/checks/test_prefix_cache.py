"""Was the prefix cache in the state that --cache asks for?"""

from typing import Any

import pytest

from loadgen.checks import Check
from loadgen.checks.prefix_cache import NAME
from loadgen.config.settings import RunSettings
from tests.checks.test_workload import UNKNOWN, known, of, reply


def check(cache: Any, cached: int | None, prompts: dict[str, Any], **options: Any) -> Check:
    """The check of 10 requests of 10 tokens, each with so many from the cache."""
    records = [reply(index, prompt=10, cached=cached) for index in range(10)]
    return of(records, RunSettings(cache=cache), prompts=prompts, **options)[NAME]


@pytest.mark.parametrize("cache", ["cold", "salted"])
@pytest.mark.parametrize(
    ("cached", "shared", "ok"), [(0, 0, True), (5, 50, True), (5, 0, False), (9, 50, False)]
)
def test_a_cold_cache_has_nothing_beyond_what_the_run_shares(
    cache: str, cached: int, shared: int, ok: bool
) -> None:
    found = check(cache, cached, known(shared))
    assert (found.ok, found.counts) == (ok, True)


@pytest.mark.parametrize(("cached", "ok"), [(9, True), (5, True), (4, False), (0, False)])
def test_a_warm_cache_has_half_of_what_was_sent_before(cached: int, ok: bool) -> None:
    assert check("warm", cached, known(90)).ok is ok


def test_a_template_that_is_unknown_may_be_cached() -> None:
    records = [reply(index, prompt=20, cached=10) for index in range(10)]
    assert of(records, RunSettings(cache="cold"), prompts=known(0))[NAME].ok


@pytest.mark.parametrize(
    ("cached", "prompts"), [(None, known(0)), (0, UNKNOWN), (0, known(0) | {"further": True})]
)
def test_it_does_not_apply_where_something_is_unknown(
    cached: int | None, prompts: dict[str, Any]
) -> None:
    assert check("cold", cached, prompts).ok is None


def test_it_does_not_apply_where_not_all_requests_succeeded() -> None:
    records = [reply(index, prompt=10, cached=9) for index in range(9)]
    assert of(records, RunSettings(cache="cold"), prompts=known(0))[NAME].ok is None


def test_a_cache_is_not_warm_if_requests_that_were_to_warm_it_failed() -> None:
    prompts = known(90)
    prompts["prefix_cache"] = prompts["prefix_cache"] | {"warm_requests": 4}
    found = check("warm", 9, prompts)
    assert (found.ok, found.value) == (
        False,
        "0 of 4 requests that were to warm the cache up succeeded",
    )


def test_it_does_not_apply_to_a_part_of_a_run() -> None:
    assert check("warm", 0, known(90), partial="Ctrl-C").ok is None


def test_a_cache_of_which_nothing_is_asked_is_not_checked() -> None:
    assert NAME not in of([reply()], prompts=known(0))
