"""A run ends where its server hangs, and goes on where the server only takes long."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import loadgen
from tests.helpers.source import ROOT

LIMIT_S = 0.5  # in place of 30 s
PREFILL_S = 5 * LIMIT_S


@asynccontextmanager
async def planted(way: str) -> AsyncIterator[str]:
    """The URL of a server process with a way to fail."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.helpers.planted_server", way, str(PREFILL_S)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.communicate()


async def run(way: str, **settings: Any) -> loadgen.Result:
    """A run of 60 requests, twenty each second."""
    async with planted(way) as url:
        return await loadgen.run(
            loadgen.RunSettings(
                **{
                    "base_url": url,
                    "backend": "openai-chat",
                    "model": "planted",
                    "tokenizer": "built-in",
                    "num_prompts": 60,
                    "request_rate": 20,
                    "random_input_len": 4,
                    "random_output_len": 8,
                    "liveness_timeout": LIMIT_S,
                    "preflight": False,
                    "timeout": 60,
                }
                | settings
            )
        )


def hung(result: loadgen.Result) -> bool:
    return result.verdict == "INVALID" and bool(result.silences) and result.silences[-1].hung


async def test_a_server_that_hangs_under_load_and_lists_its_models_ends_the_run() -> None:
    result = await run("hang")
    assert hung(result)
    assert result.outcomes["ok"] == 20
    assert (result.partial or "").startswith("the server hangs: no token on any stream for ")
    assert "its CPU stood still" in (result.partial or "")


async def test_a_server_that_answers_nothing_any_more_ends_the_run() -> None:
    result = await run("mute")
    assert hung(result)
    assert "health: " in result.silences[-1].found


async def test_one_hung_stream_among_many_ends_by_its_own_limit() -> None:
    result = await run("one", stall_timeout=2 * LIMIT_S)
    assert (result.outcomes, result.partial) == ({"ok": 59, "stalled": 1}, None)
    assert not any(silence.hung for silence in result.silences)


async def test_a_server_that_dies_slowly_ends_the_run() -> None:
    result = await run("slow-death", num_prompts=12)
    assert hung(result)
    assert result.silences[-1].since_s > 0


async def test_a_server_whose_prefill_takes_long_is_not_ended() -> None:
    result = await run("prefill", num_prompts=2)
    assert (result.outcomes, result.partial) == ({"ok": 2}, None)
    assert result.silences[0].found == "its CPU moved"


async def test_a_simulator_that_hangs_ends_the_run_though_its_health_is_good() -> None:
    settings = loadgen.RunSettings(
        engine="sim",
        engine_arg=("--fault hang", "--fault-after 10"),
        num_prompts=40,
        request_rate=40,
        random_output_len=8,
        liveness_timeout=LIMIT_S,
        timeout=60,
    )
    result = await loadgen.run(settings)
    assert hung(result)
    assert "its metrics, log, CPU stood still" in result.silences[-1].found


async def test_an_answer_to_a_request_of_loadgens_own_shows_that_a_server_lives() -> None:
    result = await run("one", num_prompts=5, stall_timeout=6 * LIMIT_S)
    assert (result.outcomes, result.partial) == ({"ok": 4, "stalled": 1}, None)
    (silence,) = result.silences
    assert silence.found == "it answered a request of loadgen's own"
    assert silence.requests >= 1
