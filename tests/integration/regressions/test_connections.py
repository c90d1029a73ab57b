"""Connections: no request waits for one inside the client, and none is opened during its time."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
from msgspec import structs

from loadgen.core.outcome import Outcome
from tests.helpers.fault_requests import UNVERIFIED, Sender
from tests.helpers.fault_runs import PATIENCE_S, job, run, run_recorded
from tests.helpers.scripted_server import GOOD, Script, read_request, serving


def all_together(count: int) -> Script:
    """A server that answers nobody before it holds `count` requests at the same time."""
    held, everybody = [0], asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            held[0] += 1
            if held[0] == count:
                everybody.set()
            await everybody.wait()
            writer.write(GOOD)
            await writer.drain()

    return script


async def test_hundreds_of_requests_do_not_wait_for_connections() -> None:
    """aiohttp's connector opens 100 connections at most unless told otherwise (gpustack#2324).

    Users saw TTFT rise as soon as more than 100 streams were in flight, on any server: the rest
    queued in the client.
    """
    async with serving(all_together(250)) as url, Sender(url) as sender:
        sender.start(250)
        records = await asyncio.wait_for(sender.ended(250), PATIENCE_S)
    assert {record.outcome for record in records} == {Outcome.OK}
    assert max(record.sent for record in records) < min(record.first_byte for record in records)


async def test_single_process_holds_over_a_hundred_requests(tmp_path: Path) -> None:
    """guidellm#487: httpx's default of 100 connections capped each worker.

    Users asked for a concurrency of 128, the client reported 128, and the server never saw more
    than 100.
    """
    async with serving(all_together(130)) as url:
        found, records = await run_recorded(url, tmp_path, 130)
    assert found.snapshot.outcomes == {"ok": 130}
    assert max(record.sent for record in records) < min(record.closed for record in records)


async def test_connections_are_opened_before_the_first_request_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vllm#21981: each request opened its own connection, and its TLS handshake counted as TTFT.

    Users saw a TTFT that grew with the concurrency while eight replicas of the engine were idle.
    """
    seen: list[str] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append("connection")
        while await read_request(reader):
            seen.append("request")
            writer.write(GOOD)
            await writer.drain()

    # On a machine that stands still for a second before the run starts, they would be too old for
    # use.
    monkeypatch.setattr("loadgen.core.keep_alive.SAFE_AGE_NS", 3600 * 10**9)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    async with serving(script, tls) as url:
        work = job(url, tmp_path, 40, request_rate=400.0, base_url=url)
        work = structs.replace(
            work,
            targets=tuple(structs.replace(target, route=UNVERIFIED) for target in work.targets),
        )
        found = await run(work)
    assert found.snapshot.outcomes == {"ok": 40}
    assert seen[:40] == ["connection"] * 40
    assert seen.count("request") == 40
    assert found.snapshot.histograms["connect"].max == 0


async def test_a_connection_that_has_to_be_opened_late_is_no_part_of_ttft_from_sent() -> None:
    """vllm#21981, the other half: what could not be opened ahead is measured by itself."""
    async with serving(all_together(1)) as url, Sender(url) as sender:
        record = await sender.one()
    assert 0 < record.connect_ns <= record.sent - record.ready
    assert record.ready + record.connect_ns <= record.sent <= record.first_token
