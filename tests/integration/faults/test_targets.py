"""Several targets through real connections: a failure of one affects only its own requests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadgen.core.outcome import Outcome
from loadgen.engines.sim.http1 import Request
from loadgen.features import capture
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner.job import Job
from loadgen.runner.loop_runner import LoopRunner
from loadgen.testing.faulty import HEADER, Faulty, serving
from loadgen.workload.target import request_targets
from tests.helpers.fault_runs import carried_out, job, recorded, run
from tests.helpers.scripted_server import GOOD, chatting
from tests.helpers.scripted_server import serving as scripted


@pytest.fixture
async def both() -> AsyncIterator[tuple[Faulty, Faulty]]:
    async with serving() as one, serving() as other:
        yield one, other


def shared(
    urls: tuple[str, ...], folder: Path, count: int, fault: str | None = None, **settings: Any
) -> Job:
    """`count` requests, all of which meet `fault`, shared by the servers at these URLs."""
    header = (f"{HEADER}={fault}",) if fault else ()
    work = job(
        urls[0], folder, count, base_url=urls, backend="openai-chat", header=header, **settings
    )
    return replace(work, targets=request_targets(work.settings, "m"))


def ok(snapshot: Snapshot) -> list[int]:
    return [part.ok for part in snapshot.targets]


async def test_round_robin_assigns_targets_by_request_number(
    both: tuple[Faulty, Faulty], tmp_path: Path
) -> None:
    path = tmp_path / "records"
    urls = (both[0].url, both[1].url)
    measured = await run(shared(urls, tmp_path, 21, request_rate=2000.0, records=str(path)))
    assert [one.requests for one in both] == ok(measured.snapshot) == [11, 10]
    assert [record.target for record in recorded(path)] == [index % 2 for index in range(21)]


@pytest.mark.parametrize("count", [5, 8])
async def test_connections_are_opened_ahead_to_each(
    both: tuple[Faulty, Faulty], tmp_path: Path, count: int
) -> None:
    work = shared(
        (both[0].url, both[1].url), tmp_path, 8, request_rate=2000.0, warm_connections=str(count)
    )
    measured = await run(work)
    each = -(-count // 2)
    assert measured.snapshot.counters["warm_connections"] == 2 * each
    assert all(one.connections >= each for one in both)


async def test_the_test_request_and_the_warm_ups_reach_each(
    both: tuple[Faulty, Faulty], tmp_path: Path
) -> None:
    settings = {
        "request_rate": 2000.0,
        "num_warmups": 5,
        "ready_check_timeout_sec": 5.0,
        "max_concurrency": 1,
    }
    await run(shared((both[0].url, both[1].url), tmp_path, 4, **settings))
    assert [one.requests for one in both] == [1 + 3 + 2, 1 + 2 + 2]


async def test_dying_target_fails_only_its_own_requests(tmp_path: Path) -> None:
    """The second one dies with its tenth request in flight; what comes for it afterwards is
    refused.
    """
    path, count = tmp_path / "records", 60
    async with serving() as survivor, contextlib.AsyncExitStack() as life:
        dying = await life.enter_async_context(serving())
        work = shared(
            (survivor.url, dying.url), tmp_path, count, request_rate=25.0, records=str(path)
        )
        running = asyncio.create_task(run(work))
        await dying.came(10)
        await life.aclose()
        measured = await running
    assert ok(measured.snapshot)[0] == survivor.requests == count // 2
    lived, died = measured.snapshot.targets
    assert lived.outcomes == {"ok": count // 2}
    assert 0 < died.ok <= 10
    assert (
        died.ok + died.outcomes["refused"] + died.outcomes.get("truncated", 0)
        == died.ended
        == count // 2
    )
    assert {example["target"] for example in measured.snapshot.examples["refused"]} == {1}
    assert {record.target for record in recorded(path) if record.outcome is not Outcome.OK} == {1}


async def test_hanging_target_keeps_only_its_share_of_the_slots(
    faulty: Faulty, tmp_path: Path
) -> None:
    async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with scripted(hangs) as hanging:
        settings = {"balance": "least-outstanding", "max_concurrency": 4}
        runner, given = LoopRunner(), shared((hanging, faulty.url), tmp_path, 50, **settings)
        running = asyncio.create_task(carried_out(runner, given))
        await faulty.came(48)
        runner.abort("enough")
        snapshot = (await running).snapshot
    assert [part.ended for part in snapshot.targets] == [2, 48]
    assert snapshot.targets[0].outcomes == {"cancelled": 2}


async def test_limits_are_held_against_each(both: tuple[Faulty, Faulty], tmp_path: Path) -> None:
    work = shared((both[0].url, both[1].url), tmp_path, 6, "stall:1", timeout=0.2)
    measured = await run(work)
    assert [part.outcomes for part in measured.snapshot.targets] == [{"timeout": 3}, {"timeout": 3}]


async def test_stopping_and_aborting_end_what_is_in_flight_to_each(
    both: tuple[Faulty, Faulty], tmp_path: Path
) -> None:
    given = shared((both[0].url, both[1].url), tmp_path, 50, "stall:1", request_rate=200.0)
    runner = LoopRunner()
    running = asyncio.create_task(carried_out(runner, given))
    await asyncio.gather(*(one.came(1) for one in both))
    assert runner.progress().in_flight >= 2
    runner.stop("enough")
    runner.abort("enough")
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"cancelled": 50}
    assert all(part.outcomes["cancelled"] for part in snapshot.targets)


async def test_a_capture_tells_who_gave_each_response_and_hides_the_secrets_of_all(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.jsonl"

    def repeating(ask: Request) -> bytes:
        authorization = ask.headers["authorization"].encode()
        return GOOD.replace(
            b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-Seen: " + authorization + b"\r\n", 1
        )

    async with scripted(chatting(repeating)) as one, scripted(chatting(repeating)) as other:
        users = ("first:hunter2hunter2", "second:swordfish1234")
        urls = tuple(
            url.replace("://", f"://{user}@") for url, user in zip((one, other), users, strict=True)
        )
        await run(shared(urls, tmp_path, 4, capture=str(path)))
    assert [response.target for response in capture.load(str(path)).responses] == [0, 1, 0, 1]
    text = path.read_text()
    assert text.count("X-Seen: Basic *****") == 4


async def test_reads_from_each_ring_the_one_bell(
    both: tuple[Faulty, Faulty], tmp_path: Path
) -> None:
    runner, given = LoopRunner(), shared((both[0].url, both[1].url), tmp_path, 2)
    await carried_out(runner, given)
    assert runner.opened is not None
    assert len({id(transport.hook) for transport in runner.opened.transports}) == 1
    assert runner.opened.link.hook.reads >= 2
