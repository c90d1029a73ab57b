"""What a harness does with the library: files, timeouts, searches and comparisons in its own
process.
"""

import asyncio
import os
from pathlib import Path

import pytest

import loadgen
from loadgen.testing.faulty import Faulty, serving
from tests.helpers.command_line import TOKENIZER
from tests.helpers.repeated import Repeated
from tests.integration.library import harness

MINE = Repeated(loadgen.Prompt("one two three", 3, 3, "mine"))
SETTINGS = loadgen.RunSettings(
    backend="openai-chat", tokenizer=TOKENIZER, request_rate=200, num_prompts=40
)
RANDOM = loadgen.RunSettings(
    backend="openai-chat", tokenizer=TOKENIZER, random_input_len=8, random_output_len=3
)
ENDLESS = SETTINGS.replace(num_prompts=100_000)


async def test_files_of_the_settings_are_written(faulty: Faulty, tmp_path: Path) -> None:
    files = {
        name: str(tmp_path / f"run.{name}")
        for name in ("html", "markdown", "junit", "hlog", "records")
    }
    settings = SETTINGS.replace(
        base_url=faulty.url, save_result=True, result_dir=str(tmp_path / "out"), **files
    )
    result = await loadgen.run(settings, dataset=MINE)
    (saved,) = (tmp_path / "out").iterdir()
    assert loadgen.load(saved).data == result.data
    assert loadgen.load(files["records"]).numbers.completed == 40
    assert all(map(os.path.getsize, files.values()))


async def test_result_that_cannot_be_saved_is_not_lost(faulty: Faulty, tmp_path: Path) -> None:
    page = tmp_path / "run.html"

    def put_folder_there(progress: loadgen.Progress) -> None:
        if progress.measuring:
            page.mkdir(exist_ok=True)

    settings = SETTINGS.replace(base_url=faulty.url, html=str(page))
    with pytest.raises(loadgen.UnsavedResult, match=r"^html .* could not be saved") as caught:
        await loadgen.run(settings, dataset=MINE, on_progress=put_folder_there)
    assert caught.value.result.numbers.completed == 40


async def test_a_block_that_is_left_keeps_what_was_measured(faulty: Faulty) -> None:
    async with loadgen.watch(
        ENDLESS.replace(base_url=faulty.url), every_s=0.02, dataset=MINE
    ) as run:
        async for progress in run:
            if progress.ok > 10:
                break
    result = await run.result()
    assert result.partial == "its block was left"
    assert 10 < result.numbers.completed < 100_000
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_block_keeps_what_was_measured(faulty: Faulty) -> None:
    kept: list[loadgen.Watched] = []
    enough = asyncio.Event()

    async def measure() -> None:
        async with loadgen.watch(
            ENDLESS.replace(base_url=faulty.url), every_s=0.02, dataset=MINE
        ) as run:
            kept.append(run)
            async for progress in run:
                if progress.ok > 10:
                    enough.set()

    task = asyncio.create_task(measure())
    await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = await kept[0].result()
    assert result.partial == "its block was left"
    assert "run cut short" in [check.name for check in result.failed_checks]
    assert result.numbers.completed > 10


async def test_a_block_that_is_left_before_the_clock_has_no_result(faulty: Faulty) -> None:
    async with loadgen.watch(ENDLESS.replace(base_url=faulty.url), dataset=MINE) as run:
        pass
    with pytest.raises(loadgen.GivenUp, match="before anything was measured"):
        await run.result()


async def test_the_harness_measures_and_stops_in_time(faulty: Faulty) -> None:
    url = faulty.url
    load = harness.LOAD
    try:
        harness.LOAD = load.replace(tokenizer=TOKENIZER, backend="openai-chat")
        assert await harness.p99_ms_at(url, 100.0) is not None
        partial = await harness.at_most(url, 0.2)
        assert (
            await asyncio.to_thread(harness.highest_concurrency, url, "e2el_mean<0.001ms") is None
        )
    finally:
        harness.LOAD = load
    assert partial.partial == "it took more than 0.2 s"
    assert partial.scheduled == 5000


async def test_a_search_finds_a_level_and_names_what_it_refuses(faulty: Faulty) -> None:
    levels: list[float | str] = []
    settings = RANDOM.replace(base_url=faulty.url, slo="e2el_mean<0.001ms", max_concurrency=2)
    series = await loadgen.search(
        settings, over="concurrency", on_point=lambda point: levels.append(point.level)
    )
    assert series.found is not None
    assert series.found.level is None
    assert series.found.end in ("none", "disturbed")  # other programs may disturb each run
    assert levels == [point.level for point in series.points]
    assert set(levels) == {2.0, 1.0}
    assert series.levels[-1].met is False
    for changes, field in (
        ({"slo": None}, "slo"),
        ({"max_error_rate": 0.5}, "max_error_rate"),
        ({"html": "a.html"}, "html"),
        ({"request_rate": -1.0}, "request_rate"),
    ):
        with pytest.raises(loadgen.BadInput) as caught:
            await loadgen.search(settings.replace(**changes))  # type: ignore[arg-type]
        assert caught.value.field == field


async def test_an_aborted_run_that_measured_nothing_has_no_result(faulty: Faulty) -> None:
    async with loadgen.watch(
        RANDOM.replace(base_url=faulty.url, num_prompts=5), every_s=0.02
    ) as run:
        run.abort("too early")
        with pytest.raises(loadgen.GivenUp, match="before anything was measured"):
            await run.result()


async def test_results_of_two_servers_are_compared() -> None:
    async with serving() as one, serving() as other:
        base = await loadgen.run(SETTINGS.replace(base_url=one.url), dataset=MINE)
        new = await loadgen.run(SETTINGS.replace(base_url=other.url), dataset=MINE)
    comparison = loadgen.compare(base, new, fail_if=["error_rate>+1pp"])
    assert [each.failed for each in comparison.judgements] == [False]
    assert [side.name for side in comparison.sides] == ["A", "B"]
