"""What several workers carry on a machine of many cores: `python -m bench.performance.workers
[--write]`.

Simulators on the same machine stream answers of 200 tokens, a token every 10 ms, so that 1,000,000
tokens/s are 10,000 streams. Each load is one run. A row shows how much was asked for, what came,
and the client's part in it. Where the simulators fall behind their own steps, the row says so:
they, and not the client, were the limit. --write puts the table into bench/results/performance.md.
Nothing here passes or fails.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.performance.clients import call, flags
from bench.performance.load import Load, serve
from bench.performance.sample import Watch
from bench.table import figure, table
from loadgen.engines import Server
from loadgen.util import machine
from loadgen.util.number_format import plural
from tests.helpers.command_line import LOADGEN
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "bench" / "results" / "performance.md"
BEGIN, END = (
    "<!-- workers: written by python -m bench.performance.workers --write -->",
    "<!-- end of workers -->",
)
STEP_MS, TOKENS = 10.0, 200
TOKENS_PER_S = (100_000, 250_000, 500_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what was asked for, what loadgen told of it, and the cores that it and the
    servers used.
    """

    load: Load
    workers: int
    told: Mapping[str, Any]
    server_cores: float
    overrun_ms: float
    wall_s: float

    def row(self) -> list[str]:
        """Return the cells of its row."""
        own = self.told["loadgen"]
        client = own["client"]
        tokens = self.told["total_output_tokens"]
        failed = [
            check["name"] for check in own["checks"] if check["ok"] is False and check["counts"]
        ]
        return [
            f"{self.load.rate * self.load.tokens:,.0f} in answers of {self.load.tokens}",
            str(self.workers),
            figure(own["rates"]["steady_output_tokens_per_s"]),
            f"{self.told['max_concurrent_requests']:,.0f}",
            own["verdict"] + "".join(f", {name}" for name in failed),
            figure(own["latency_ms"]["lag"]["p99"]),
            f"{100 * client['busy_share']:.0f} %",
            figure(client["cpu_s"] / tokens * 1e6),
            figure(client["peak_memory_bytes"] / 1e6),
            figure(self.server_cores),
            figure(self.overrun_ms),
        ]


HEAD = (
    "tokens/s asked for",
    "workers",
    "tokens/s in the steady state",
    "streams at most",
    "verdict",
    "lag p99, ms",
    "busiest loop",
    "us per token",
    "MB",
    "cores of the servers",
    "behind their steps, ms",
)


def load_of(tokens_per_s: int, tokens: int, seconds: float) -> Load:
    """Return the load of so many tokens a second in answers of so many."""
    rate = tokens_per_s / tokens
    # As many as are in flight, and some more.
    connections = round(rate * tokens * STEP_MS / 1e3 * 1.1)
    return Load("", rate, round(rate * seconds), tokens, warm=connections)


def measure(load: Load, workers: int, servers: Sequence[Server]) -> Run:
    """Carry a load out.

    Raises:
        RuntimeError: The command failed.
    """
    watches, begin = [Watch(server) for server in servers], time.monotonic()
    urls = [word for server in servers[1:] for word in ("--base-url", server.base_url)]
    told = orjson.loads(
        call([*LOADGEN, "run", *flags(servers[0], load), *urls, "--workers", str(workers)])
    )
    seen = [watch.end() for watch in watches]
    cores, overrun_ms = (
        sum(each.server_cores for each in seen),
        max(each.overrun_ms for each in seen),
    )
    return Run(load, workers, told, cores, overrun_ms, time.monotonic() - begin)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.workers", description="What workers carry."
    )
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--rates", type=int, nargs="+", default=TOKENS_PER_S, metavar="N", help="tokens per second"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[max(1, cores // 2)], metavar="N", help="how many"
    )
    parser.add_argument(
        "--servers",
        type=int,
        default=max(1, cores // 4),
        help="simulators (a quarter of the cores)",
    )
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"of an answer ({TOKENS})")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load (10)")
    parser.add_argument(
        "--write", action="store_true", help="put the table into bench/results/performance.md"
    )
    chosen = parser.parse_args(argv)
    machine.raise_open_files_limit()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serve(STEP_MS)) for _ in range(chosen.servers)]
        rows = []
        for tokens_per_s in chosen.rates:
            for workers in chosen.workers:
                run = measure(
                    load_of(tokens_per_s, chosen.tokens, chosen.seconds), workers, servers
                )
                rows.append(run.row())
                print(f"{run.wall_s:.1f} s", *run.row(), sep=" | ", file=sys.stderr, flush=True)
    cpu, servers_told = machine.describe()["cpu"], plural(chosen.servers, "simulator")
    where = (
        f"{time.strftime('%Y-%m-%d')}; {cpu}, {cores} cores shared with {servers_told}; "
        f"{chosen.seconds:g} s each."
    )
    text = f"{where}\n\n{table(HEAD, rows)}"
    print(text)
    if chosen.write:
        between(DOCUMENT, BEGIN, text, END)


if __name__ == "__main__":
    main()
