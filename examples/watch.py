"""Follow a run, and end it when it has enough results.

python examples/watch.py        measures the built-in simulator, until 300 requests are answered
python examples/watch.py URL    measures the server at URL, with prompts of custom_dataset.py
"""

import asyncio
import sys

from custom_dataset import Sums

import loadgen

ENOUGH = 300


async def main(arguments: list[str]) -> None:
    """Print the measurements so far, twice per second."""
    settings = loadgen.RunSettings(
        request_rate=200, duration=60, random_input_len=64, random_output_len=8
    )
    dataset = None
    if arguments:
        settings, dataset = (
            settings.replace(base_url=arguments[0], backend="openai-chat"),
            Sums(seed=0),
        )
    else:
        settings = settings.replace(engine="sim")
    async with loadgen.watch(settings, every_s=0.5, dataset=dataset) as run:
        async for progress in run:
            so_far = run.snapshot()
            if so_far is None:  # the clock has not started
                print(progress.phase)
                continue
            p99_ns = so_far.histograms["ttft_due"].percentile(99)
            shown = "n/a" if p99_ns is None else f"{p99_ns / 1e6:.1f} ms"
            print(
                f"{progress.elapsed_s:.1f} s: {so_far.ok} ok, {progress.in_flight} in flight, p99 "
                f"TTFT {shown}"
            )
            if so_far.ok >= ENOUGH:
                run.stop("enough requests were answered")
        result = await run.result()
    print(
        f"{result.verdict}: {result.numbers.completed} requests, partial because {result.partial}"
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
