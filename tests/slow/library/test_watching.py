"""Watching a run: progress and snapshots in the caller's loop, also with workers."""

import asyncio

import pytest

import loadgen
from loadgen.testing.faulty import Faulty, serving
from tests.helpers.command_line import TOKENIZER
from tests.helpers.repeated import Repeated

MINE = Repeated(loadgen.Prompt("one two three", 3, 3, "mine"))
SETTINGS = loadgen.RunSettings(backend="openai-chat", request_rate=200, num_prompts=60)
ENDLESS = SETTINGS.replace(num_prompts=100_000)
OFTEN_S = 0.02


async def seen(settings: loadgen.RunSettings) -> tuple[list[loadgen.Snapshot], loadgen.Result]:
    """Three snapshots of a run that has gone on between them, and its result; with the third it
    is stopped.
    """
    snapshots: list[loadgen.Snapshot] = []
    async with loadgen.watch(settings, every_s=OFTEN_S, dataset=MINE) as run:
        async for _ in run:
            snapshot = run.snapshot()
            if snapshot is not None and snapshot.ok > (snapshots[-1].ok if snapshots else 0):
                snapshots.append(snapshot)
            if len(snapshots) == 3:
                run.stop("three were seen")
        return snapshots, await run.result()


async def test_snapshots_grow_into_the_result_each_of_its_own_moment(faulty: Faulty) -> None:
    snapshots, result = await seen(ENDLESS.replace(base_url=faulty.url))
    answered = [snapshot.ok for snapshot in (*snapshots, result.snapshot)]
    assert answered == sorted(answered)
    assert answered[0] < answered[1] < answered[2]
    for snapshot in (*snapshots, result.snapshot):
        assert snapshot.start_ns == result.snapshot.start_ns
        assert snapshot.scheduled == 100_000
        assert snapshot.histograms["ttft_due"].count == snapshot.ok
        assert snapshot.counters["output_tokens"] == 3 * snapshot.ok == snapshot.bins.sum()


async def test_before_the_clock_starts_there_is_none(faulty: Faulty) -> None:
    async with loadgen.watch(SETTINGS.replace(base_url=faulty.url), dataset=MINE) as run:
        assert run.snapshot() is None
        assert (await run.result()).snapshot.ok == 60


async def test_several_targets_each_have_their_part() -> None:
    async with serving() as one, serving() as other:
        snapshots, result = await seen(ENDLESS.replace(base_url=(one.url, other.url)))
    for snapshot in (*snapshots, result.snapshot):
        assert len(snapshot.targets) == 2
        assert sum(part.ok for part in snapshot.targets) == snapshot.ok


async def test_several_workers_give_counts_and_no_snapshot(faulty: Faulty) -> None:
    settings = ENDLESS.replace(base_url=faulty.url, workers=2, tokenizer=TOKENIZER)
    async with loadgen.watch(settings, every_s=OFTEN_S, dataset=MINE) as run:
        async for progress in run:
            assert run.snapshot() is None
            if progress.ok > 20:
                run.stop("enough was counted")
        assert (await run.result()).snapshot.ok > 20


async def test_a_run_that_is_stopped_ends_with_a_partial_result(faulty: Faulty) -> None:
    async with loadgen.watch(
        ENDLESS.replace(base_url=faulty.url), every_s=OFTEN_S, dataset=MINE
    ) as run:
        async for progress in run:
            if progress.ok > 20:
                run.stop("it has shown enough")
        result = await run.result()
    assert result.data["loadgen"]["partial"] == "it has shown enough"
    assert 20 < result.snapshot.ok < 100_000


async def test_run_cannot_be_stopped_before_it_measures(faulty: Faulty) -> None:
    async with loadgen.watch(ENDLESS.replace(base_url=faulty.url), dataset=MINE) as run:
        with pytest.raises(loadgen.LoadgenError, match="leave the block instead"):
            run.stop("too early")


async def test_leaving_the_block_ends_the_run(faulty: Faulty) -> None:
    async with loadgen.watch(
        ENDLESS.replace(base_url=faulty.url), every_s=OFTEN_S, dataset=MINE
    ) as run:
        async for progress in run:
            if progress.ok:
                break
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert faulty.requests < 100_000
    assert (await run.result()).partial == "its block was left"


async def test_who_waits_for_the_result_may_be_cancelled_and_the_run_goes_on(
    faulty: Faulty,
) -> None:
    async with loadgen.watch(SETTINGS.replace(base_url=faulty.url), dataset=MINE) as run:
        waiting = asyncio.create_task(run.result())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await run.result()).snapshot.ok == 60


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_last_progress_is_of_the_whole_run(faulty: Faulty, workers: int) -> None:
    settings = SETTINGS.replace(base_url=faulty.url, workers=workers, tokenizer=TOKENIZER)
    async with loadgen.watch(settings, every_s=60, dataset=MINE) as run:
        (last,) = [progress async for progress in run]
        result = await run.result()
    assert (last.phase, last.ended, last.ok, last.sent, last.in_flight) == ("done", 60, 60, 60, 0)
    assert last.output_tokens == result.data["total_output_tokens"]
    assert last.ttft.count == 60


async def test_error_of_the_run_is_raised_to_the_watcher() -> None:
    settings = SETTINGS.replace(base_url="http://127.0.0.1:1")
    async with loadgen.watch(settings, every_s=60, dataset=MINE) as run:
        with pytest.raises(loadgen.Unreachable):
            await anext(run)
        with pytest.raises(loadgen.Unreachable):
            await run.result()


@pytest.mark.parametrize("every_s", [0, -1.0, float("inf"), float("nan")])
async def test_a_step_that_is_none_is_refused(every_s: float) -> None:
    with pytest.raises(loadgen.BadInput) as refused:
        async with loadgen.watch(SETTINGS, every_s=every_s):
            pass
    assert refused.value.field == "every_s"


async def test_a_bad_setting_is_refused_at_the_door() -> None:
    with pytest.raises(loadgen.BadInput) as refused:
        async with loadgen.watch(SETTINGS.replace(request_rate=0)):
            pass
    assert refused.value.field == "request_rate"


async def test_error_of_an_unwatched_run_is_raised_at_the_block_end() -> None:
    async def look_away() -> None:
        async with loadgen.watch(
            SETTINGS.replace(base_url="http://127.0.0.1:1"), dataset=MINE
        ) as run:
            await asyncio.wait({run._task})

    with pytest.raises(loadgen.Unreachable):
        await look_away()
