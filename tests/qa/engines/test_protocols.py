"""The counts of a run against a real server are held to the bytes that the server sent."""

import pytest

from bench.engines.engines import LLAMACPP_TASKS, VLLM_TASKS
from bench.engines.protocols import PROTOCOLS, contradictions
from loadgen.core.record import Record
from tests.helpers.captured_responses import Golden, goldens


@pytest.fixture(scope="module")
def answer() -> Golden:
    """An answer to 769 input tokens, 768 of them from the cache, with 24 output tokens."""
    return next(golden for golden in goldens() if golden.file == "vllm_messages_cached")


def record(prompt_tokens: int, completion_tokens: int) -> Record:
    found = Record()
    found.prompt_tokens, found.completion_tokens = prompt_tokens, completion_tokens
    return found


def test_the_counts_of_the_server_contradict_nothing(answer: Golden) -> None:
    assert not list(contradictions([answer], [record(769, 24)]))


@pytest.mark.parametrize("counts", [(1, 24), (768, 24), (769, 22), (-1, -1)])
def test_other_counts_contradict_the_server(answer: Golden, counts: tuple[int, int]) -> None:
    (problem,) = contradictions([answer], [record(*counts)])
    assert "(769, 24)" in problem


def test_a_response_that_was_not_captured_is_named(answer: Golden) -> None:
    assert list(contradictions([answer], [record(769, 24)] * 2)) == [
        "1 captured responses to 2 requests"
    ]


def test_every_protocol_has_a_server() -> None:
    assert {protocol.task for protocol in PROTOCOLS} == set(VLLM_TASKS) == set(LLAMACPP_TASKS)
