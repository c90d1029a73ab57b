"""What reading over TLS costs: `python -m bench.performance.tls [--before PYTHON] [--rounds N]
[--quick]`.

`loadgen run` reads the same streams over TLS and without it, in turn. With `--before`, another
installation of loadgen takes part, such as one whose TLS is read by the event loop: of each pair of
runs the ratio is told, and the interval of its median. Nothing here passes or fails.
"""

import argparse
import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from bench.performance.clients import MAX_S, flags, told_by
from bench.performance.load import STEP_MS, Load, Served, TestServer, serving
from bench.performance.secured import MODEL
from bench.table import figure, median, spread, table
from loadgen.stats.percentile_confidence_interval import CONFIDENCE, interval
from loadgen.util import machine
from tests.helpers.command_line import environment

# 5,000 events/s of 100 streams at once
LOAD = Load("TLS", rate=50, count=400, tokens=100, warm=120)
QUICK = dataclasses.replace(LOAD, count=20, tokens=10, warm=20)
ROUNDS = 10
PLAIN, OURS, BEFORE = "without TLS", "TLS", "TLS, other installation"


@dataclass(frozen=True, slots=True)
class Client:
    """An installation of loadgen, and how it reads.

    Attributes:
        name: What tables call it.
        python: The interpreter of the installation.
        plain: Whether it reads without TLS.
    """

    name: str
    python: str
    plain: bool = False

    def us_per_event(self, server: Served, load: Load, folder: Path) -> float:
        """Carry a load out, and return its CPU time per token, us.

        Raises:
            RuntimeError: It failed, or did not receive what it asked for.
        """
        command = [self.python, "-m", "loadgen", "run", *flags(server, load)]
        command += [] if self.plain else ["--insecure"]
        # Away from this checkout, whose sources would be imported instead of those of the
        # installation.
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=MAX_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
            )
        told = told_by(orjson.loads(done.stdout))
        if told["tokens"] != load.count * load.tokens:
            raise RuntimeError(
                f"{self.name} received {told['tokens']} of {load.count * load.tokens} tokens"
            )
        return float(told["cpu_s"] / told["tokens"] * 1e6)


@dataclass
class Findings:
    """CPU time per event, us, by client, a figure for each round.

    Attributes:
        load: What was sent.
        costs: Of each client.
        load_averages: Of the machine, before each round.
    """

    load: Load
    costs: dict[str, list[float]] = field(default_factory=dict)
    load_averages: list[float] = field(default_factory=list)

    def ratios(self, one: str, other: str) -> list[float]:
        """How many times as much as `other` a client costs, in each round."""
        return [a / b for a, b in zip(self.costs[one], self.costs[other], strict=True)]


class Sorted:
    """Values by rank, ascending."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values, self.count = sorted(values), len(values)

    def value_at_rank(self, rank: int, /) -> float:
        """Return the value of a rank."""
        return self._values[rank]


def clients(before: str | None) -> list[Client]:
    """Those that take turns."""
    found = [Client(OURS, sys.executable), Client(PLAIN, sys.executable, plain=True)]
    return found if before is None else [Client(BEFORE, before), *found]


def measure(turns: Sequence[Client], load: Load, rounds: int) -> Findings:
    """Have every client carry the load out, so many times; in every round another one begins."""
    found = Findings(load, {client.name: [] for client in turns})
    with (
        tempfile.TemporaryDirectory(prefix="loadgen-tls-") as name,
        _serving() as secured,
        _serving("--plain") as plain,
    ):
        for number in range(rounds):
            found.load_averages.append(os.getloadavg()[0])
            first = number % len(turns)
            for client in [*turns[first:], *turns[:first]]:
                print(f"round {number + 1}, {client.name}", file=sys.stderr, flush=True)
                server = plain if client.plain else secured
                found.costs[client.name].append(client.us_per_event(server, load, Path(name)))
    return found


def _serving(*more: str) -> contextlib.AbstractContextManager[TestServer]:
    command = [sys.executable, "-m", "bench.performance.secured", "--gap-ms", f"{STEP_MS:g}", *more]
    return serving(command, MODEL)


def report(found: Findings) -> str:
    """Write the tables."""
    about, load = machine.describe(), found.load
    pairs = [(OURS, PLAIN)] + [(OURS, BEFORE)] * (BEFORE in found.costs)
    rows = []
    for one, other in pairs:
        ratios = found.ratios(one, other)
        low, high = interval(Sorted(ratios), 50)
        rows.append(
            [
                f"{one} / {other}",
                median(ratios),
                f"{figure(low)} to {figure(high)}",
                *_extremes(ratios),
            ]
        )
    return "\n".join(
        [
            "# What reading over TLS costs",
            "",
            f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {about['cpu']}, {about['usable_cores']} cores "
            f"shared with the server; {about['system']}. {load.count:,} requests, {load}, "
            f"{len(found.load_averages)} rounds in turn; load average before a round "
            f"{spread(found.load_averages)}.",
            "",
            table(["CPU time of the measuring process", "us per event"], _costs(found)),
            f"The interval of the median has a confidence of {CONFIDENCE:.0%} (order statistics).",
            "",
            table(["ratio in a round", "median", "interval", "least", "most"], rows),
        ]
    )


def _costs(found: Findings) -> Iterator[list[str]]:
    for name, costs in found.costs.items():
        yield [name, spread(costs)]


def _extremes(values: Sequence[float]) -> tuple[str, str]:
    return figure(min(values)), figure(max(values))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.tls", description="What reading over TLS costs."
    )
    parser.add_argument(
        "--before",
        metavar="PYTHON",
        help="the interpreter of another installation, to compare with",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often all take their turns ({ROUNDS})"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of a short load: shows that it works, no more",
    )
    chosen = parser.parse_args(argv)
    load, rounds = (QUICK, 1) if chosen.quick else (LOAD, max(1, chosen.rounds))
    print(report(measure(clients(chosen.before), load, rounds)))


if __name__ == "__main__":
    main()
