"""One run in this process, of which callgrind counts the instructions of `Load.run`; `instructions`
starts it.

Usage: counted_run.py URL PROMPTS REQUESTS RATE TOKENS LIBRARY. It prints the folder of the package
that it measured. It imports nothing but `loadgen`, so that it measures any checkout whose folder
stands first on PYTHONPATH.
"""

import ctypes
import sys
from pathlib import Path

import uvloop

import loadgen
from loadgen.client import loop_probe
from loadgen.client.load_loop import Load
from loadgen.runner import coordinator

WARM_CONNECTIONS = "64"


def main(url: str, prompts: str, requests: int, rate: float, tokens: int, library: str) -> None:
    """Carry out a run of `requests` chats, and count the instructions between its first and its
    last request.

    Args:
        url: Scheme, host and port of the server.
        prompts: A JSONL file of prompts. There is no tokenizer, so no answer is sampled for one.
        requests: Their number.
        rate: Requests per second, at constant gaps.
        tokens: Tokens of each answer.
        library: `callgrind_count.c`, compiled.
    """
    callgrind = ctypes.CDLL(library)
    run = Load.run

    async def counted_run(load: Load) -> None:
        callgrind.begin_count()
        try:
            await run(load)
        finally:
            callgrind.end_count()

    Load.run = counted_run  # type: ignore[method-assign]
    # What depends on time, not on requests, is left out: reports of progress, and alarms of the
    # probe.
    coordinator.PROGRESS_S = 1e6
    loop_probe.PERIOD_NS = loop_probe.STAMPED_PERIOD_NS = 10**15
    settings = loadgen.RunSettings(
        base_url=url,
        model="metronome",
        backend="openai-chat",
        tokenizer="none",
        dataset_name="jsonl",
        dataset_path=prompts,
        custom_output_len=tokens,
        num_prompts=requests,
        request_rate=rate,
        burstiness=float("inf"),
        warm_connections=WARM_CONNECTIONS,
        ready_check_timeout_sec=0,
    )
    result = uvloop.run(loadgen.run(settings))
    if result.outcomes != {"ok": requests}:
        sys.exit(f"not all requests succeeded: {dict(result.outcomes)}")
    print(Path(loadgen.__file__).parent)


if __name__ == "__main__":
    url, prompts, requests, rate, tokens, library = sys.argv[1:]
    main(url, prompts, int(requests), float(rate), int(tokens), library)
