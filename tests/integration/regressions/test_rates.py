"""Rates, caps and queues: the load that was asked for, the load sent, and the cost of waiting."""

import asyncio
import itertools
from pathlib import Path

import pytest

from loadgen.checks import sending
from loadgen.config.settings import RunSettings
from loadgen.metrics import throughput
from loadgen.workload.arrivals import Schedule
from tests.helpers.fault_runs import run_recorded
from tests.helpers.run_facts import answered, due_at, result, run_data, steady
from tests.helpers.run_facts import measured as snapshot_of
from tests.helpers.scripted_server import GOOD, Script, read_request, serving

SERVICE_S = 0.05  # what the server takes; long beside the gaps of a schedule of 1,000 req/s


def in_lumps(size: int, most: list[int]) -> Script:
    """A server that takes its time with `size` requests and answers them in one go; `most` gets
    the most it held.
    """
    inside = [0]
    waiting: list[asyncio.Event] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            waiting.append(asyncio.Event())
            mine = waiting[-1]
            if len(waiting) == size:
                await asyncio.sleep(SERVICE_S)
                for other in waiting:
                    other.set()
                waiting.clear()
            await mine.wait()
            inside[0] -= 1
            writer.write(GOOD)
            await writer.drain()

    return script


def test_the_peak_throughput_is_never_below_the_average():
    """vllm#50677: the peak counted chunks and the average tokens.

    With speculative decoding users saw a peak of 111 tok/s in a run that averaged 415 tok/s.
    """
    records = [
        answered(
            i, due=0, tokens=[20 + 50 * n for n in range(40)], counts={"completion_tokens": 160}
        )
        for i in range(3)
    ]
    found = result(records)
    seconds = found["duration"]
    assert found["total_output_tokens"] == 480
    # The fullest second of T seconds holds at least one part in ceil(T).
    assert found["max_output_tokens_per_s"] >= found["output_throughput"] * seconds / -(
        -seconds // 1
    )


def test_a_request_that_ends_as_the_next_is_sent_makes_room_for_it():
    """sglang#36272: the peak concurrency was counted per second, of all requests that touched it.

    Users who had set a cap of 8 read of a peak of 12.
    """
    records = [steady(i, due=10 * (i // 8), ttft=10, n=1) for i in range(80)]
    assert throughput.peak_concurrency(snapshot_of(records)) == 8


async def test_the_peak_concurrency_is_the_cap_and_the_server_saw_no_more(tmp_path: Path) -> None:
    """sglang#36272, on the clock."""
    most = [0]
    async with serving(in_lumps(8, most)) as url:
        found, _ = await run_recorded(url, tmp_path, 64, max_concurrency=8)
    assert found.snapshot.outcomes == {"ok": 64}
    assert most == [8]
    assert throughput.peak_concurrency(found.snapshot) == 8


async def test_the_wait_for_a_slot_is_part_of_ttft(tmp_path: Path) -> None:
    """vllm#54101: TTFT began when the cap let a request go, however long it had been due.

    Users saw a mean E2EL of 506 ms for eight requests at 10 req/s, one at a time, which had
    waited 1.9 s.
    """

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            await asyncio.sleep(SERVICE_S)
            writer.write(GOOD)

    async with serving(slow) as url:
        found, records = await run_recorded(
            url, tmp_path, 8, request_rate=1000.0, max_concurrency=1
        )
    for before, record in itertools.pairwise(records):
        assert record.sent >= before.closed
    histograms = found.snapshot.histograms
    from_due = sum(record.first_token - record.due for record in records) / 8
    from_sent = sum(record.first_token - record.sent for record in records) / 8
    assert histograms["ttft_due"].mean == pytest.approx(from_due, rel=2e-3)
    assert histograms["ttft_sent"].mean == pytest.approx(from_sent, rel=2e-3)
    # All were due at once, nearly: the mean wait is that of 3.5 requests before.
    assert from_due > 3 * from_sent
    waited = sum(record.ready - record.due for record in records) / 8
    assert histograms["pool_wait"].mean == pytest.approx(waited, rel=2e-3)


async def test_slots_freed_together_send_no_request_early(tmp_path: Path) -> None:
    """vllm#45502: requests that end together let all that wait go together, in a burst above the
    rate asked for.

    What is late is sent as soon as it may be here, too; but never before its time, so that no more
    is ever sent than was scheduled by then, each wait is measured, and the checks say that the cap
    has bent the schedule.
    """
    async with serving(in_lumps(4, [0])) as url:
        found, records = await run_recorded(
            url, tmp_path, 40, request_rate=1000.0, max_concurrency=4, burstiness=1.0
        )
    schedule = Schedule.poisson(1000.0, 40, 0)
    assert [record.due - found.snapshot.start_ns for record in records] == schedule.due_ns.tolist()
    assert all(record.due <= record.ready <= record.sent for record in records)
    assert found.snapshot.histograms["pool_wait"].max > 0
    settings = RunSettings(request_rate=1000.0, max_concurrency=4)
    checks = {check.name: check for check in sending(run_data(found.snapshot, settings, schedule))}
    assert checks["rate off schedule"].limit == "the cap held requests back"


def test_without_a_cap_requests_that_end_together_move_no_other():
    """vllm#45502: every request goes when it is due, whatever ends meanwhile; a burst of sends
    turns a check red.
    """
    due = [10 * i for i in range(200)]
    planned = due_at(*due, duration=2000)

    def verdict(sent):
        records = [
            steady(i, due=d, sent=s, n=1, ttft=5000 - d)
            for i, (d, s) in enumerate(zip(due, sent, strict=True))
        ]
        checks = sending(run_data(records, RunSettings(request_rate=100.0), planned))
        return {check.name: check.ok for check in checks}["gaps off schedule"]

    assert verdict(due)
    assert not verdict([100 * -(-d // 100) for d in due])
