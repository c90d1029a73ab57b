"""Servers that give each connection a thread: idle connections must not keep requests from one."""

from pathlib import Path

import pytest

from tests.helpers.fault_requests import Sender
from tests.helpers.fault_runs import job, run
from tests.helpers.thread_server import thread_server


@pytest.mark.parametrize("threads", [1, 4, 8])
async def test_no_request_is_lost_at_a_rate(threads: int, tmp_path: Path) -> None:
    with thread_server(threads) as server:
        work = job(server.url, tmp_path, 40, request_rate=20.0 * threads, timeout=5.0)
        measured = await run(work)
    assert measured.snapshot.outcomes == {"ok": 40}


async def test_a_closed_loop_of_one_needs_one_thread(tmp_path: Path) -> None:
    with thread_server(1) as server:
        measured = await run(job(server.url, tmp_path, 20, max_concurrency=1, timeout=5.0))
    assert measured.snapshot.outcomes == {"ok": 20}
    # All but one was answered as soon as it was sent: that took 20 ms.
    assert measured.snapshot.histograms["ttft_sent"].percentile(90) < 100e6


async def test_the_verdict_names_what_waited_for_a_thread(tmp_path: Path) -> None:
    with thread_server(1) as server:
        measured = await run(job(server.url, tmp_path, 20, max_concurrency=1, timeout=5.0))
    assert measured.trailer.workers[0].client.starved_requests == 1


async def test_a_server_that_keeps_connections_sees_few() -> None:
    with thread_server(4) as server:
        async with Sender(server.url) as sender:
            await sender.several(2)
            await sender.transport.warm(2)  # waits until they have rested
            for _ in range(20):
                await sender.several(2)
        assert server.connections <= 3


async def test_a_server_that_closes_behind_each_answer_sees_one_for_each_request() -> None:
    with thread_server(4, closes=True) as server:
        async with Sender(server.url) as sender:
            for _ in range(8):
                await sender.one()
            assert {str(record.outcome) for record in sender.records} == {"ok"}
        assert server.connections <= 8


async def test_a_server_sees_the_end_of_a_connection_at_once() -> None:
    with thread_server(1) as server:
        async with Sender(server.url) as sender:
            await sender.one()
            sender.transport.pool.close_all()
            # The event loop of the client has had no turn.
            assert server.ended.wait(5)
