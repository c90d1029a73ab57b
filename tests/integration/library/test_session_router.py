"""Behind a router with consistent hashing, the session header decides what prefix caches can
give back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.prefix_cache import BLOCK
from tests.helpers.command_line import TOKENIZER
from tests.helpers.session_router import SessionRouter, TokenRouter
from tests.helpers.sim_server import simulated

SESSIONS, TURNS = 24, 3
HEADER = "X-Session-ID"
RUN = loadgen.RunSettings(
    backend="openai-chat",
    tokenizer=TOKENIZER,
    dataset_name="multi_turn",
    turns=str(TURNS),
    random_input_len=64,
    random_output_len=8,
    request_rate=40,
    num_prompts=SESSIONS * TURNS,
    server_metrics=("off",),
)


@pytest.fixture(scope="module")
def servers() -> Iterator[list[str]]:
    """Two simulators that keep all prompts of the tests."""
    started = [simulated(enable_prefix_caching=True, num_kv_tokens=1 << 20) for _ in range(2)]
    yield [server.base_url for server in started]
    for server in started:
        server.stop()


async def measured(
    router: SessionRouter, folder: Path, seed: int, **changes: Any
) -> tuple[list[dict[str, int]], list[int]]:
    """The records of a run behind a router, and the server of each request."""
    records = folder / "records.jsonl"
    async with router.serving() as url:
        result = await loadgen.run(
            RUN.replace(base_url=url, seed=seed, records=str(records), seed_prompts=seed, **changes)
        )
    assert result.data["loadgen"]["outcomes"] == {"ok": SESSIONS * TURNS}
    assert [check.ok for check in result.checks if check.name == "session token missing"] in (
        [],
        [True],
    )
    lines = [orjson.loads(line) for line in records.read_bytes().splitlines()[1:-1]]
    return sorted(lines, key=lambda line: line["index"]), [
        router.chosen[index] for index in range(SESSIONS * TURNS)
    ]


def cached(lines: list[dict[str, int]], chosen: list[int]) -> list[int]:
    """The cached tokens of each turn, by the hashes: the full blocks of the longest earlier turn
    against the same server.
    """
    tokens = []
    for line, server in zip(lines, chosen, strict=True):
        earlier = [
            lines[index]
            for index in range(line["session"], line["index"])
            if chosen[index] == server
        ]
        tokens.append(max((turn["prompt_tokens"] // BLOCK * BLOCK for turn in earlier), default=0))
    return tokens


async def test_with_the_header_every_later_turn_finds_the_turn_before_it(
    servers: list[str], tmp_path: Path
) -> None:
    lines, chosen = await measured(
        SessionRouter(servers, HEADER), tmp_path, 1, session_header=HEADER
    )
    assert all(chosen[line["index"]] == chosen[line["session"]] for line in lines)
    assert set(chosen) == {0, 1}
    assert [line["cached_tokens"] for line in lines] == cached(lines, chosen)
    assert all(line["cached_tokens"] for line in lines if line["turn"] > 1)


async def test_without_it_turns_find_what_chance_has_sent_to_the_same_server(
    servers: list[str], tmp_path: Path
) -> None:
    lines, chosen = await measured(
        SessionRouter(servers, HEADER), tmp_path, 2, session_header="none"
    )
    assert any(chosen[line["index"]] != chosen[line["session"]] for line in lines)
    assert [line["cached_tokens"] for line in lines] == cached(lines, chosen)


@pytest.mark.parametrize(("seed", "header"), [(3, "x-session-token"), (4, "Set-Cookie")])
async def test_a_token_that_is_sent_back_keeps_turns_at_the_server_of_the_first(
    servers: list[str], tmp_path: Path, seed: int, header: str
) -> None:
    router = TokenRouter(servers, header)
    lines, chosen = await measured(
        router, tmp_path, seed, session_token=header.upper(), session_header="none"
    )
    assert all(chosen[line["index"]] == chosen[line["session"]] for line in lines)
    assert set(chosen) == {0, 1}
    assert [line["cached_tokens"] for line in lines] == cached(lines, chosen)
    assert all(line["cached_tokens"] for line in lines if line["turn"] > 1)


async def test_without_the_token_turns_find_what_chance_has_sent_to_the_same_server(
    servers: list[str], tmp_path: Path
) -> None:
    lines, chosen = await measured(
        TokenRouter(servers, "x-session-token"), tmp_path, 5, session_header="none"
    )
    assert any(chosen[line["index"]] != chosen[line["session"]] for line in lines)
    assert [line["cached_tokens"] for line in lines] == cached(lines, chosen)


async def test_a_header_that_the_router_does_not_return_is_named(servers: list[str]) -> None:
    async with TokenRouter(servers, "x-session-token").serving() as url:
        result = await loadgen.run(
            RUN.replace(base_url=url, num_prompts=6, session_token="x-token")
        )
    assert [check.ok for check in result.checks if check.name == "session token missing"] == [False]
    assert "4 later turns of sessions had no x-token to send back" in report.render(result)
