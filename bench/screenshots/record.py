"""Measures the simulator for the screenshots: `python -m bench.screenshots.record [CASE ...]`, some
20 minutes.

The results replace those in docs/pictures/results; then take the screenshots anew.
"""

import asyncio
import gzip
import shutil
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

import loadgen
from bench.screenshots.cases import RESULTS, recording
from loadgen.config.settings import RunSettings
from tests.helpers.command_line import TOKENIZER, served, start
from tests.helpers.command_line import loadgen as command
from tests.helpers.source import ROOT

PROGRESS_S = 0.5
LENGTHS = ("--tokenizer", TOKENIZER, "--random-input-len", "256", "--random-output-len", "64")
SLO = "ttft_p99<500ms,tpot_mean<20ms"
EIGHT_AT_ONCE = ("--engine", "sim", "--engine-arg", "max_seqs=8")
STARTS = 3


async def watched(name: str, rate: float, requests: int) -> None:
    """Measure a simulator that answers eight requests at once, and record the progress, too."""
    settings = RunSettings(
        engine="sim",
        engine_arg=("max_seqs=8",),
        tokenizer=TOKENIZER,
        random_input_len=256,
        random_output_len=64,
        request_rate=rate,
        num_prompts=requests,
        slo=SLO,
    )
    async with loadgen.watch(settings, every_s=PROGRESS_S) as run:
        recorded = [progress async for progress in run]
        result = await run.result()
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.encode(result.data) + b"\n")
    recording(name).write_bytes(gzip.compress(msgspec.json.encode(recorded), mtime=0))


def good() -> None:
    """A run that holds."""
    asyncio.run(watched("good", 12.0, 720))


def overloaded() -> None:
    """A run at more than twice of what the server can do."""
    asyncio.run(watched("overloaded", 40.0, 1000))


def dead() -> None:
    """A run whose server is killed after six seconds."""
    with served() as (url, server):
        run = start(
            "run",
            "--base-url",
            url,
            *LENGTHS,
            "--rate",
            "40",
            "--duration",
            "30s",
            "--slo",
            SLO,
            *_to("dead"),
        )
        time.sleep(9.0)
        server.kill()
        run.communicate(timeout=120)


def search() -> None:
    """A search for the highest rate."""
    _call(
        "search",
        *EIGHT_AT_ONCE,
        *LENGTHS,
        "--slo",
        "ttft_p90<500ms,tpot_mean<9ms",
        *_to("search"),
        timeout_s=900,
    )
    shutil.rmtree(RESULTS / "search")  # the runs, which the result of the search holds, too


def comparison() -> None:
    """Three starts of a server that answers eight requests at once, and of one that answers
    sixteen.
    """
    for number in range(1, STARTS + 1):
        for side, seqs in (("base", 8), ("new", 16)):
            folder = RESULTS / side
            folder.mkdir(exist_ok=True)
            engine = (
                "--engine",
                "sim",
                "--engine-arg",
                f"max_seqs={seqs}",
                "--metadata",
                f"start={number}",
            )
            saved = (
                "--save-result",
                "--result-dir",
                str(folder),
                "--result-filename",
                f"start{number}.json",
            )
            _call("run", *engine, *LENGTHS, "--rate", "10", "--num-prompts", "200", *saved)


CASES: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (good, overloaded, dead, search, comparison)
}


def _to(name: str) -> tuple[str, ...]:
    return ("--save-result", "--result-dir", str(RESULTS), "--result-filename", f"{name}.json")


def _call(*words: str, timeout_s: float = 120.0) -> None:
    done = command(*words, timeout_s=timeout_s)
    print(done.stdout[-600:], done.stderr[-600:] if done.returncode else "", file=sys.stderr)


def main(names: Sequence[str]) -> None:
    """Record the cases that are named, or all."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        print(name, file=sys.stderr)
        CASES[name]()
    for path in RESULTS.rglob("*.json"):  # paths of this machine
        path.write_text(path.read_text().replace(f"{ROOT}/", ""))


if __name__ == "__main__":
    main(sys.argv[1:])
