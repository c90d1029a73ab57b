"""The table of networks: `python -m bench.network [--write] [--runs N] [NUMBERS...]`, or
`make network`.

Runs over each network, and prints in how many of them every bound held. Exit code 1: in fewer than
99 %.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

import numpy as np

from bench.network.conditions import NETWORKS, Network
from bench.network.trial import RATE, SECONDS, TOKENS, Trial, trials
from bench.table import figure, table
from loadgen import __version__
from loadgen.util import machine
from tests.helpers.documents import between
from tests.helpers.source import ROOT

RUNS = 20  # over each network
MIN_SHARE = 0.99  # of the runs, in which every bound holds
DOCUMENT = ROOT / "bench" / "results" / "network.md"
BEGIN, END = "<!-- table: made by `make network FLAGS=--write` -->", "<!-- end of table -->"
COLUMNS = (
    "network",
    "runs in which every bound held",
    "tokens exact",
    "tokens behind a missing segment",
    "tokens outside their interval",
    "TTFT p99: bound, true error, ms",
    "E2EL p99: bound, true error, ms",
)


def heading(runs: int) -> str:
    """How it was measured."""
    about = machine.describe()
    return (
        f"loadgen {__version__}, {time.strftime('%Y-%m-%d')}; {about['cpu']}, "
        f"{about['usable_cores']} cores, shared by client, link and server; {about['system']}. "
        f"{runs} runs of {SECONDS:g} s over each network, {RATE} requests/s of {TOKENS} tokens."
    )


def row(network: Network, runs: Sequence[Trial]) -> tuple[str, ...]:
    """The row of a network."""
    tokens = sum(run.tokens for run in runs)
    good_runs = [run for run in runs if not run.broken]
    return (
        network.name,
        f"{len(good_runs)} of {len(runs)}",
        f"{1 - sum(run.inexact for run in runs) / tokens:.1%}",
        f"{sum(run.reordered for run in runs) / tokens:.1%}",
        f"{sum(run.early + run.late for run in runs)} of {tokens:,}",
        errors(runs, "ttft_sent"),
        errors(runs, "e2el_sent"),
    )


def errors(runs: Sequence[Trial], name: str) -> str:
    """The bound and the true error of the p99 of a latency, in the median of the runs."""
    claims = [claim for run in runs for claim in run.claims]
    errors_ms = [
        (claim.claimed_ms, claim.true_ms)
        for claim in claims
        if (claim.name, claim.statistic) == (name, "p99")
    ]
    return ", ".join(map(figure, np.median(errors_ms, axis=0)))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.network", description="Measure whether bounds hold on networks."
    )
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    parser.add_argument("--runs", type=int, default=RUNS, help="over each network")
    parser.add_argument("numbers", nargs="*", type=int, help="these networks alone, from 0")
    flags = parser.parse_args(argv)
    networks = [NETWORKS[number] for number in flags.numbers] or NETWORKS
    rows = []
    runs: list[Trial] = []
    for network in networks:
        measured = asyncio.run(trials(network, flags.runs))
        rows.append(row(network, measured))
        print(*rows[-1], sep=" | ", flush=True)
        runs += measured
        for trial in measured:
            for claim in trial.broken:
                print(f"  {claim}", flush=True)
    good_runs = [run for run in runs if not run.broken]
    result = f"{heading(flags.runs)}\n\n{table(COLUMNS, rows)}"
    print(f"\n{result}\nEvery bound held in {len(good_runs)} of {len(runs)} runs.")
    if flags.write:
        between(DOCUMENT, BEGIN, result.rstrip(), END)
    return int(len(good_runs) < MIN_SHARE * len(runs))


if __name__ == "__main__":
    sys.exit(main())
