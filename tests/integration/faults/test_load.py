"""A run on the clock always ends, and every request is accounted for."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.file import RecordWriter
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.worker_main import work
from loadgen.testing.faults.fault import Shares
from loadgen.testing.faulty import Faulty, serving
from loadgen.util.child_process import PipeWriter
from tests.helpers.fault_runs import PATIENCE_S, carried_out, job, run


async def test_every_request_of_a_run_is_accounted_for(faulty: Faulty, tmp_path: Path) -> None:
    measured = await run(job(faulty.url, tmp_path, 30, request_rate=1000))
    assert measured.snapshot.outcomes == {"ok": 30}
    assert measured.snapshot.partial is None


async def test_a_run_counts_the_faults_that_a_server_played(tmp_path: Path) -> None:
    shares = Shares.parse(
        "status:503=0.1,eof:1=0.1,reset=0.1,stream-error=0.1,done-only=0.1,bad-json=0.1", seed=1
    )
    async with serving(shares) as faulty:
        measured = await run(job(faulty.url, tmp_path, 300, request_rate=3000))
    names = {
        "none": "ok",
        "status": "status(503)",
        "eof": "truncated",
        "reset": "refused",
        "stream-error": "stream_error",
        "done-only": "empty",
        "bad-json": "protocol_error",
    }
    assert measured.snapshot.outcomes == {
        names[fault]: count for fault, count in faulty.played.items()
    }
    assert len(measured.snapshot.outcomes) == len(names)
    assert sum(measured.snapshot.outcomes.values()) == faulty.requests == 300
    assert measured.snapshot.histograms["ttft_due"].count == faulty.played["none"]


async def test_progress_tells_of_what_is_in_flight_and_of_what_has_ended_and_how(
    tmp_path: Path,
) -> None:
    shares = Shares.parse("status:503=0.2,eof:1=0.2", seed=1)
    async with serving(shares) as faulty:
        runner, given = (
            LoopRunner(),
            job(faulty.url, tmp_path, 100, request_rate=2000, max_concurrency=64),
        )
        assert runner.progress() == Progress("connecting")
        measured = await carried_out(runner, given)
    told, found = runner.progress(), measured.snapshot
    assert (told.phase, told.in_flight, told.oldest_s, told.waiting, told.due) == (
        "draining",
        0,
        0,
        0,
        100,
    )
    assert {"ok": told.ok, **told.failures} == found.outcomes
    assert told.sent == (found.sent >= 0).sum() == 100
    assert told.streamed_tokens == told.counted_tokens + faulty.played["eof"]
    assert told.output_tokens == found.counters["output_tokens"]
    assert (told.cap, told.closed_loop) == (64, False)
    assert told.sending_s == pytest.approx(0.05, abs=0.005)
    assert 0 < told.busy_share <= 1
    sketches = {
        "ttft_due": told.ttft,
        "ttfo_due": told.ttfo,
        "tpot": told.tpot,
        "itl": told.itl,
        "icl": told.icl,
    }
    for name, sketch in (sketches | {"e2el_due": told.e2el, "lag": told.lag}).items():
        assert sketch == Sketch.of(found.histograms[name]), name


async def test_a_request_that_finds_no_server_is_due_and_was_not_sent(tmp_path: Path) -> None:
    runner, given = LoopRunner(), job("http://127.0.0.1:1", tmp_path, 5, request_rate=1000)
    measured = await carried_out(runner, given)
    told = runner.progress()
    assert measured.snapshot.outcomes == told.failures == {"refused": 5}
    assert told.sent == (measured.snapshot.sent >= 0).sum() == 0
    assert told.due == told.ended == 5


@pytest.mark.parametrize(
    "settings", [{"request_rate": 20.0}, {"max_concurrency": 2}], ids=["open", "closed"]
)
async def test_stopping_and_aborting_end_a_run_with_every_request_accounted_for(
    faulty: Faulty, tmp_path: Path, settings: dict[str, Any]
) -> None:
    runner, given = LoopRunner(), job(faulty.url, tmp_path, 50, "stall:1", **settings)
    running = asyncio.create_task(carried_out(runner, given))
    await faulty.came(1)
    told = runner.progress()
    assert told.in_flight
    assert 0 < told.oldest_s <= told.elapsed_s
    runner.stop("enough")
    runner.stop("enough")
    runner.abort("enough")
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"cancelled": 50}
    assert snapshot.partial == "enough"


async def test_stop_before_the_start_cancels_every_request(faulty: Faulty, tmp_path: Path) -> None:
    ready = asyncio.get_running_loop().create_future()
    runner, given = LoopRunner(), job(faulty.url, tmp_path, 5)
    running = asyncio.create_task(carried_out(runner, given, ready))
    await asyncio.sleep(0)
    runner.stop("enough")
    ready.set_result(None)
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"cancelled": 5}


@pytest.fixture
def full() -> Iterator[str]:
    """A server that takes no connections: what is sent to open one is dropped, for its queue is
    full.
    """
    with socket.socket() as listening, socket.socket() as queued:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        queued.connect(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("act", [LoopRunner.stop, LoopRunner.abort])
async def test_a_stop_ends_connecting_to_a_server_that_takes_no_connections(
    full: str, tmp_path: Path, act: Callable[[LoopRunner, str], None]
) -> None:
    runner, given = (
        LoopRunner(),
        job(full, tmp_path, 5, warm_connections="5", connect_timeout=600.0),
    )
    running = asyncio.create_task(carried_out(runner, given))
    for _ in range(20):
        await asyncio.sleep(0)
    act(runner, "enough")
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"cancelled": 5}
    assert snapshot.counters["warm_connections"] == 0


async def test_a_worker_that_is_left_alone_while_it_connects_ends(
    full: str, tmp_path: Path
) -> None:
    commands = asyncio.StreamReader()
    commands.feed_eof()
    async with asyncio.timeout(PATIENCE_S):
        alone = job(full, tmp_path, 5, warm_connections="5", connect_timeout=600.0)
        with open(os.devnull, "wb") as nowhere:  # noqa: ASYNC230 - not read from
            await work(alone, commands, PipeWriter(nowhere.fileno()))


async def test_a_warm_up_by_time_is_sent_before_the_run_and_not_measured(
    faulty: Faulty, tmp_path: Path
) -> None:
    given = job(faulty.url, tmp_path, 5, warmup=0.3, request_rate=50.0)
    snapshot = (await run(given)).snapshot
    assert snapshot.outcomes == {"ok": 5}
    assert 5 < faulty.requests <= 5 + 2 * 15  # Poisson arrivals: 15 on average


@pytest.mark.parametrize(
    "warm_up", [{"num_warmups": 3}, {"warmup": 60.0, "max_concurrency": 2}], ids=["count", "time"]
)
async def test_an_abort_ends_warm_ups_that_hang(
    faulty: Faulty, tmp_path: Path, warm_up: dict[str, Any]
) -> None:
    runner, given = LoopRunner(), job(faulty.url, tmp_path, 5, "stall:1", **warm_up)
    running = asyncio.create_task(carried_out(runner, given))
    await faulty.came(1)
    assert runner.progress().phase == "warming up"
    runner.abort("enough")
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"cancelled": 5}


async def test_a_closed_loop_that_is_stopped_invents_no_requests(
    faulty: Faulty, tmp_path: Path
) -> None:
    runner, given = (
        LoopRunner(),
        job(faulty.url, tmp_path, 10_000, max_concurrency=2, duration=20.0),
    )
    running = asyncio.create_task(carried_out(runner, given))
    await faulty.came(1)
    runner.stop("enough")
    snapshot = (await running).snapshot
    assert snapshot.outcomes == {"ok": snapshot.scheduled}
    assert 0 < snapshot.scheduled < 10_000


async def test_a_fault_of_ours_on_the_clock_ends_the_run_and_is_raised(
    faulty: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(RecordWriter, "write", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        await run(job(faulty.url, tmp_path, 10, request_rate=1000, records=str(tmp_path / "r")))
