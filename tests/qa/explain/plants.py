"""Runs with one planted cause each, of sizes that a seed draws: `python -m tests.qa.explain.plants
SEED FOLDER [NAME...]` writes their records.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.network.trial import behind
from loadgen.testing.process import started
from tests.helpers.source import ROOT

BASE = (
    "--step-base-ms 10 --prefill-us-per-token 20 --decode-us-per-seq 50 --frontend-ms 3 "
    "--enable-per-request-metrics"
)
LOAD = "--rate 10 --num-prompts 150 --random-input-len 64:512 --random-output-len 24:64"
TIMEOUT_S = 240.0
NOTHING = ""


@dataclass(frozen=True, slots=True)
class Plant:
    """A run with a planted cause.

    Attributes:
        cause: The name of the cause, as `explain` names it; NOTHING: none was planted.
        server: Flags of the simulator beside BASE.
        load: Flags of the run beside LOAD.
        proxy: The fault of the proxy and its values; empty: there is no proxy.
        stops: For how many s loadgen is stopped, and every how many s; empty: never.
    """

    cause: str
    server: str = ""
    load: str = ""
    proxy: str = ""
    stops: tuple[float, float] | None = None


def drawn(seed: int) -> dict[str, Plant]:
    """Draw the sizes of the 17 plants, by name."""
    draw = random.Random(seed)
    between: Callable[[float, float], float] = draw.uniform
    whole = draw.randint

    def costs() -> str:
        return (
            f"--step-base-ms {between(8, 24):.1f} --prefill-us-per-token {between(8, 30):.0f} "
            f"--decode-us-per-seq {between(20, 120):.0f} "
        )

    def load() -> str:
        return f"--rate {between(5, 10):.1f} --num-prompts 120 "

    return {
        "healthy": Plant(NOTHING, costs(), load()),
        "slots": Plant(
            "queue-slots",
            costs() + f"--max-num-seqs {whole(2, 4)}",
            f"--rate {between(9, 12):.1f}",
        ),
        "kv": Plant(
            "kv",
            costs() + f"--num-kv-tokens {whole(1200, 1900)} --max-model-len 1100",
            f"--rate {between(8, 11):.1f}",
        ),
        "prefill": Plant(
            "prefill-own",
            f"--prefill-us-per-token {between(80, 160):.0f} --step-base-ms {between(6, 14):.1f}",
            "--rate 2.5 --num-prompts 50 --random-input-len 500:1500 --random-output-len 6:16",
        ),
        "interfere": Plant(
            "prefill-others",
            f"--prefill-us-per-token {between(30, 60):.0f}",
            f"--rate {between(4, 6):.1f} --num-prompts 100 --random-input-len 16:3500 "
            "--random-output-len 60:140",
        ),
        "budget": Plant(
            "queue-prefill",
            f"--max-num-batched-tokens {whole(40, 64)} --max-num-seqs 40",
            f"--rate {between(12, 14):.1f} --random-input-len 200:300 --random-output-len 12:24",
        ),
        "frontend": Plant("front", costs() + f"--frontend-ms {between(60, 200):.0f}", load()),
        "gateway": Plant("front", costs(), load(), proxy=f"delay {between(50, 150):.0f}"),
        "buffer": Plant("bundling", costs(), load(), proxy=f"flush {between(60, 150):.0f}"),
        "events": Plant("bundling", costs() + f"--tokens-per-event {whole(3, 9)}", load()),
        "freeze": Plant(
            "stream-stall",
            costs(),
            load(),
            proxy=f"freeze {between(0.02, 0.05):.3f} {between(200, 400):.0f}",
        ),
        "pause": Plant(
            "engine-pause",
            costs() + f"--pause-every-s {between(2, 4):.1f} --pause-ms {between(200, 500):.0f}",
            load(),
        ),
        "path": Plant(
            "path-stall",
            costs(),
            load(),
            proxy=f"freeze_all {between(2, 4):.1f} {between(200, 500):.0f}",
        ),
        "decode": Plant(
            "decode-batch",
            f"--decode-us-per-seq {between(1200, 2500):.0f} --step-base-ms {between(5, 9):.1f}",
            f"--rate {between(6, 8):.1f} --random-input-len 16:40 --random-output-len 60:120",
        ),
        "cap": Plant("client-cap", costs(), f"--rate 10 --max-concurrency {whole(2, 4)}"),
        "client": Plant(
            "client-late", costs(), load(), stops=(between(0.08, 0.15), between(0.25, 0.5))
        ),
        "tls": Plant(
            "connect",
            costs(),
            load() + "--insecure --warm-connections 0",
            proxy=f"tls {between(80, 200):.0f}",
        ),
    }


def pairs(seed: int) -> dict[str, Plant]:
    """Draw the sizes of six plants with two causes each, joined by a space, by name."""
    draw = random.Random(seed)
    between: Callable[[float, float], float] = draw.uniform

    def pause() -> str:
        return f"--pause-every-s 2.5 --pause-ms {between(300, 400):.0f}"

    return {
        "slots and gateway": Plant(
            "queue-slots front", "--max-num-seqs 6", proxy=f"delay {between(300, 500):.0f}"
        ),
        "kv and frontend": Plant(
            "kv front",
            f"--num-kv-tokens 2200 --max-model-len 1200 --frontend-ms {between(200, 300):.0f}",
        ),
        "pause and frontend": Plant(
            "engine-pause front", f"--frontend-ms {between(100, 150):.0f} {pause()}", "--rate 8"
        ),
        "interfere and freeze": Plant(
            "prefill-others stream-stall",
            f"--prefill-us-per-token {between(40, 60):.0f}",
            "--rate 4 --num-prompts 90 --random-input-len 16:3000 --random-output-len 60:120",
            proxy="freeze 0.04 300",
        ),
        "cap and slots": Plant(
            "client-cap queue-slots", "--max-num-seqs 3", "--rate 8 --max-concurrency 8"
        ),
        "pause and client": Plant(
            "engine-pause client-late", pause(), "--rate 8", stops=(0.12, 0.4)
        ),
    }


def run(plant: Plant, records: Path, seed: int, link: tuple[str, str] | None = None) -> None:
    """Carry the run out and write its records.

    Args:
        plant: What to run.
        records: The file of the records.
        seed: Of the run.
        link: The namespaces of loadgen and of the server, between which a link is; None: both are
            on this host.
    """
    flags = [*BASE.split(), "--noise", "0.03", "--port", "0", *plant.server.split()]
    with contextlib.ExitStack() as stack:
        if link is None:
            server, enter = started("loadgen.engines.sim", *flags), []
        else:
            server = behind(link[1], "loadgen.engines.sim", *flags)
            enter = ["ip", "netns", "exec", link[0]]
        url = stack.enter_context(server).url
        metrics = f"{url}/metrics"
        if plant.proxy:
            port = url.rpartition(":")[2]
            words = [port, *plant.proxy.split()]
            url = stack.enter_context(started("tests.qa.explain.proxy", *words, folder=ROOT)).url
        command = [*enter, sys.executable, "-m", "loadgen", "run", "--base-url", url]
        command += ["--model", "sim", *LOAD.split(), *plant.load.split(), "--seed", str(seed)]
        command += ["--quiet", "--records", str(records), "--server-metrics", metrics]
        command += ["--tokenizer", str(ROOT / "engines/sim/tokenizer.json")]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            for _ in stops(plant, seed) if plant.stops else ():
                if process.poll() is not None:
                    break
                stop(process.pid, plant.stops[0] if plant.stops else 0.0)
            process.wait(TIMEOUT_S)


def stops(plant: Plant, seed: int) -> Iterator[None]:
    """Wait between stops of the client, which begin after its start."""
    draw = random.Random(seed)
    time.sleep(2.0)
    while plant.stops:
        time.sleep(plant.stops[1] * (0.5 + draw.random()))
        yield


def stop(pid: int, seconds: float) -> None:
    """Stop a process and its children for a while."""
    stopped = family(pid)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for one in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)


def family(pid: int) -> list[int]:
    """List a process and all that it has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [pid, *(one for child in text.split() for one in family(int(child)))]


if __name__ == "__main__":
    number, folder, *names = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, plant in drawn(int(number)).items():
        if not names or name in names:
            begun = time.monotonic()
            run(plant, Path(folder) / f"{name}.jsonl", int(number))
            print(name, plant, f"{time.monotonic() - begun:.0f} s", flush=True)
