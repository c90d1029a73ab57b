"""The simulator's Responses and Messages, asked directly and measured in whole runs."""

from collections.abc import Iterator
from typing import Any

import pytest

import loadgen
from loadgen.engines import Server
from tests.helpers.raw_client import FAST, Client
from tests.helpers.sim_server import simulated

ASKED = {
    "openai-responses": ("/v1/responses", {"input": "one two", "max_output_tokens": 3}),
    "anthropic": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "one two"}], "max_tokens": 3},
    ),
}


@pytest.fixture(scope="module")
def thinking() -> Iterator[Server]:
    """A server whose answers begin with two tokens of reasoning."""
    with simulated(**FAST, reasoning_tokens=2) as server:
        yield server


def types(client: Client, backend: str, **more: Any) -> list[str]:
    """The type of each event, which also stands in the line before its data."""
    path, body = ASKED[backend]
    reply = client.post(path, **body, **more, stream=True)
    assert reply.status == 200
    lines = reply.body.decode().split("\n")
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


def test_a_response_is_streamed_with_its_items(client: Client) -> None:
    opening = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    closing = [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    tokens = ["response.output_text.delta"] * 3
    assert types(client, "openai-responses") == [*opening, *tokens, *closing, "response.incomplete"]


def test_a_response_comes_in_one_piece(client: Client) -> None:
    answer = client.post(
        "/v1/responses", input=[{"role": "user", "content": "one"}], max_output_tokens=2
    ).json
    assert answer["output"][0]["content"][0]["text"]
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == (1, 2)


def test_a_message_is_streamed_with_its_blocks(client: Client) -> None:
    opening = ["message_start", "content_block_start", "content_block_start"]
    closing = ["content_block_stop", "content_block_stop", "message_delta", "message_stop"]
    assert types(client, "anthropic") == [*opening, *["content_block_delta"] * 3, *closing]


def test_a_message_comes_in_one_piece(client: Client) -> None:
    asked = {
        "messages": [{"role": "user", "content": "one"}],
        "system": "two three",
        "max_tokens": 2,
    }
    answer = client.post("/v1/messages", **asked).json
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert (answer["stop_reason"], answer["usage"]) == (
        "max_tokens",
        {"input_tokens": 3, "output_tokens": 2},
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {}),
        ("/v1/responses", {"input": 3}),
        ("/v1/messages", {"max_tokens": 3}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "one"}]}),
    ],
)
def test_a_request_without_a_prompt_is_refused(
    client: Client, path: str, body: dict[str, Any]
) -> None:
    assert client.post(path, **body).status == 400


@pytest.mark.parametrize(
    ("backend", "reason"), [("openai-responses", "max_output_tokens"), ("anthropic", "max_tokens")]
)
def test_a_run_counts_every_token(server: Server, backend: str, reason: str) -> None:
    settings = loadgen.RunSettings(
        base_url=server.base_url,
        backend=backend,
        num_prompts=5,
        random_input_len=8,
        random_output_len=4,
    )
    result = loadgen.run_sync(settings)
    numbers = result.data["loadgen"] | result.data
    assert (numbers["backend"], numbers["completed"], numbers["total_output_tokens"]) == (
        backend,
        5,
        20,
    )
    assert (numbers["total_input_tokens"], numbers["finish_reasons"]) == (40, {reason: 5})
    assert numbers["verdict"] != "INVALID"


@pytest.mark.parametrize("backend", ASKED)
def test_reasoning_is_told_from_the_answer(thinking: Server, backend: str) -> None:
    settings = loadgen.RunSettings(
        base_url=thinking.base_url,
        backend=backend,
        num_prompts=3,
        random_input_len=8,
        random_output_len=5,
    )
    result = loadgen.run_sync(settings)
    assert (result.data["completed"], result.data["total_output_tokens"]) == (3, 15)
    assert result.tokens.reasoning_events == 6
