"""A small harness on loadgen, as its authors write one: `mypy --strict` accepts it, and a test
runs it.
"""

import asyncio
from pathlib import Path

import loadgen

LOAD = loadgen.RunSettings(random_input_len=8, random_output_len=3)


async def p99_ms_at(url: str, rate: float) -> float | None:
    """Measure one rate."""
    result: loadgen.Result = await loadgen.run(
        LOAD.replace(base_url=url, request_rate=rate, num_prompts=30)
    )
    failed: list[str] = [check.name for check in result.failed_checks]
    print(result.verdict, failed, result.numbers.request_throughput)
    return result.ttft.p99_ms


async def at_most(url: str, seconds: float) -> loadgen.Result:
    """Measure for a time, and keep what was measured by then."""
    endless = LOAD.replace(base_url=url, request_rate=100.0, num_prompts=5_000)
    async with loadgen.watch(endless, every_s=0.05) as run:
        try:
            async with asyncio.timeout(None) as limit:
                async for progress in run:
                    if (
                        progress.begun and limit.when() is None
                    ):  # seconds of measurement, however long it takes to begin
                        limit.reschedule(asyncio.get_running_loop().time() + seconds)
        except TimeoutError:
            run.abort(f"it took more than {seconds:g} s")
        return await run.result()


def highest_concurrency(url: str, slo: str) -> float | None:
    """Search for the highest concurrency, from 2 on, and say which runs have ended."""
    levels: list[float | str] = []
    settings = LOAD.replace(base_url=url, slo=slo, max_concurrency=2)
    series: loadgen.SavedSeries = loadgen.search_sync(
        settings, over="concurrency", on_point=lambda point: levels.append(point.level)
    )
    print(levels, [(level.level, level.met) for level in series.levels])
    return None if series.found is None else series.found.level


def changed(base: loadgen.SavedResult, new: Path, conditions: list[str]) -> list[str]:
    """Compare a saved result with a new one."""
    comparison: loadgen.JudgedComparison = loadgen.compare(base, new, fail_if=conditions)
    row = comparison.candidates[0].row("ttft_p50")
    if row is not None and row.change is not None:
        print(f"{row.change:+.1%}", row.bounds, row.conclusion)
    return [str(each) for each in comparison.judgements if each.failed]
