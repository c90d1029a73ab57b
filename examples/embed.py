"""Measure from inside your own event loop: loadgen uses the running one and prints nothing.

python examples/embed.py             measures the built-in simulator
python examples/embed.py URL NAME    measures the server at URL, with the tokenizer NAME (a path or
                                     a hub name)
"""

import asyncio
import sys

import loadgen


async def heartbeat(beats: list[int]) -> None:
    """Your own task, which runs in the same loop."""
    while True:
        beats.append(len(beats))
        await asyncio.sleep(0.01)


async def main(arguments: list[str]) -> None:
    """Measure while another task runs in the same loop."""
    settings = loadgen.RunSettings(
        request_rate=100, num_prompts=100, random_input_len=64, random_output_len=8
    )
    if arguments:
        settings = settings.replace(
            base_url=arguments[0], tokenizer=arguments[1], backend="openai-chat"
        )
    else:
        settings = settings.replace(engine="sim")
    beats: list[int] = []
    beating = asyncio.create_task(heartbeat(beats))
    result = await loadgen.run(
        settings, on_progress=lambda progress: print(progress.phase, progress.ended)
    )
    beating.cancel()
    print(
        f"{result.verdict}: {result.numbers.completed} requests, p99 TTFT "
        f"{result.ttft.p99_ms:.1f} ms"
    )
    print(f"{len(beats)} beats of the other task in the same loop")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
