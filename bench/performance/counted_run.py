"""One run in this process, of which the clocked part, `Load.run`, is counted: its instructions by
callgrind, or its calls of Python functions. `instructions` starts it.

Usage: counted_run.py URL PROMPTS JOURNAL REQUESTS RATE TOKENS [LIBRARY]. It counts calls where no
library is named, and prints a line of JSON. It imports nothing but `loadgen`, so that it measures
any checkout whose folder stands first on PYTHONPATH.
"""

import contextlib
import ctypes
import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import CodeType, FrameType

import uvloop

import loadgen
from loadgen.client.load_loop import Load
from loadgen.runner import coordinator, worker_main
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.run import run as carry_out

WARM_CONNECTIONS = "64"
NEVER_S = 1e6
PACKAGE = Path(loadgen.__file__).parent


class Calls:
    """Counts the calls of Python functions: a generator or coroutine counts whenever it goes on."""

    def __init__(self) -> None:
        self._calls = Counter[CodeType]()

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count what this thread calls."""
        sys.setprofile(self._add)
        try:
            yield
        finally:
            sys.setprofile(None)

    def by_function(self) -> dict[str, int]:
        """Return how often each function was called, by module and name."""
        calls = Counter[str]()
        for code, count in self._calls.items():
            file = Path(code.co_filename)
            if file.is_relative_to(PACKAGE):
                file = file.relative_to(PACKAGE)
            calls[f"{'.'.join(file.with_suffix('').parts[-2:])}.{code.co_qualname}"] += count
        return dict(calls)

    def _add(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._calls[frame.f_code] += 1


@contextlib.contextmanager
def counting_instructions(library: str) -> Iterator[None]:
    """Have callgrind count instructions.

    Args:
        library: `callgrind_count.c`, compiled.
    """
    callgrind = ctypes.CDLL(library)
    callgrind.begin_count()
    try:
        yield
    finally:
        callgrind.end_count()


def main(
    url: str, prompts: str, journal: str, requests: int, rate: float, tokens: int, library: str
) -> None:
    """Carry out a run of `requests` chats as the worker of a command does, and count between its
    first and its last request.

    Args:
        url: Scheme, host and port of the server.
        prompts: A JSONL file of prompts.
        journal: The file of its crash journal.
        requests: Their number.
        rate: Requests per second, at constant gaps.
        tokens: Tokens of each answer.
        library: `callgrind_count.c`, compiled; empty: calls of Python functions are counted.
    """
    calls = Calls()
    run = Load.run

    async def counted_run(load: Load) -> None:
        with counting_instructions(library) if library else calls.counting():
            await run(load)

    Load.run = counted_run  # type: ignore[method-assign]
    # What depends on time, not on requests, is left out: reports of progress, and alarms of the
    # probe. So are sampled answers, of which a long run has no more than a short one.
    vars(coordinator)["PROGRESS_S"] = NEVER_S  # older ones read it
    reports = (
        {"progress_period_s": NEVER_S}
        if "progress_period_s" in signature(carry_out).parameters
        else {}
    )
    room = "core" if find_spec("loadgen.core.loop_probe") else "client"
    vars(import_module(f"loadgen.{room}.loop_probe")).update(
        PERIOD_NS=10**15, STAMPED_PERIOD_NS=10**15
    )
    older = find_spec("loadgen.features") is None
    linger_ns = getattr(worker_main, "LINGER_NS", None)  # older ones take it
    arguments = () if linger_ns is None else (linger_ns,)
    sampling = import_module(
        f"loadgen.{'metrics.streamed_tokens' if older else 'features.answer_tokens'}"
    )
    vars(sampling)["MAX_ANSWERS"] = 1
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

    async def as_worker() -> loadgen.Result:
        async with LoopRunner(*arguments) as participant:
            return await carry_out(
                settings, participant=participant, journal=Path(journal), **reports
            )

    result = uvloop.run(as_worker())
    if result.outcomes != {"ok": requests}:
        sys.exit(f"not all requests succeeded: {dict(result.outcomes)}")
    lag_ms = result.snapshot.histograms["lag"].percentile(99) / 1e6
    output = {"package": str(PACKAGE), "lag_p99_ms": lag_ms, "calls": calls.by_function()}
    print(json.dumps(output))


if __name__ == "__main__":
    url, prompts, journal, requests, rate, tokens, *library = sys.argv[1:]
    main(url, prompts, journal, int(requests), float(rate), int(tokens), "".join(library))
