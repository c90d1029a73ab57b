"""Several workers send the requests of one at the same times and give one result."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import Request, whole
from loadgen.metrics.records.file import RecordFile, RecordWriter
from loadgen.metrics.records.shards import further_shards, shard_path
from loadgen.runner import run
from loadgen.runner.workers import open_workers
from loadgen.util.partition import Partition
from tests.helpers.command_line import TOKENIZER
from tests.helpers.response_bytes import answer, streamed, usage
from tests.helpers.scripted_server import chatting, serving

COUNT = 36
RANDOM = loadgen.RunSettings(
    preflight=False,
    backend="openai-chat",
    tokenizer=TOKENIZER,
    random_input_len=8,
    random_output_len=2,
    request_rate=300,
    num_prompts=COUNT,
)
SESSIONS = RANDOM.replace(dataset_name="multi_turn", turns="3")


class Seen:
    """A server that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    @property
    def bodies(self) -> dict[int | None, bytes]:
        """What was asked, by the number of the request."""
        return {ask.index: ask.body for ask in self.asked}

    @property
    def worker(self) -> dict[int | None, bytes]:
        """Who asked, by the number of the request: each worker has a prefix of its own for the
        ids of its requests.
        """
        return {ask.index: ask.id.rpartition(b"-")[0] for ask in self.asked}

    def reply(self, ask: Request) -> bytes:
        self.asked.append(ask)
        return streamed(answer("a", "b", "c") + usage(prompt_tokens=9, completion_tokens=3))


@contextlib.asynccontextmanager
async def seeing() -> AsyncIterator[tuple[Seen, str]]:
    seen = Seen()
    async with serving(chatting(seen.reply)) as url:
        yield seen, url


async def ran(settings: loadgen.RunSettings, **changes: Any) -> tuple[loadgen.Result, Seen]:
    async with seeing() as (seen, url):
        result = await loadgen.run(settings.replace(base_url=url, **changes))
    return result, seen


def exact(result: loadgen.Result) -> dict[str, Any]:
    """The numbers that are no times: those that must be the same however many workers there are."""
    own, snapshot = result.data["loadgen"], result.snapshot
    times = (
        "stream_ns",
        "decode_ns",
        "sojourn_ns",
        "warm_connections",
        "late_connections",
        "token_reads",
    )
    counters = {name: count for name, count in snapshot.counters.items() if name not in times}
    counts = {
        name: own["latency_ms"][name]["count"]
        for name in ("ttft_due", "tpot", "itl", "icl", "e2el_sent", "lag")
    }
    totals = {
        name: result.data[name]
        for name in ("completed", "failed", "total_input_tokens", "total_output_tokens")
    }
    prompts, schedule = own["provenance"]["prompts"], own["provenance"]["schedule"]
    return (
        counters
        | counts
        | totals
        | {
            "outcomes": own["outcomes"],
            "finishes": own["finish_reasons"],
            "index": sorted(snapshot.index.tolist()),
            "prompts": prompts["sha256"],
            "schedule": schedule["sha256"],
        }
    )


def red(result: loadgen.Result, group: str) -> dict[str, str]:
    """The checks of a group that have failed, and what they saw."""
    checks = result.data["loadgen"]["checks"]
    return {
        check["name"]: check["value"]
        for check in checks
        if check["group"] == group and check["ok"] is False
    }


@pytest.mark.parametrize("settings", [RANDOM, SESSIONS], ids=["requests", "sessions"])
async def test_times_prompts_and_numbers_are_the_same_for_any_number_of_workers(
    tmp_path: Path, settings: loadgen.RunSettings
) -> None:
    alone, bodies, due = None, None, None
    for workers in (1, 2, 3):
        path = tmp_path / f"{workers}.jsonl"
        result, seen = await ran(settings, workers=workers, records=str(path))
        told = sorted(RecordFile(path), key=lambda record: record.index)
        begun = [
            record.due - RecordFile(path).start_ns
            for record in told
            if settings is RANDOM or not record.index % 3
        ]
        alone, bodies, due = alone or exact(result), bodies or seen.bodies, due or begun
        assert exact(result) == alone
        assert seen.bodies == bodies
        assert begun == due
        assert len(set(seen.worker.values())) == workers
        assert len(result.data["loadgen"]["workers"]) == workers
        assert report.render(loadgen.from_records(path)) == report.render(result)
        assert not list(further_shards(path))


async def test_released_workers_end() -> None:
    others = set(psutil.Process().children())
    async with open_workers(2) as workers:
        assert len(set(psutil.Process().children()) - others) == 2
        workers.release()
        async with asyncio.timeout(30):
            while set(psutil.Process().children()) - others:  # until they have been waited for, too
                await asyncio.sleep(0.01)


async def test_the_turns_of_a_session_are_asked_by_one_worker() -> None:
    _, seen = await ran(SESSIONS, workers=2)
    for first in range(0, COUNT, 3):
        assert len({seen.worker[first + turn] for turn in range(3)}) == 1


async def test_warm_ups_are_shared_and_the_test_request_is_sent_once() -> None:
    result, seen = await ran(
        RANDOM, workers=2, num_warmups=5, ready_check_timeout_sec=5, warm_connections="7"
    )
    assert len(seen.asked) == COUNT + 5 + 1
    assert result.data["loadgen"]["client"]["warm_connections"] == 7


@pytest.mark.parametrize(
    "changes", [{}, {"duration": 1.0, "num_prompts": None}], ids=["requests", "seconds"]
)
async def test_a_closed_loop_keeps_its_cap(changes: dict[str, Any]) -> None:
    result, _ = await ran(
        RANDOM, workers=2, request_rate=float("inf"), max_concurrency=5, **changes
    )
    own = result.data["loadgen"]
    assert own["closed_loop"]
    assert own["outcomes"] == {"ok": own["scheduled"]}
    assert result.data["max_concurrent_requests"] <= 5
    if not changes:
        assert own["scheduled"] == COUNT


async def test_a_burst_is_sent_by_all() -> None:
    result, seen = await ran(RANDOM, workers=3, request_rate=float("inf"))
    assert result.data["completed"] == COUNT
    assert sorted(Counter(seen.worker.values()).values()) == [COUNT // 3] * 3


async def test_a_worker_without_a_request_does_no_harm() -> None:
    result, _ = await ran(RANDOM, workers=3, num_prompts=2)
    assert result.data["completed"] == 2
    assert not red(result, "A")


async def test_usage_of_each_worker_stands_beside_the_total() -> None:
    result, _ = await ran(RANDOM, workers=2)
    client, workers = result.data["loadgen"]["client"], result.data["loadgen"]["workers"]
    assert client["cpu_s"] == pytest.approx(sum(worker["client"]["cpu_s"] for worker in workers))
    assert client["busy_share"] == max(worker["client"]["busy_share"] for worker in workers)
    assert client["peak_memory_bytes"] == sum(
        worker["client"]["peak_memory_bytes"] for worker in workers
    )
    assert "2 workers, the busiest loop" in report.render(result)


async def test_several_targets_are_shared_in_turn_by_all_workers_together() -> None:
    async with seeing() as (one, first), seeing() as (other, second):
        urls = (first, second)
        result = await loadgen.run(
            RANDOM.replace(base_url=urls, workers=2, warm_connections="6", balance="round-robin")
        )
    assert sorted(one.bodies) == list(range(0, COUNT, 2))
    assert sorted(other.bodies) == list(range(1, COUNT, 2))
    assert result.data["loadgen"]["client"]["warm_connections"] == 6


async def test_a_trace_that_one_worker_has_only_the_first_of_is_no_closed_loop(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(
        "".join(
            f'{{"timestamp": {ms}, "input_length": 20, "output_length": 2}}\n' for ms in (0, 200)
        )
    )
    records = tmp_path / "r.jsonl"
    trace = {
        "dataset_name": "trace",
        "dataset_path": str(path),
        "max_concurrency": 4,
        "num_prompts": None,
    }
    settings = RANDOM.replace(
        random_input_len=1024, random_output_len=128, request_rate=float("inf"), **trace
    )
    await ran(settings, workers=2, records=str(records))
    file = RecordFile(records)
    assert sorted(record.due - file.start_ns for record in file) == [0, 200_000_000]


async def test_a_pipe_gets_the_records_of_all_at_the_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
    await ran(RANDOM, workers=2, records=str(pipe))
    (tmp_path / "r.jsonl").write_bytes(await reading)
    assert sorted(record.index for record in RecordFile(tmp_path / "r.jsonl")) == [*range(COUNT)]


# -- one dies


LONG = RANDOM.replace(request_rate=100, num_prompts=3000)


async def killed(**changes: Any) -> loadgen.Result:
    """The result of a run of which the second of two workers is killed after two seconds."""
    before = {child.pid for child in psutil.Process().children()}
    began = asyncio.Event()

    def watch(progress: loadgen.Progress) -> None:
        if progress.phase == "running" and progress.ended > 200:
            began.set()

    async with seeing() as (_, url):
        task = asyncio.create_task(
            loadgen.run(LONG.replace(base_url=url, workers=2, **changes), on_progress=watch)
        )
        await asyncio.wait(
            {task, asyncio.create_task(began.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        children = [child for child in psutil.Process().children() if child.pid not in before]
        second = sorted(
            child.pid for child in children if "loadgen.runner.worker_main" in child.cmdline()
        )[1]
        os.kill(second, signal.SIGKILL)
        return await task


async def test_a_run_whose_worker_is_killed_is_invalid_says_which_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    result = await killed(records=str(path))
    own = result.data["loadgen"]
    assert result.verdict is loadgen.Verdict.INVALID
    assert own["partial"] == "worker 2 of 2 was killed by signal 9"
    assert red(result, "A")["workers missing"] == (
        "1 of 2 workers: worker 2 was killed by signal 9"
    )
    assert "requests not ended once" in red(result, "A")
    assert [worker["lost"] for worker in own["workers"]] == [None, "was killed by signal 9"]
    parity = np.bincount(result.snapshot.index[result.snapshot.sent >= 0] % 2)
    assert parity[0] > 100
    assert parity[1] > 30  # what it had flushed: all but the last second
    assert report.render(loadgen.from_records(path)) == report.render(result)
    assert not list(further_shards(path))


async def test_unresponsive_worker_is_killed_at_the_end_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loadgen.runner.workers.PATIENCE_S", 0.5)
    async with open_workers(2) as workers, seeing() as (_, url):
        stopped = False

        def watch(progress: loadgen.Progress) -> None:
            nonlocal stopped
            if progress.phase == "running" and progress.ended > 200 and not stopped:
                stopped = True
                os.kill(workers._participants[1].pid, signal.SIGSTOP)
                workers.abort("interrupted")

        result = await run.run(
            LONG.replace(base_url=url, workers=2), participant=workers, on_progress=watch
        )
    assert [worker["lost"] for worker in result.data["loadgen"]["workers"]] == [
        None,
        "was killed by signal 9",
    ]
    assert result.verdict is loadgen.Verdict.INVALID


async def test_without_records_what_the_others_have_measured_is_kept() -> None:
    result = await killed()
    assert result.verdict is loadgen.Verdict.INVALID
    assert (result.snapshot.index % 2 == 0).all()
    assert result.data["completed"] > 100


# -- it comes to no end


async def begun(
    url: str, path: Path, until: Callable[[loadgen.Progress], bool], **changes: Any
) -> "asyncio.Task[Any]":
    """A run of two workers that has come so far."""
    far = asyncio.Event()

    def watch(progress: loadgen.Progress) -> None:
        if until(progress):
            far.set()

    settings = LONG.replace(base_url=url, workers=2, records=str(path), **changes)
    task = asyncio.create_task(loadgen.run(settings, on_progress=watch))
    await asyncio.wait({task, asyncio.create_task(far.wait())}, return_when=asyncio.FIRST_COMPLETED)
    return task


async def test_a_run_that_is_cancelled_leaves_the_records_of_all(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with seeing() as (_, url):
        task = await begun(
            url, path, lambda progress: progress.phase == "running" and progress.ended > 250
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    result = loadgen.from_records(path)
    assert [worker["lost"] for worker in result.data["loadgen"]["workers"]] == [None, None]
    assert (np.bincount(result.snapshot.index % 2) > 30).all()


async def test_run_given_up_before_its_start_keeps_older_records(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    await ran(RANDOM, workers=2, records=str(path))
    before = path.read_bytes()
    async with seeing() as (_, url):
        task = await begun(
            url, path, lambda progress: progress.phase == "preparing", num_prompts=100_000
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert path.read_bytes() == before


async def test_a_run_whose_clock_never_starts_leaves_no_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    settings = RANDOM.replace(workers=2, ready_check_timeout_sec=0.5, records=str(path))
    async with serving(chatting(lambda ask: whole(500, b"{}"))) as url:
        with pytest.raises(loadgen.Unreachable, match="no success"):
            await loadgen.run(settings.replace(base_url=url))
    assert not list(further_shards(path))


# -- everything dies


def in_parts(tmp_path: Path, workers: int) -> Path:
    """The journals that so many workers would have left of a run if all had been killed."""
    path = tmp_path / "r.jsonl"
    asyncio.run(ran(RANDOM, workers=1, records=str(path)))
    file = RecordFile(path)
    records = list(file)
    for number in range(workers):
        with RecordWriter.optional(shard_path(path, number)) as writer:
            assert writer
            partition = Partition(number, workers)
            writer.begin(file.header, file.start_ns, file.scheduled, [], None, partition)
            for record in records:
                if record.index % workers == number:
                    writer.write(record)
    return path


def test_journals_of_workers_make_a_report(tmp_path: Path) -> None:
    result = loadgen.from_records(in_parts(tmp_path, 3))
    assert result.data["completed"] == COUNT
    assert (
        result.data["loadgen"]["partial"]
        == f"{COUNT} of {COUNT} requests had ended when the records stopped"
    )
    assert len(result.data["loadgen"]["workers"]) == 3


def test_a_part_that_is_missing_makes_it_invalid(tmp_path: Path) -> None:
    path = in_parts(tmp_path, 3)
    shard_path(path, 2).unlink()
    result = loadgen.from_records(path)
    assert result.verdict is loadgen.Verdict.INVALID
    assert "worker 3 left no records" in report.render(result)
    assert result.data["completed"] == COUNT * 2 // 3


def test_lines_without_the_last_make_a_report(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    asyncio.run(ran(RANDOM, workers=2, records=str(path)))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    result = loadgen.from_records(path)
    assert result.data["completed"] == COUNT
    assert (
        result.data["loadgen"]["partial"]
        == f"{COUNT} of {COUNT} requests had ended when the records stopped"
    )
    assert not red(result, "A")
