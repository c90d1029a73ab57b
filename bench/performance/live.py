"""What the live view costs the process that measures: `python -m bench.performance.live [--quick]
[--rounds N]`.

`loadgen run` carries out the same load in turn with the view drawn on a terminal, and with --quiet.
The process that measures tells how far it is in both, so what that takes of it is timed apart.
Nothing here passes or fails.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from bench.performance.clients import flags
from bench.performance.load import STEP_MS, Load, Served, serve
from bench.table import spread, table
from loadgen.core.histogram import Histogram
from loadgen.metrics.progress import LATENCIES, Progress
from loadgen.metrics.recorder import Recorder
from loadgen.util import child_process
from tests.helpers.terminal import OnTerminal

LOAD = Load("live", rate=500, count=10_000, tokens=20)
VALUES = 1_000_000  # of each distribution, when the time of telling is measured
TELLINGS = 1_000
HIDE_CURSOR = "\x1b[?25l"  # what the live view begins with
# The logarithm of a value in the middle, ns; of the distributions that the LATENCIES come from.
MIDDLES = {
    "ttft_due": 18,
    "ttfo_due": 18,
    "tpot": 16,
    "itl": 16,
    "icl": 16,
    "e2el_due": 21,
    "lag": 10,
    "loop_stall": 10,
}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run says of the process that measured, and the kernel of all its processes.

    Attributes:
        lag_p99_ms, stall_p99_ms: How late requests were sent, and how long tokens waited for the
            loop.
        measuring_cpu_s: CPU time of the process that measured.
        all_cpu_s: Of all processes of the command.
    """

    lag_p99_ms: float
    stall_p99_ms: float
    measuring_cpu_s: float
    all_cpu_s: float


def run(server: Served, load: Load, *, shown: bool) -> Run:
    """Carry the load out, with the view or without.

    Raises:
        RuntimeError: It did not receive what it asked for.
    """
    asked = [flag for flag in flags(server, load) if not (shown and flag == "--quiet")]
    before = os.times()
    command = OnTerminal("run", *asked)
    try:
        code, out = command.end()
    finally:
        command.close()
    after = os.times()
    if code != 0 or (HIDE_CURSOR in command.drawn) != shown:
        raise RuntimeError(f"exit code {code}:\n{command.drawn[-2000:]}")
    own: dict[str, Any] = orjson.loads(out)["loadgen"]
    latency = own["latency_ms"]
    return Run(
        latency["lag"]["p99"],
        latency["loop_stall"]["p99"],
        own["client"]["cpu_s"],
        after.children_user + after.children_system - before.children_user - before.children_system,
    )


def telling_us() -> tuple[float, float, int]:
    """What it takes a loop to tell how far it is once it has measured much: median and most, us;
    and how many bytes.
    """
    recorder, rng = Recorder(0, VALUES), np.random.default_rng(1)
    for name, middle in MIDDLES.items():
        recorder.waits.setdefault(name, Histogram()).record_many(
            rng.lognormal(middle, 0.7, VALUES).astype(np.int64)
        )
    took, line = [], b""
    for _ in range(TELLINGS):
        began = time.perf_counter_ns()
        sketches = map(recorder.sketch, MIDDLES)
        told = Progress("running", 60.0, **dict(zip(LATENCIES, sketches, strict=True)))
        line = child_process.encode(told)
        took.append((time.perf_counter_ns() - began) / 1e3)
    return statistics.median(took), max(took), len(line)


def report(
    load: Load, shown: Sequence[Run], hidden: Sequence[Run], telling: tuple[float, float, int]
) -> str:
    """The figures, as text."""
    rows = {
        "lag p99, ms": "lag_p99_ms",
        "loop stall p99, ms": "stall_p99_ms",
        "CPU of the process that measures, s": "measuring_cpu_s",
        "CPU of all processes, s": "all_cpu_s",
    }
    cells = [
        [title, *(spread([getattr(one, name) for one in runs]) for runs in (shown, hidden))]
        for title, name in rows.items()
    ]
    median, most, size = telling
    return (
        f"{len(shown)} runs each, in turn: {load.count:,} requests, {load}.\n\n"
        + table(["median (least to most)", "live view", "--quiet"], cells)
        + f"\nTelling how far it is takes the loop {median:.0f} us at the median, {most:.0f} us "
        "at most, " + f"four times a second, and {size:,} bytes.\n"
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.live", description="What the live view costs."
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each takes its turn (5)")
    parser.add_argument("--quick", action="store_true", help="show that it works: one short round")
    chosen = parser.parse_args()
    load, rounds = (replace(LOAD, count=500), 1) if chosen.quick else (LOAD, chosen.rounds)
    found: dict[bool, list[Run]] = {True: [], False: []}
    with serve(STEP_MS) as server:
        for number in range(rounds):
            for shown in (True, False) if number % 2 else (False, True):
                print(
                    f"round {number + 1}, {'live view' if shown else '--quiet'}",
                    file=sys.stderr,
                    flush=True,
                )
                found[shown].append(run(server, load, shown=shown))
    print(report(load, found[True], found[False], telling_us()))


if __name__ == "__main__":
    main()
