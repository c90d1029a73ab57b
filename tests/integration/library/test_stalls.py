"""A loop that something else blocks: the run says so, by name."""

import asyncio
import time
from pathlib import Path

import loadgen
from tests.helpers.fault_runs import job, run
from tests.helpers.scripted_server import GOOD, read_request, serving

STALL_S, EVERY_S = 0.01, 0.02  # one send of six is more than 5 ms late


async def test_a_loop_that_stalls_for_10_ms_every_20_ms_is_named() -> None:
    settings = loadgen.RunSettings(
        engine="sim", request_rate=20, num_prompts=60, random_input_len=8, random_output_len=16
    )
    for _ in range(3):  # where other processes hold up the machine, the check may not know
        result = await stalled(settings)
        (check,) = [
            check for check in result.data["loadgen"]["checks"] if check["name"] == "loop stalls"
        ]
        if check["ok"] is not None:
            break
    assert check["ok"] is False
    assert "tokens waited for the client" in check["advice"]
    assert result.verdict is loadgen.Verdict.SUSPECT


async def stalled(settings: loadgen.RunSettings) -> loadgen.Result:
    """A run in a loop that is blocked again and again."""
    loop = asyncio.get_running_loop()

    def stall() -> None:
        nonlocal timer
        time.sleep(STALL_S)
        timer = loop.call_later(EVERY_S, stall)

    timer = loop.call_later(EVERY_S, stall)
    try:
        return await loadgen.run(settings)
    finally:
        timer.cancel()


async def test_late_requests_use_the_connections_of_others(tmp_path: Path) -> None:
    """After a stall of 1.5 s, 300 requests are late at once."""
    opened_at: list[float] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened_at.append(time.monotonic())
        while await read_request(reader):
            await asyncio.sleep(0.05)
            writer.write(GOOD)
            await writer.drain()

    async with serving(script) as url:
        work = job(url, tmp_path, 600, request_rate=200.0)
        stall = asyncio.get_running_loop().call_later(1.5, time.sleep, 1.5)
        measured = await run(work)
    assert measured.snapshot.outcomes == {"ok": 600}
    assert sum(at > stall.when() for at in opened_at) < 150
