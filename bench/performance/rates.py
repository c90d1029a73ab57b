"""Up to which rate one process of loadgen measures: `python -m bench.performance.rates [--quick]
[--rounds N]`, a part of `make bench`.

loadgen and the loops in C send embeddings to `answers.c`, which answers each in one piece after
ANSWER_MS, in turn at rates that rise. The table shows how well each kept up, what a request cost
it, and how busy the server was, so that one can see that the server is not the limit. Nothing here
passes or fails.
"""

import argparse
import os
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.performance.clients import C_SAME_CALLS, Client, Limit, Loadgen, compiled
from bench.performance.load import EMBEDDINGS, Load, TestServer, serving
from bench.table import spread, table
from loadgen.util import machine
from loadgen.util.number_format import plural

ANSWERS_C = Path(__file__).with_name("answers.c")
RATES, QUICK_RATES = (2_000, 5_000, 10_000, 20_000), (200, 500)
SECONDS, QUICK_SECONDS = 2.5, 0.2
ANSWER_MS = (
    50.0  # of a server that answers in batches; where it is less, 1 % of it is less than a wake-up
)
ROUNDS = 3
WARM_S = 0.1  # so much of the load has a connection each before the clock starts
LATE = "requests sent late"  # the check of loadgen that a client fails which does not keep up
HEAD = (
    "requests/s",
    "client",
    "verdict",
    "core busy %",
    "lag p50 ms",
    "lag p99 ms",
    "us per request",
    "further connections",
    "server busy %",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one client at one rate.

    Attributes:
        rate: Requests per second.
        client: Its name.
        result: What it reports, as `Sample.of` takes it.
        us_per_request: Its CPU time between the first send and the last end.
        connections: How many the server accepted beside those that were to be open before the first
            send.
        server_busy: CPU time of the server by the time from the first send to the last end.
    """

    rate: int
    client: str
    result: Mapping[str, Any]
    us_per_request: float
    connections: int
    server_busy: float

    @property
    def is_valid(self) -> bool:
        """Whether the client says that its measurement is VALID."""
        return bool(self.result.get("verdict") == "VALID")

    @property
    def is_in_time(self) -> bool:
        """Whether the client says that it sent in time."""
        return "verdict" in self.result and LATE not in self.result["failed_checks"]


def measure(rates: Sequence[int], seconds: float, rounds: int) -> list[Run]:
    """Have every client send at every rate for so long, so many times.

    Raises:
        RuntimeError: There is no C compiler, or a client failed.
    """
    machine.raise_open_files_limit()
    runs = []
    with tempfile.TemporaryDirectory(prefix="loadgen-rates-") as name:
        folder = Path(name)
        turns = [Loadgen(folder), Limit(folder), Limit(folder, same_calls=True)]
        with serving([compiled(ANSWERS_C, folder), str(ANSWER_MS)], "answers") as server:
            for number in range(rounds):
                for rate in rates:
                    first = number % len(turns)
                    for client in [*turns[first:], *turns[:first]]:
                        print(
                            f"round {number + 1}, {rate:,} requests/s: {client.name}",
                            file=sys.stderr,
                            flush=True,
                        )
                        runs.append(one_run(server, client, rate, seconds))
    return runs


def one_run(server: TestServer, client: Client, rate: int, seconds: float) -> Run:
    """Have one client send at one rate."""
    warm = round(rate * WARM_S)
    load = Load("rates", rate, round(rate * seconds), 0, warm=warm, backend=EMBEDDINGS)
    accepted = _accepted(server)
    server_s = machine.process_cpu_s(server.pid)
    result = client.run(server, load)
    server_s = machine.process_cpu_s(server.pid) - server_s
    return Run(
        rate,
        client.name,
        result,
        result["cpu_s"] / load.count * 1e6,
        _accepted(server) - accepted - warm - 1,  # the last is that of the question itself
        server_s / result["wall_s"],
    )


def _accepted(server: TestServer) -> int:
    """Return how many connections the server has accepted."""
    with urllib.request.urlopen(f"{server.base_url}/connections") as reply:
        return int(reply.read())


def highest(rates: Mapping[int, bool]) -> str:
    """Write the highest rate up to which something holds.

    Args:
        rates: Whether it does, by rate, ascending.
    """
    reached = None
    for rate, holds in rates.items():
        if not holds:
            break
        reached = rate
    return "none of these" if reached is None else f"{reached:,} requests/s"


def report(runs: Sequence[Run], seconds: float) -> str:
    """Write the table, and up to which rate loadgen was VALID, and sent in time, in every round."""
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.rate, run.client), []).append(run)
    ours = {rate: group for (rate, client), group in groups.items() if client == runs[0].client}
    rounds = len(next(iter(groups.values())))
    valid = highest({rate: all(run.is_valid for run in group) for rate, group in ours.items()})
    in_time = highest({rate: all(run.is_in_time for run in group) for rate, group in ours.items()})
    about = machine.describe()
    return "\n".join(
        [
            "# Up to which rate one process measures",
            "",
            f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {about['cpu']}, {about['usable_cores']} cores "
            f"shared with the server; {about['system']}; load average {os.getloadavg()[0]:.1f}. "
            f"Embeddings, answered in one piece after {ANSWER_MS:g} ms; {seconds:g} s at each "
            f"rate, {plural(rounds, 'round')} in turn: medians, with the least and the most. "
            f"`{C_SAME_CALLS}` makes the system calls that loadgen makes for a request. Further "
            f"connections are those beside one for each request of the first {1e3 * WARM_S:g} ms, "
            "which are open before the clock; the start of loadgen needs a few.",
            "",
            table(HEAD, [_row(*key, group) for key, group in groups.items()]),
            f"Highest rate at which loadgen was VALID in every round: {valid}.",
            f"Highest rate at which it sent in time in every round: {in_time}.",
        ]
    )


def _row(rate: int, client: str, group: Sequence[Run]) -> list[str]:
    results = [run.result for run in group]
    verdicts = Counter(result["verdict"] for result in results if "verdict" in result)
    reasons: dict[str, None] = {}
    for result in results:
        reasons |= dict.fromkeys(result.get("failed_checks", ()))
    cells = [f"{count} {verdict}" for verdict, count in verdicts.items()] + list(reasons)
    return [
        f"{rate:,}",
        client,
        ", ".join(cells) or "-",
        spread([100 * result["cpu_s"] / result["wall_s"] for result in results]),
        spread([result["late_p50_ms"] for result in results]),
        spread([result["late_p99_ms"] for result in results]),
        spread([run.us_per_request for run in group]),
        spread([run.connections for run in group]),
        spread([100 * run.server_busy for run in group]),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.rates",
        description="Up to which rate one process of loadgen measures.",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often the clients take turns ({ROUNDS})"
    )
    parser.add_argument(
        "--quick", action="store_true", help="low rates for a moment: shows that it works, no more"
    )
    flags = parser.parse_args(argv)
    rates, seconds, rounds = RATES, SECONDS, max(1, flags.rounds)
    if flags.quick:
        rates, seconds, rounds = QUICK_RATES, QUICK_SECONDS, 1
    try:
        print(report(measure(rates, seconds, rounds), seconds))
    except RuntimeError as error:
        sys.exit(f"rates: {error}")


if __name__ == "__main__":
    main()
